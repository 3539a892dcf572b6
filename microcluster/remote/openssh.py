"""OpenSSH on this computer: hosts that a person names, which it finds and reaches, and the argv of its client."""

import atexit
import contextlib
import os
import re
import secrets
import shlex
import socket
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Iterator, Sequence
from functools import cache, cached_property, partial
from pathlib import Path

from microcluster.core.home import PRIVATE_DIR, Home
from microcluster.core.plain_text import printable
from microcluster.jobs import cluster_facts
from microcluster.remote.connection import known_name
from microcluster.remote.errors import LoginRefusedError, RemoteError, UnreachableError
from microcluster.remote.host import COMMAND_TIMEOUT_S, NO_EXIT_CODE, Host

SSH = shlex.split("""ssh -F /dev/null -o IdentitiesOnly=yes -o IdentityAgent=none -o GlobalKnownHostsFile=/dev/null
-o StrictHostKeyChecking=yes -o ConnectTimeout=10 -o ServerAliveInterval=15 -o ServerAliveCountMax=4""")
CIPHERS = "aes128-gcm@openssh.com,aes256-gcm@openssh.com,aes128-ctr,aes192-ctr,aes256-ctr"
"""OpenSSH's ciphers that processors compute, also where only FIPS is allowed: bulk data cost half the time of ChaCha20, which it prefers."""
MASTER = shlex.split("""-M -N -f -o ControlPersist=60 -o BatchMode=yes -o StrictHostKeyChecking=yes -o UpdateHostKeys=no
-o ForwardAgent=no -o ForwardX11=no -o ClearAllForwardings=yes -o PermitLocalCommand=no -o RemoteCommand=none -o RequestTTY=no
-o LogLevel=ERROR -o ConnectTimeout=10 -o ServerAliveInterval=15 -o ServerAliveCountMax=6 -S""")
"""A connection, whatever the person's file says. What a killed command has left of it ends after a minute."""
OVER_MASTER = shlex.split("ssh -F /dev/null -o LogLevel=ERROR -o ProxyCommand=false -T -S")
"""One command over the connection: no file is read again, and no other connection is made."""
FAILURES = {
    "Permission denied": LoginRefusedError,
    **dict.fromkeys(("Host key verification failed", "bad configuration option"), RemoteError),
}
"""Messages of ssh after which trying again does not help."""
LONGEST_SOCKET = 90
"""Bytes of a connection's path: ssh adds 17 until it listens, and Linux allows 107 (unix(7))."""
SESSIONS = 10
"""Commands at once over a connection: sshd refuses one more (MaxSessions)."""
READ_TIMEOUT_S, LOGIN_TIMEOUT_S, CLOSE_TIMEOUT_S = 30.0, 60.0, 10.0
WORDS_BYTES, WORDS_LINES, WORDS_CHARACTERS = 1 << 16, 3, 500
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
        self.facts = cluster_facts.HostFacts(alias, alias, alias, alias, "")
        self.argv = ("ssh", *(("-F", config_file) if config_file else ()))
        self._connection, self._before, self._login = None, (), None

    def __str__(self) -> str:
        return self.facts.name

    @cached_property
    def settings(self) -> dict[str, str]:
        """Options of the person's files, as `ssh -G` resolves them; it runs the commands of `Match exec`."""
        printed = self._ask(("-G",), READ_TIMEOUT_S, RemoteError)
        return dict(line.partition(" ")[::2] for line in printed.splitlines())

    @property
    def user(self) -> str:
        return self.settings["user"]

    @property
    def address(self) -> str:
        return self.settings["hostname"]

    def connect(self) -> None:
        """Connect and log in, unless this process has a connection to the host."""
        master = _master((*self.argv, self.facts.name))
        with master.lock:
            if not master.is_connected:
                self._ask((*MASTER, master.path), LOGIN_TIMEOUT_S, UnreachableError)
        self._connection = master

    def close(self) -> None:
        """Leave the connection to whoever asks next; it ends with this process, or after a minute without commands."""

    def shown_key(self) -> str:
        raise RemoteError(f"The host keys of {self} are those that ssh knows. To add one, log in once: {self._by_hand}")

    @contextlib.contextmanager
    def _session(self, argv: Sequence[str], doing: str) -> Iterator["Session"]:
        self.connect()
        waiting = self._connection.sessions
        if not waiting.acquire(timeout=COMMAND_TIMEOUT_S):
            raise UnreachableError(f"{doing}: {SESSIONS} other commands take too long. Run the same command again.")
        try:
            with super()._session(argv, doing) as session:
                yield session
        finally:
            waiting.release()

    @property
    def _by_hand(self) -> str:
        return shlex.join((*self.argv, self.facts.name))

    def _ask(self, words: Sequence[str], limit_s: float, otherwise: type[RemoteError]) -> str:
        """Return the output of ssh with these options; it asks no question, nor does a jump host's."""
        options = {"start_new_session": True, "env": {**os.environ, "SSH_ASKPASS_REQUIRE": "never"}}
        # Some releases keep it open as long as the connection.
        with tempfile.TemporaryFile("w+", errors="replace") as out:
            streams = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": out}
            argv = (*self.argv, *words, "--", self.facts.name)
            try:
                process = subprocess.Popen(argv, **streams, **options)
            except FileNotFoundError as missing:
                raise RemoteError(
                    "There is no ssh on this computer. Install openssh-client, then try again."
                ) from missing
            # The thread that waits may end with this process, and a login that goes on would leave its connection for a minute.
            atexit.register(process.kill)
            try:
                code = process.wait(limit_s)
            except subprocess.TimeoutExpired:
                code = f"none after {limit_s:.0f} s"
            finally:
                process.kill()
                process.wait()
                atexit.unregister(process.kill)
            out.seek(0)
            printed = out.read(WORDS_BYTES)
        if code:
            last = " ".join((*printed.splitlines()[-WORDS_LINES:], f"(exit code {code})"))
            raise next((kind for text, kind in FAILURES.items() if text in last), otherwise)(
                f"asking ssh for {self}: {printable(last, WORDS_CHARACTERS)}. Before you try again this has to work by hand, without "
                f"a question once you have compared the host key with the site's page: {self._by_hand}"
            )
        return printed


