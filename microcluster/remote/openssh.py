"""OpenSSH on this computer: hosts that a person names, which it finds and reaches, and the argv of its client."""

import contextlib
import os
import re
import secrets
import shlex
import socket
import subprocess
import tempfile
import weakref
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from core.home import PRIVATE_DIR, Home
from core.plain_text import printable
from microcluster.jobs import cluster_facts
from microcluster.remote.connection import known_name
from microcluster.remote.errors import Completed, LoginRefusedError, RemoteError, UnreachableError
from microcluster.remote.host import NO_EXIT_CODE, Host

SSH = shlex.split("""ssh -F /dev/null -o IdentitiesOnly=yes -o IdentityAgent=none -o GlobalKnownHostsFile=/dev/null
-o StrictHostKeyChecking=yes -o ConnectTimeout=10 -o ServerAliveInterval=15 -o ServerAliveCountMax=4""")
MASTER = shlex.split("""-M -N -f -o ControlPersist=60 -o BatchMode=yes -o StrictHostKeyChecking=yes -o UpdateHostKeys=no
-o ForwardAgent=no -o ForwardX11=no -o ClearAllForwardings=yes -o PermitLocalCommand=no -o RemoteCommand=none -o RequestTTY=no
-o LogLevel=ERROR -o ConnectTimeout=10 -o ServerAliveInterval=15 -o ServerAliveCountMax=6""")
"""A connection, whatever the person's file says. What a killed command has left of it ends after a minute."""
OVER_MASTER = shlex.split("ssh -F /dev/null -o LogLevel=ERROR -o ProxyCommand=false -T")
"""One command over the connection; the file is not read again, and no other connection is made."""
NO_QUESTIONS = {"SSH_ASKPASS_REQUIRE": "never"}
"""Holds for the ssh of a jump host too, which gets none of our options."""
READ_TIMEOUT_S, LOGIN_TIMEOUT_S, CLOSE_TIMEOUT_S = 30.0, 60.0, 10.0
NO_RESULT = 255
"""Exit code of ssh when it failed itself, or when a signal ended the command."""
LONGEST_SOCKET = 90
"""What the system takes, less what ssh appends while it connects."""
WORDS_BYTES, WORDS_LINES, WORDS_CHARACTERS = 1 << 16, 3, 500
OF_ITS_OWN = Path("~/.ssh/config")
"""The file that ssh reads, with the computer's, where none is named."""
KEYWORD = re.compile(r"^[ \t]*(host|proxyjump|proxycommand)[ \t=]+(.+)$", re.IGNORECASE | re.MULTILINE)
NAME = re.compile(r'[^\s",@:=]+')


class NamedHost(Host):
    """A host by the name that a person has for it: OpenSSH reads their files, and carries the connection."""

    RETRIED = (UnreachableError,)

    def __init__(self, alias: str, config_file: str | None = None) -> None:
        """The first command connects, and is the first to read a file.

        Args:
            config_file: instead of the files that ssh reads by itself.
        """
        self.facts = cluster_facts.Host(alias, alias, alias, alias, "")
        self.argv = ("ssh", *(("-F", config_file) if config_file else ()))
        self._connection, self._before, self._login = None, (), None

    def __str__(self) -> str:
        return self.facts.name

    @cached_property
    def settings(self) -> dict[str, str]:
        """What ssh makes of the person's files. To know it, ssh runs the commands of `Match exec` in them."""
        done = _ask((*self.argv, "-G", "--", self.facts.name), READ_TIMEOUT_S)
        if done.exit_code:
            raise RemoteError(f"reading the files of ssh for {self}: {_words(done)}. This has to work: {self._by_hand}")
        return dict(line.partition(" ")[::2] for line in done.stdout.splitlines())

    @property
    def user(self) -> str:
        return self.settings["user"]

    @property
    def address(self) -> str:
        return self.settings["hostname"]

    def connect(self) -> None:
        """Connect and log in, unless connected."""
        if self._connection and self._connection.is_connected:
            return
        doing, master = f"connecting to {self} ({self.user} at {self.address})", Master()
        done = _ask((*self.argv, *MASTER, "-S", master.path, "--", self.facts.name), LOGIN_TIMEOUT_S)
        if "Host key verification failed" in done.stderr:
            raise RemoteError(
                f"{doing}: {_words(done)}. Log in once by hand, and compare the key's fingerprint with the site's page: {self._by_hand}"
            )
        if done.exit_code:
            kind = LoginRefusedError if "Permission denied" in done.stderr else UnreachableError
            raise kind(f"{doing}: {_words(done)}. This has to work without a question: {self._by_hand}")
        self._connection = master
        weakref.finalize(self, master.close)

    def shown_key(self) -> str:
        raise RemoteError(f"The host keys of {self} are those that ssh knows. To add one, log in once: {self._by_hand}")

    @property
    def _by_hand(self) -> str:
        return shlex.join((*self.argv, self.facts.name))


