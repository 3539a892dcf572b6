"""The emulated NGC: Debian's docker-registry with TLS, user `$oauthtoken`, the account's key."""

import fcntl
import os
import secrets
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import bcrypt
import requests
import yaml

from emulator.machines.certificates import server_identity
from emulator.machines.host_tools import find, is_locked, kept_text, wait_until, write_private
from emulator.machines.spec import MachineError

USER = "$oauthtoken"
KEY_FILE = "ngc_key"
KEY_BYTES = 32
BCRYPT_ROUNDS = 5  # Every request pays for them; the key is random and long.
START_S, ANSWER_S, END_S = 15, 2, 5


def storage_of(state: Path) -> Path:
    """The folder in which an account's registry keeps its images."""
    return state / "registry" / "storage"


def key_of(state: Path) -> str:
    """The account's registry key, made when it is first asked for."""
    return kept_text(state / KEY_FILE, lambda: f"{secrets.token_urlsafe(KEY_BYTES)}\n").strip()


class Registry:
    """The registry of one account at one address."""

    def __init__(self, state: Path, name: str, address: str, port: int) -> None:
        self._state, self._name, self._address, self._port = state, name, address, port
        self._folder = state / "registry"
        self._process = KeptProcess(self._folder / "registry.pid", self._folder / "registry.log")

    @property
    def reference(self) -> str:
        """Registry host and port: the first part of the name of every image in it."""
        return f"{self._name}:{self._port}"

    @property
    def authority(self) -> str:
        """The certificate that clients have to trust."""
        return (self._folder / "server.crt").read_text()

    def open(self) -> None:
        """Run the registry, in place of one that a killed emulator has left."""
        storage_of(self._state).mkdir(mode=0o700, parents=True, exist_ok=True)
        self._identify()
        self._configure()
        self.close()
        self._process.start(("docker-registry", "serve", str(self._folder / "config.yml")))
        look = str(self._folder / "registry.log")
        wait_until(f"the registry on {self._address}:{self._port}", self._answers, START_S, look=look)

    def close(self) -> None:
        """Stop the registry."""
        self._process.stop()

    def _identify(self) -> None:
        """Make the certificate unless there is one for this name and address, which the machines trust."""
        file, stands_for = self._folder / "identity", f"{self._name} at {self._address}\n"
        if file.exists() and file.read_text() == stands_for:
            return
        certificate, key = server_identity(self._name, self._address)
        write_private(self._folder / "server.crt", certificate)
        write_private(self._folder / "server.key", key)
        write_private(file, stands_for)

    def _configure(self) -> None:
        """Write the password of the account's key, and the registry's configuration."""
        hashed = bcrypt.hashpw(key_of(self._state).encode(), bcrypt.gensalt(BCRYPT_ROUNDS)).decode()
        write_private(self._folder / "htpasswd", f"{USER}:{hashed}\n")
        text = yaml.safe_dump(
            {
                "version": 0.1,
                "log": {"level": "warn", "accesslog": {"disabled": True}},
                "storage": {"filesystem": {"rootdirectory": str(storage_of(self._state))}},
                "auth": {"htpasswd": {"realm": self._name, "path": str(self._folder / "htpasswd")}},
                "http": {
                    "addr": f"{self._address}:{self._port}",
                    "tls": {
                        "certificate": str(self._folder / "server.crt"),
                        "key": str(self._folder / "server.key"),
                    },
                },
            }
        )
        write_private(self._folder / "config.yml", text)

    def _answers(self) -> bool:
        """Whether our own registry answers; its certificate distinguishes it from another program on the port."""
        if not self._process.runs:
            raise MachineError(
                f"Starting the registry on {self._address}:{self._port}: docker-registry ended:"
                f" {self._process.last_log_line()}. Free the port, or choose another `registry_port`."
            )
        with requests.Session() as session:
            session.trust_env, session.verify = False, str(self._folder / "server.crt")
            try:
                answer = session.get(f"https://{self._address}:{self._port}/v2/", timeout=ANSWER_S)
            except requests.RequestException:
                return False
        return answer.status_code == requests.codes.unauthorized


class KeptProcess:
    """A program that outlives the emulator; its pid file is locked for as long as it lives, whatever its id is used for later."""

    def __init__(self, pid_file: Path, log: Path) -> None:
        self._pid_file, self._log = pid_file, log

    @property
    def runs(self) -> bool:
        """Whether the process that the file names is alive."""
        return is_locked(self._pid_file)

    def start(self, argv: Sequence[str]) -> None:
        """Start the program in a session of its own; its output goes to the log."""
        with self._log.open("ab") as log, self._pid_file.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            process = subprocess.Popen(
                (find(argv[0]), *argv[1:]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(file.fileno(),),  # With the file the program holds its lock.
            )
            file.write(f"{process.pid}\n")

    def stop(self) -> None:
        """End the process and forget it; one that has ended already is no error."""
        if self.runs:
            pid = int(self._pid_file.read_text())
            os.kill(pid, signal.SIGKILL)  # A registry has nothing to finish: uploads are renamed into place.
            wait_until(f"the end of process {pid}", lambda: not self.runs, END_S)
        self._pid_file.unlink(missing_ok=True)

    def last_log_line(self) -> str:
        """The last line of the program's log."""
        lines = self._log.read_text(errors="replace").strip().splitlines() if self._log.exists() else []
        return lines[-1] if lines else "its log is empty"
