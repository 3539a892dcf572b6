"""One SSH address with commands: the only class that uses Fabric, and the only place where an argv is quoted."""

import contextlib
import copy
import shlex
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import fabric
import paramiko

from microcluster.core.plain_text import printable
from microcluster.core.polling import NotReadyError, wait_until
from microcluster.jobs import cluster_facts
from microcluster.remote import host_key
from microcluster.remote.answers import SIZE, read_answer
from microcluster.remote.connection import (
    CONNECT_TIMEOUT_S,
    MACHINE_SSH_PORT,
    REQUEST_TIMEOUT_S,
    answered,
    command_bytes,
    pinned_connection,
    reason,
    without_login,
)
from microcluster.remote.errors import (
    CommandError,
    Completed,
    LoginRefusedError,
    RemoteError,
    TooSlowError,
    UnreachableError,
    shown,
)

COMMAND_TIMEOUT_S = 300.0
READY_TIMEOUT_S, USUALLY_READY_S = 600.0, 20.0
NO_EXIT_CODE = -1
PIECE_BYTES = 1 << 18
ANSWER_BYTES = 4 << 20
"""The most that a command may print; whoever expects more says so."""
SLOWEST_BYTES_S, SLOWEST_OVER_S = 1000, 60.0
"""The least that a machine has to bring on average over so long; below it nobody waits."""
PIECES = '[ -f "$1" ] || exit 66; tail -c "+$2" <"$1" | head -c "$3"'
NO_FILE = 66
LENGTH = 'mkdir -p "${1%/*}" && touch "$1" && stat -L -c %s "$1"'
ROOT = "root"
SUDO = ("sudo", "-n", "--preserve-env=SSH_CONNECTION", "--")
"""Command prefix for root, without a question; keeps sshd's variable that names the address of our login."""
PUT_SCRIPT = 'set -eu; t="$1.new.$$"; trap \'rm -f "$t"\' EXIT; umask 077; cat > "$t"; chmod "$2" "$t"; mv -f "$t" "$1"; sync "$1"'


