"""One SSH address with commands: the only class that uses Fabric, and the only place where an argv is quoted."""

from __future__ import annotations

import contextlib
import shlex
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import fabric
import invoke
import paramiko

from microcluster.jobs import cluster_facts
from microcluster.remote import host_key
from microcluster.remote.connection import CONNECT_TIMEOUT_S, SILENT_S, WholeText, pinned_connection, reason
from microcluster.remote.heartbeat import Heartbeat, Patience

COMMAND_TIMEOUT_S = 300.0
NO_EXIT_CODE = -1
TAIL_LINES = 15
PIECE_BYTES = 1 << 18
PUT_SCRIPT = 'set -eu; t="$1.new.$$"; trap \'rm -f "$t"\' EXIT; umask 077; cat > "$t"; chmod "$2" "$t"; mv -f "$t" "$1"; sync "$1"'


class RemoteError(Exception):
    """A host or the connection to it failed; the message is a full sentence with the next command."""


class UnreachableError(RemoteError):
    """No SSH server answered, or the connection was lost; trying again may help."""


class LoginRefusedError(RemoteError):
    """The host is the right one and refused our key."""


class HostKeyError(RemoteError):
    """The host key is not the ordered machine's; nothing was sent."""


@dataclass(frozen=True)
class Completed:
    """How a command ended."""

    exit_code: int
    stdout: str
    stderr: str


class CommandError(RemoteError):
    """A command ended with an exit code that its caller did not expect."""

    def __init__(self, host: str, argv: Sequence[str], completed: Completed) -> None:
        # Secrets are sent on stdin only, so the output contains none.
        self.host, self.argv, self.exit_code = host, tuple(argv), completed.exit_code
        printed = (completed.stdout + completed.stderr).strip().splitlines()
        self.tail = "\n".join(printed[-TAIL_LINES:])
        super().__init__(f"running `{shown(argv)}` on {host}: exit code {completed.exit_code}.\n{self.tail}".rstrip())