class Master:
    """A connection that OpenSSH holds, with what Host uses of one of Fabric's."""

    def __init__(self) -> None:
        folder = Home.of().root / "ssh"
        folder.mkdir(mode=PRIVATE_DIR, parents=True, exist_ok=True)
        self.path = str(folder / secrets.token_hex(4))
        if len(os.fsencode(self.path)) > LONGEST_SOCKET:
            raise RemoteError(f"{self.path} is too long for a socket. Set MICROCLUSTER_HOME to a shorter path.")
        self._sessions: weakref.WeakSet[Session] = weakref.WeakSet()

    @property
    def transport(self) -> "Master":
        return self

    @property
    def is_connected(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(self.path) == 0

    def open_session(self) -> "Session":
        return Session((*OVER_MASTER, "-S", self.path, "--", "master"), self._sessions)

    def close(self) -> None:
        """End the connection with the commands over it."""
        for session in list(self._sessions):
            session.kill()
        if self.is_connected:
            _ask((*OVER_MASTER, "-S", self.path, "-O", "exit", "--", "master"), CLOSE_TIMEOUT_S)


class Session:
    """One command over a connection, with what Host uses of a channel of paramiko's."""

    def __init__(self, argv: Sequence[str], living: weakref.WeakSet["Session"]) -> None:
        self._argv, self._living = argv, living
        self._ends, self._theirs = zip(*(socket.socketpair() for _ in range(3)), strict=True)
        self._stdin, self._stdout, self._stderr = self._ends
        self.sendall, self.recv, self.recv_stderr = self._stdin.sendall, self._stdout.recv, self._stderr.recv

    def settimeout(self, limit_s: float) -> None:
        for end in self._ends:
            end.settimeout(limit_s)

    def exec_command(self, line: bytes) -> None:
        stdin, stdout, stderr = self._theirs
        argv = (*self._argv, line)
        self._process = subprocess.Popen(argv, stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True)
        self._living.add(self)
        for end in self._theirs:
            end.close()

    def shutdown_write(self) -> None:
        self._stdin.shutdown(socket.SHUT_WR)

    def recv_exit_status(self) -> int:
        code = self._process.wait()
        return code if 0 <= code < NO_RESULT else NO_EXIT_CODE

    def kill(self) -> None:
        """End ssh; whoever waits for the command sees its end."""
        self._process.kill()
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.kill()
        self._process.wait()
        for end in self._ends:
            end.close()


def _words(done: Completed) -> str:
    """Return the end of what ssh says of its failure."""
    last = " ".join(done.stderr.splitlines()[-WORDS_LINES:]).rstrip(".")
    return printable(last, WORDS_CHARACTERS) or f"exit code {done.exit_code}"


def _ask(argv: Sequence[str], limit_s: float) -> Completed:
    """Run ssh without a terminal; its words go to files, as some releases keep them open for the whole connection."""
    options = {"stdin": subprocess.DEVNULL, "env": {**os.environ, **NO_QUESTIONS}, "start_new_session": True}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        try:
            code = subprocess.run(argv, stdout=out, stderr=errors, timeout=limit_s, check=False, **options).returncode
        except FileNotFoundError as missing:
            raise RemoteError(
                "There is no ssh on this computer. Install openssh-client, then run the same command again."
            ) from missing
        except subprocess.TimeoutExpired:
            return Completed(NO_RESULT, "", f"no answer after {limit_s:.0f} s")
        for file in (out, errors):
            file.seek(0)
        return Completed(code, *(file.read(WORDS_BYTES).decode("utf-8", "replace") for file in (out, errors)))


def login_host(named: str) -> NamedHost:
    """Return the login host that a configuration names, not yet connected.

    Args:
        named: a file, or a file, a blank and an alias; without one, the first `Host` through which no other one is reached.

    Raises:
        RemoteError: the file or the host in it is missing.
    """
    file, _, alias = named.rpartition(" ") if " " in named and not Path(named).is_file() else (named, "", "")
    doing = f"reading the login host in {file}"
    try:
        found = KEYWORD.findall(Path(file).read_text(errors="replace"))
    except OSError as error:
        raise RemoteError(f"{doing}: {error.strerror}. Write it as ssh reads it: Host, HostName, User.") from error
    hosts, jumps = [], set()
    for keyword, words in found:
        names = NAME.findall(words)
        hosts += names if keyword.lower() == "host" else ()
        jumps |= set(names) if keyword.lower() != "host" else set()
    alias = alias or next((name for name in hosts if name not in jumps and not set(name) & set("*?!#")), "")
    if not alias:
        raise RemoteError(f"{doing}: it has no `Host` with a name. Name one behind the file: {file} ALIAS")
    return NamedHost(alias, None if Path(file) == OF_ITS_OWN.expanduser() else file)


def ssh_argv(
    host: Host, hosts: Sequence[Host], command: Sequence[str] = (), more: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the argv; writes the pinned keys of all ``hosts`` beside the stack's keys.

    Args:
        more: further options.
    """
    line = (shlex.join(command),) if command else ()
    if isinstance(host, NamedHost):
        return (*host.argv, *more, host.facts.name, *line)
    known_hosts = Path(host.key_file).parent / "pinned_hosts"
    lines = "".join(f"{known_name(one.address, one.port)} {one.pinned_key}\n" for one in hosts)
    if not known_hosts.exists() or known_hosts.read_text() != lines:  # Another client may read it.
        known_hosts.write_text(lines)
    options = ("-o", f"UserKnownHostsFile={known_hosts}", "-i", host.key_file, "-p", str(host.port), *more)
    return (*SSH, *options, f"{host.user}@{host.address}", *line)