class Host:
    """A machine, reached with the stack's own key, and only if it shows the pinned host key."""

    RETRIED = (UnreachableError, LoginRefusedError)
    """The errors of a machine that boots."""
    _brought = (0.0, 0)
    """Seconds of waiting for pieces of output, and their bytes."""

    def __init__(  # noqa: PLR0913
        self,
        facts: cluster_facts.HostFacts,
        user: str,
        key_file: str,
        *,
        port: int = MACHINE_SSH_PORT,
        trusted_key: str | None = None,
    ) -> None:
        """The first command connects.

        Args:
            trusted_key: a host key from `fab trust`, instead of the ordered one.
        """
        self.facts, self.user, self.key_file, self.port = facts, user, key_file, port
        self.pinned_key = trusted_key or facts.host_key
        self.address = facts.public_address or facts.private_address
        self._connection: fabric.Connection | None = None
        self._before: tuple[str, ...] = ()
        self._login: Host | None = None

    def __str__(self) -> str:
        return f"{self.facts.name} (guest {self.facts.guest_id}, {self.address})"

    def as_root(self) -> "Host":
        """Return the same machine with commands run by root: by sudo, where the login is another user's."""
        if self.user == ROOT:
            return self
        self.connect()
        root = copy.copy(self)
        root._before, root._login = SUDO, self  # It shares the connection, which ends with the first of them.
        return root

    def connect(self) -> None:
        """Connect and log in, unless connected."""
        if self._connection and self._connection.is_connected:
            return
        connection = pinned_connection(self.address, self.user, self.port, self.key_file, self.pinned_key)
        try:
            connection.open()
        except paramiko.BadHostKeyException as error:
            raise RemoteError(self._other_key(error.key)) from error
        except paramiko.AuthenticationException as error:
            raise LoginRefusedError(f"logging in to {self} as {self.user} with {self.key_file}: refused.") from error
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise UnreachableError(f"connecting to {self}: {reason(error)}.") from error
        self._connection = connection
        # Paramiko's thread would keep it open when nobody has this host any more.
        weakref.finalize(self, connection.client.close).atexit = False

    def shown_key(self) -> str:
        """Return the public line of the host key that the machine shows, without a login."""
        with without_login(str(self), self.address, self.port) as transport:
            transport.start_client(timeout=CONNECT_TIMEOUT_S)
            return host_key.line(transport.get_remote_server_key())

    def offered_logins(self) -> frozenset[str]:
        """Return the authentication methods that sshd offers, for example "publickey" and "password"."""
        with without_login(str(self), self.address, self.port) as transport:
            transport.connect(hostkey=host_key.parse(self.pinned_key))
            try:
                transport.auth_none(self.user)
            except paramiko.BadAuthenticationType as refused:
                return frozenset(refused.allowed_types)
        return frozenset({"none"})

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: str = "",
        timeout_s: float = COMMAND_TIMEOUT_S,
        accept: Sequence[int] = (0,),
        answer_bytes: int = ANSWER_BYTES,
    ) -> Completed:
        """Run ``argv`` and return how it ended.

        Args:
            stdin: its standard input; the only way to send a secret.
            accept: exit codes that do not raise CommandError.
            answer_bytes: the most that it may print; on its error stream never more than ANSWER_BYTES.

        Raises:
            KeyboardInterrupt: at a Ctrl-C, with the command that may still run.
        """
        self.connect()
        began, out, errors = time.monotonic(), bytearray(), bytearray()
        doing = f"running `{argv[0]}` on {self}"
        try:
            with self._session(argv, doing) as channel, answered(self._connection.transport, timeout_s):
                taking = threading.Thread(
                    target=_take, args=(channel, channel.recv_stderr, errors, min(answer_bytes, ANSWER_BYTES))
                )
                sending = threading.Thread(target=_send, args=(channel, stdin.encode()))
                for thread in (taking, sending):
                    thread.daemon = True
                    thread.start()
                _take(channel, channel.recv, out, answer_bytes)
                taking.join()
                code = channel.recv_exit_status()
        except KeyboardInterrupt as pressed:
            self._disconnect()
            raise KeyboardInterrupt(f"`{shown(argv)}` may still run on {self}") from pressed
        for stream, most in ((out, answer_bytes), (errors, min(answer_bytes, ANSWER_BYTES))):
            if len(stream) > most:
                raise self._too_long(argv, most)
        if code == NO_EXIT_CODE:  # The connection was lost, or a signal ended the command, as in a reboot.
            last = printable(errors.decode("utf-8", "replace").strip().rpartition("\n")[2], 300)
            is_late = time.monotonic() - began >= timeout_s
            why = f"no answer after {timeout_s} s" if is_late else "it ended without an exit code"
            raise self._lost(doing, why + (f" ({last})" if last else ""))
        completed = Completed(code, out.decode("utf-8", "replace"), errors.decode("utf-8", "replace"))
        if completed.exit_code not in accept:
            raise CommandError(str(self), argv, completed)
        return completed

    def read(self, path: str) -> str | None:
        """Return the text of a file, or None if it does not exist."""
        if self.run(("test", "-f", path), accept=(0, 1)).exit_code:
            return None
        return self.run(("cat", path)).stdout

    def put(self, path: str, text: str, mode: str = "0644") -> bool:
        """Replace a file atomically if its text or mode differ; return whether they did."""
        if self.read(path) == text and self.run(("stat", "-c", "%a", path)).stdout.strip() == mode.lstrip("0"):
            return False
        self.run(("sh", "-c", PUT_SCRIPT, "put", path, mode), stdin=text)
        return True

    def pieces(self, path: str, start: int, end: int) -> Iterator[bytes]:
        """Yield the bytes of a file from ``start`` up to ``end``; fewer only when the file has become shorter.

        Raises:
            RemoteError: it is gone, or one of :meth:`output`.
        """
        doing, remaining = f"reading {printable(path, 300)} of {self}", end - start
        # Not by SFTP: whoever answers it decides how much memory an answer takes.
        argv = ("sh", "-c", PIECES, "pieces", path, str(start + 1), str(remaining))
        for piece in self.output(argv, doing):
            yield piece[:remaining]
            remaining -= len(piece)
            if remaining <= 0:
                return

    def output(
        self, argv: Sequence[str], doing: str, silent_s: float | None = None, stdin: bytes = b""
    ) -> Iterator[bytes]:
        """Yield the output of ``argv`` in pieces of any size as it comes; the caller may stop early.

        Args:
            silent_s: for how long it may print nothing; REQUEST_TIMEOUT_S where none is given.
            stdin: its standard input, which it has to read before it prints.

        Raises:
            TooSlowError: it prints, and less than SLOWEST_BYTES_S.
            RemoteError: it failed.
        """
        with self._session(argv, doing) as channel:
            channel.settimeout(silent_s or REQUEST_TIMEOUT_S)
            _send(channel, stdin)
            asked_at = None
            while piece := channel.recv(PIECE_BYTES):
                if asked_at:  # The first piece may take long, where much is read for it.
                    self._see_pace(len(piece), time.monotonic() - asked_at, doing)
                yield piece
                asked_at = time.monotonic()
            self._check_end(channel, argv, doing)

    @contextlib.contextmanager
    def talk(self, argv: Sequence[str], doing: str) -> Iterator[tuple[Callable[[bytes], None], Callable[[int], bytes]]]:
        """Yield a sender to ``argv`` and a receiver from it; at the end of the block the command has to succeed.

        Raises:
            RemoteError: it failed.
        """
        with self._session(argv, doing) as channel:
            channel.settimeout(REQUEST_TIMEOUT_S)

            def send(piece: bytes) -> None:
                with answered(self._connection.transport):
                    channel.sendall(piece)

            try:
                yield send, channel.recv
                channel.shutdown_write()
            except OSError:  # It may have ended, and said why.
                self._check_end(channel, argv, doing)
                raise
            self._check_end(channel, argv, doing)

    def _see_pace(self, size: int, waited_s: float, doing: str) -> None:
        """Add a piece to what the machine has brought so far, in all its answers: many small ones take long too."""
        seconds, taken = self._brought[0] + waited_s, self._brought[1] + size
        self._brought = (0.0, 0) if seconds > SLOWEST_OVER_S else (seconds, taken)
        if seconds > SLOWEST_OVER_S and taken < SLOWEST_BYTES_S * seconds:
            raise TooSlowError(str(self._lost(doing, f"it brought {taken} bytes in {seconds:.0f} s")))

    def _line(self, argv: Sequence[str]) -> str:
        return shlex.join((*self._before, *argv))

    def _too_long(self, argv: Sequence[str], most: int) -> RemoteError:
        self._disconnect()
        return RemoteError(
            f"running `{shown(argv)}` on {self}: its answer is longer than {most:,} bytes and was not read. "
            f"Look at the machine: fab ssh {self.facts.name}"
        )

    def extend(self, local: Path, path: str) -> Iterator[int]:
        """Continue the upload of a file to ``path``; yield the bytes sent so far.

        The present bytes count as the file's beginning; the caller compares hashes.
        """
        doing = f"sending {local} to {self}"
        size_there = read_answer(SIZE, self.run(("sh", "-c", LENGTH, "length", path)).stdout, doing)
        argv = ("sh", "-c", 'cat >>"$1"', "append", path)
        with local.open("rb") as content, self._session(argv, doing) as channel:
            content.seek(size_there)
            yield size_there
            while piece := content.read(PIECE_BYTES):
                with answered(self._connection.transport):
                    channel.sendall(piece)
                size_there += len(piece)
                yield size_there
            channel.shutdown_write()
            self._check_end(channel, argv, doing)

    @contextlib.contextmanager
    def _session(self, argv: Sequence[str], doing: str) -> Iterator[paramiko.Channel]:
        """Yield the channel of a command that runs; a lost connection becomes an error that says what was done."""
        self.connect()
        try:
            with answered(self._connection.transport):
                channel = self._connection.transport.open_session()
                channel.exec_command(command_bytes(self._line(argv)))
            with contextlib.closing(channel):
                yield channel
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise self._lost(doing, f"the connection was lost ({reason(error)})") from error

    def _check_end(self, channel: paramiko.Channel, argv: Sequence[str], doing: str) -> None:
        """Raise unless the command ends well."""
        output = bytearray()
        channel.settimeout(REQUEST_TIMEOUT_S)
        with answered(self._connection.transport, 2 * REQUEST_TIMEOUT_S):
            _take(channel, channel.recv_stderr, output, PIECE_BYTES)
            code = channel.recv_exit_status()
        if code == NO_FILE:
            raise RemoteError(f"{doing}: it does not exist any more. Run the same command again.")
        if code == NO_EXIT_CODE:
            raise self._lost(doing, "it ended without an exit code")
        if code:
            raise CommandError(str(self), argv, Completed(code, "", output.decode("utf-8", "replace")))

    def _lost(self, doing: str, why: str) -> UnreachableError:
        """Close the connection, which may be dead, and return what became of it, as an error; the next command makes a new one."""
        self._disconnect()
        return UnreachableError(
            f"{doing}: {why}. Check the machine and the network (fab status), then run the same command again."
        )

    def close(self) -> None:
        self._disconnect()

    def _disconnect(self) -> None:
        if self._connection:
            self._connection.close()
            self._connection = None

    def _other_key(self, shown: paramiko.PKey) -> str:
        ordered = self.pinned_key == self.facts.host_key
        pinned = "the one it was ordered with" if ordered else "the one that was trusted"
        return (
            f"connecting to {self}: it shows the host key {host_key.fingerprint(host_key.line(shown))}, which is not "
            f"{pinned}. Nothing was sent to it. If this key is right: fab trust {self.facts.name}"
        )


def _take(channel: paramiko.Channel, read: Callable[[int], bytes], taken: bytearray, most: int) -> None:
    """Add what a stream of a command brings; at more than ``most`` bytes nothing more is taken of either."""
    while len(taken) <= most and (piece := read(PIECE_BYTES)):
        taken += piece
    if len(taken) > most:
        channel.close()


def _send(channel: paramiko.Channel, content: bytes) -> None:
    """Send a standard input; a command that ends before it has read all of it says itself how it went."""
    with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
        channel.sendall(content)
        channel.shutdown_write()


def wait_for_ssh(host: Host, timeout_s: float = READY_TIMEOUT_S, *, every_s: float = 1.0) -> None:
    """Return when ``host`` accepts our key; while it boots it may refuse the connection or the key."""
    last: list[Exception] = []

    def probe() -> bool:
        try:
            host.connect()
        except host.RETRIED as error:
            last[:] = [error]
            return False
        return True

    try:
        wait_until(f"ssh on {host}", probe, timeout_s=timeout_s, usual_s=USUALLY_READY_S, every_s=every_s)
    except NotReadyError as late:
        raise UnreachableError(f"{late} The last error: {last[0]} Run the same command again, or fab status.") from late