class Host:
    """A machine, reached with the stack's own key, and only if it shows the pinned host key."""

    def __init__(  # noqa: PLR0913
        self,
        facts: cluster_facts.Host,
        user: str,
        key_file: str,
        *,
        port: int = 22,
        trusted_key: str | None = None,
        patience: Patience = Patience(),  # noqa: B008 - frozen
    ) -> None:
        """The first command connects.

        Args:
            trusted_key: a host key from `fab trust`, instead of the ordered one.
        """
        self._patience = patience
        self.facts, self.user, self.key_file, self.port = facts, user, key_file, port
        self.pinned_key = trusted_key or facts.host_key
        self.address = facts.public_address or facts.private_address
        self._connection: fabric.Connection | None = None
        self._heartbeat: Heartbeat | None = None

    def __str__(self) -> str:
        return f"{self.facts.name} (guest {self.facts.guest_id}, {self.address})"

    def connect(self) -> None:
        """Connect and log in, unless connected."""
        if self._connection and self._connection.is_connected:
            return
        connection = pinned_connection(self.address, self.user, self.port, self.key_file, self.pinned_key)
        try:
            connection.open()
        except paramiko.BadHostKeyException as error:
            raise HostKeyError(self._other_key(error.key)) from error
        except paramiko.AuthenticationException as error:
            raise LoginRefusedError(f"logging in to {self} as {self.user} with {self.key_file}: refused.") from error
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise UnreachableError(f"connecting to {self}: {reason(error)}.") from error
        self._connection = connection
        self._heartbeat = Heartbeat(connection.transport, self._patience)

    def shown_key(self) -> str:
        """Return the public line of the host key that the machine shows, without a login."""
        with self._without_login() as transport:
            transport.start_client(timeout=CONNECT_TIMEOUT_S)
            return host_key.line(transport.get_remote_server_key())

    def offered_logins(self) -> frozenset[str]:
        """Return the authentication methods that sshd offers, for example "publickey" and "password"."""
        with self._without_login() as transport:
            transport.connect(hostkey=host_key.parse(self.pinned_key))
            try:
                transport.auth_none(self.user)
            except paramiko.BadAuthenticationType as refused:
                return frozenset(refused.allowed_types)
        return frozenset({"none"})

    @contextlib.contextmanager
    def _without_login(self) -> Iterator[paramiko.Transport]:
        """Yield a separate connection without a login."""
        try:
            with (
                socket.create_connection((self.address, self.port), CONNECT_TIMEOUT_S) as way,
                contextlib.closing(paramiko.Transport(way)) as transport,
            ):
                yield transport
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise UnreachableError(f"connecting to {self}: {reason(error)}.") from error

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: str = "",
        timeout_s: float = COMMAND_TIMEOUT_S,
        accept: Sequence[int] = (0,),
    ) -> Completed:
        """Run ``argv`` and return how it ended.

        Args:
            stdin: its standard input; the only way to send a secret.
            accept: exit codes that do not raise CommandError.

        Raises:
            KeyboardInterrupt: at a Ctrl-C, with the command that may still run.
        """
        self.connect()
        assert self._connection
        try:
            result = self._connection.run(
                shlex.join(argv), hide=True, warn=True, in_stream=WholeText(stdin), encoding="utf-8", timeout=timeout_s
            )
        except invoke.CommandTimedOut as error:
            self.close()  # The connection may be dead; the next command makes a new one.
            raise UnreachableError(f"running `{argv[0]}` on {self}: no answer after {timeout_s} s.") from error
        except KeyboardInterrupt as pressed:
            self.close()
            raise KeyboardInterrupt(f"`{shown(argv)}` may still run on {self}") from pressed
        except (OSError, EOFError, paramiko.SSHException, invoke.ThreadException) as error:
            raise self._lost(f"running `{argv[0]}` on {self}", error) from error
        if result.exited == NO_EXIT_CODE:  # The connection was lost, or a signal ended the command, as in a reboot.
            if self._is_silent():
                raise self._lost(f"running `{argv[0]}` on {self}")
            self.close()
            raise UnreachableError(f"running `{argv[0]}` on {self}: it ended without an exit code.")
        completed = Completed(result.exited, result.stdout, result.stderr)
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
        if self.read(path) == text and int(self.run(("stat", "-c", "%a", path)).stdout, 8) == int(mode, 8):
            return False
        self.run(("sh", "-c", PUT_SCRIPT, "put", path, mode), stdin=text)
        return True

    def pieces(self, path: str, start: int, end: int) -> Iterator[bytes]:
        """Yield the bytes of a file from ``start`` up to ``end``; fewer only when the file has become shorter."""
        self.connect()
        assert self._connection
        try:
            with self._files().open(path, "rb") as file:
                file.seek(start)
                file.prefetch(end)
                while start < end and (piece := file.read(min(PIECE_BYTES, end - start))):
                    start += len(piece)
                    yield piece
        except FileNotFoundError as error:
            raise RemoteError(
                f"reading {path} of {self}: it does not exist any more. Run the same command again."
            ) from error
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise self._lost(f"reading {path} of {self}", error) from error

    def send(self, local: Path, path: str) -> None:
        """Upload a file to ``path`` atomically; make its folder."""
        self.run(("mkdir", "-p", str(PurePosixPath(path).parent)))
        assert self._connection
        try:
            with local.open("rb") as content:
                self._files().putfo(content, f"{path}.part")
            self._files().posix_rename(f"{path}.part", path)
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise self._lost(f"sending {local} to {self}", error) from error

    def extend(self, local: Path, path: str) -> Iterator[int]:
        """Continue the upload of a file to ``path``; yield the bytes sent so far.

        The present bytes count as the file's beginning; the caller compares hashes.
        """
        self.run(("mkdir", "-p", str(PurePosixPath(path).parent)))
        assert self._connection
        try:
            with local.open("rb") as content, self._files().open(path, "ab") as target:
                target.set_pipelined(True)
                there = target.stat().st_size or 0
                content.seek(there)
                yield there
                while piece := content.read(PIECE_BYTES):
                    target.write(piece)
                    there += len(piece)
                    yield there
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise self._lost(f"sending {local} to {self}", error) from error

    def _files(self) -> paramiko.SFTPClient:
        assert self._connection
        files = self._connection.sftp()
        channel = files.get_channel()
        assert channel
        channel.settimeout(SILENT_S)
        return files

    def _is_silent(self) -> bool:
        return self._heartbeat is not None and self._heartbeat.silent

    def _lost(self, doing: str, error: BaseException | None = None) -> UnreachableError:
        """Close the connection and return what became of it, as an error."""
        silent = self._is_silent()
        self.close()
        if silent:
            return UnreachableError(
                f"{doing}: the connection was lost (silent for {self._patience.silent_s:.0f} s). Check the machine and "
                "the network (fab status), then run the same command again."
            )
        return UnreachableError(f"{doing}: the connection was lost ({reason(error)}).")

    def close(self) -> None:
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


def shown(argv: Sequence[str]) -> str:
    """Return the beginning of a command for a message."""
    return shlex.join(argv).split("\n")[0][:200]