def by_openssh(host: Host) -> Host:
    """Return the same host with its commands over OpenSSH, which carries ten times what paramiko does."""
    if isinstance(host, NamedHost):
        return host
    *argv, login = ssh_argv(host, [host], more=("-c", CIPHERS))
    same = NamedHost(login)
    same.argv, same._before = tuple(argv), host._before
    return same


class Master:
    """A connection that OpenSSH holds, with what Host uses of one of Fabric's."""

    def __init__(self) -> None:
        folder = Home.of().root / "ssh"
        folder.mkdir(mode=PRIVATE_DIR, parents=True, exist_ok=True)
        self.path, self.transport, self.lock = str(folder / secrets.token_hex(4)), self, threading.Lock()
        if len(os.fsencode(self.path)) > LONGEST_SOCKET:
            self._short = tempfile.TemporaryDirectory(prefix="microcluster-", dir="/tmp")
            self.path = str(Path(self._short.name) / "ssh")
        self.sessions = threading.BoundedSemaphore(SESSIONS)
        self._commands: weakref.WeakSet[Session] = weakref.WeakSet()
        atexit.register(self.close)

    @property
    def is_connected(self) -> bool:
        return Path(self.path).exists()

    def open_session(self) -> "Session":
        return Session(self.path, self._commands)

    def close(self) -> None:
        """End the connection with the commands over it."""
        for command in list(self._commands):
            command.close()
        if self.is_connected:
            argv = (*OVER_MASTER, self.path, "-O", "exit", "--", "master")
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(argv, capture_output=True, timeout=CLOSE_TIMEOUT_S, check=False)
            Path(self.path).unlink(missing_ok=True)


@cache
def _master(argv: tuple[str, ...]) -> Master:
    """Return the one connection of this process for this argv, made or not."""
    return Master()


class Session:
    """One command over a connection, with what Host uses of a channel of paramiko's."""

    def __init__(self, path: str, commands: weakref.WeakSet["Session"]) -> None:
        self._path, self._commands = path, commands
        self._ends, self._far_ends = zip(*(socket.socketpair() for _ in range(3)), strict=True)
        self._stdin, stdout, stderr = self._ends
        self.sendall, self.recv, self.recv_stderr = self._stdin.sendall, stdout.recv, stderr.recv
        self.settimeout, self.shutdown_write = stdout.settimeout, partial(self._stdin.shutdown, socket.SHUT_WR)

    def exec_command(self, line: bytes) -> None:
        streams = dict(zip(("stdin", "stdout", "stderr"), self._far_ends, strict=True))
        argv = (*OVER_MASTER, self._path, "--", "master", line)
        self._process = subprocess.Popen(argv, **streams, start_new_session=True)
        self._commands.add(self)
        for end in self._far_ends:
            end.close()

    def recv_exit_status(self) -> int:
        code = self._process.wait()
        return code if 0 <= code < 255 else NO_EXIT_CODE  # Its own failure, or a signal has ended the command.

    def close(self) -> None:
        """End ssh; whoever waits for the command sees its end."""
        self._process.kill()
        self._process.wait()
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


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
        settings = [
            (word.lower(), NAME.findall(rest)) for word, rest in KEYWORD.findall(Path(file).read_text(errors="replace"))
        ]
    except OSError as error:
        raise RemoteError(f"{doing}: {error.strerror}. Write it as ssh reads it: Host, HostName, User.") from error
    jumps = {name for word, names in settings for name in names if word != "host"}
    hosts = [name for word, names in settings for name in names if word == "host" and not set(name) & set("*?!#")]
    alias = alias or next((name for name in hosts if name not in jumps), "")
    if not alias:
        raise RemoteError(f"{doing}: it has no `Host` with a name. Name one behind the file: {file} ALIAS")
    # Its own file is read by ssh with that of the computer.
    return NamedHost(alias, None if Path(file) == Path("~/.ssh/config").expanduser() else file)


def ssh_argv(
    host: Host, hosts: Sequence[Host], command: Sequence[str] = (), more: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the argv; writes the pinned keys of all ``hosts`` beside the stack's keys.

    Args:
        more: further options.
    """
    line = (shlex.join(command),) if command else ()
    if isinstance(host, NamedHost):
        return (*host.argv, *more, "--", host.facts.name, *line)
    # One that reads the file of all must not find that of a single one.
    known_hosts = Path(host.key_file).parent / ("pinned_hosts" if len(hosts) > 1 else f"pinned_{host.facts.name}")
    lines = "".join(f"{known_name(one.address, one.port)} {one.pinned_key}\n" for one in hosts)
    if not known_hosts.exists() or known_hosts.read_text() != lines:  # Another client may read it.
        known_hosts.write_text(lines)
    options = ("-o", f"UserKnownHostsFile={known_hosts}", "-i", host.key_file, "-p", str(host.port), *more)
    return (*SSH, *options, f"{host.user}@{host.address}", *line)
