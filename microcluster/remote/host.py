"""One SSH address with commands: the only class that knows Fabric, and the only place where words become a line."""

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
    """Something on or on the way to a host failed; the message is a full sentence with the next step."""


class UnreachableError(RemoteError):
    """Nothing answered as SSH, or the connection was lost; trying again may help."""


class LoginRefusedError(RemoteError):
    """The host is the right one and refused our key."""


class HostKeyError(RemoteError):
    """Something else than the machine we ordered answered; nothing was sent to it."""


@dataclass(frozen=True)
class Completed:
    """How a command ended."""

    exit_code: int
    stdout: str
    stderr: str


class CommandError(RemoteError):
    """A command ended with an exit code that its caller did not expect."""

    def __init__(self, host: str, argv: Sequence[str], completed: Completed) -> None:
        """Keep the end of what it printed; a secret is never in it, since secrets travel on stdin only."""
        self.host, self.argv, self.exit_code = host, tuple(argv), completed.exit_code
        printed = (completed.stdout + completed.stderr).strip().splitlines()
        self.tail = "\n".join(printed[-TAIL_LINES:])
        super().__init__(f"running `{shown(argv)}` on {host}: exit code {completed.exit_code}.\n{self.tail}".rstrip())


class Host:
    """A machine, reached with the stack's own key and only if it shows the host key that is pinned."""

    def __init__(  # noqa: PLR0913 - port and patience are the tests'
        self,
        facts: cluster_facts.Host,
        user: str,
        key_file: str,
        *,
        port: int = 22,
        trusted_key: str | None = None,
        patience: Patience = Patience(),  # noqa: B008 - frozen
    ) -> None:
        """Open nothing yet; the first command connects.

        Args:
            trusted_key: the host key that a person vouched for; without it the one that the machine was ordered with holds.
            patience: how long the connection may be silent.
        """
        self._patience = patience
        self.facts, self.user, self.key_file, self.port = facts, user, key_file, port
        self.pinned_key = trusted_key or facts.host_key
        self.address = facts.public_address or facts.private_address
        self._connection: fabric.Connection | None = None
        self._heartbeat: Heartbeat | None = None

    def __str__(self) -> str:
        """Name the host as errors do."""
        return f"{self.facts.name} (guest {self.facts.guest_id}, {self.address})"

    def connect(self) -> None:
        """Connect and log in, or raise what stands in the way."""
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
        """Return the public line of the host key that the machine shows; nothing of ours is sent, nobody logs in."""
        with self._stranger() as transport:
            transport.start_client(timeout=CONNECT_TIMEOUT_S)
            return host_key.line(transport.get_remote_server_key())

    def offered_logins(self) -> frozenset[str]:
        """Return the ways to log in that the machine's sshd offers to somebody who shows nothing: "publickey", "password"."""
        with self._stranger() as transport:
            transport.connect(hostkey=host_key.parse(self.pinned_key))
            try:
                transport.auth_none(self.user)
            except paramiko.BadAuthenticationType as refused:
                return frozenset(refused.allowed_types)
        return frozenset({"none"})

    @contextlib.contextmanager
    def _stranger(self) -> Iterator[paramiko.Transport]:
        """A connection of its own on which nobody logs in."""
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
            stdin: what it reads; the only way for a secret.
            accept: exit codes that are an answer; every other one raises CommandError.

        Raises:
            KeyboardInterrupt: at once when a person presses Ctrl-C, with what may still go on over there.
        """
        self.connect()
        assert self._connection
        try:
            result = self._connection.run(
                shlex.join(argv), hide=True, warn=True, in_stream=WholeText(stdin), encoding="utf-8", timeout=timeout_s
            )
        except invoke.CommandTimedOut as error:
            self.close()  # The way there may be gone without a word; the next command finds out.
            raise UnreachableError(f"running `{argv[0]}` on {self}: no answer after {timeout_s} s.") from error
        except KeyboardInterrupt as pressed:
            self.close()
            raise KeyboardInterrupt(f"`{shown(argv)}` may still go on on {self}") from pressed
        except (OSError, EOFError, paramiko.SSHException, invoke.ThreadException) as error:
            raise self._lost(f"running `{argv[0]}` on {self}", error) from error
        if result.exited == NO_EXIT_CODE:  # The way was lost, or a signal ended the command, as in a reboot.
            if self._is_silent():
                raise self._lost(f"running `{argv[0]}` on {self}")
            self.close()
            raise UnreachableError(f"running `{argv[0]}` on {self}: it ended without an exit code.")
        completed = Completed(result.exited, result.stdout, result.stderr)
        if completed.exit_code not in accept:
            raise CommandError(str(self), argv, completed)
        return completed

    def read(self, path: str) -> str | None:
        """Return the text of a file, or None where there is none."""
        if self.run(("test", "-f", path), accept=(0, 1)).exit_code:
            return None
        return self.run(("cat", path)).stdout

    def put(self, path: str, text: str, mode: str = "0644") -> bool:
        """Replace a file at once if its text or mode differ; return whether they did."""
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
                f"reading {path} of {self}: it is not there any more. Run the same command again."
            ) from error
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise self._lost(f"reading {path} of {self}", error) from error

    def send(self, local: Path, path: str) -> None:
        """Let a file of this computer lie at ``path``, whole or not at all; folders on the way are made."""
        self.run(("mkdir", "-p", str(PurePosixPath(path).parent)))
        assert self._connection
        try:
            with local.open("rb") as content:
                self._files().putfo(content, f"{path}.part")
            self._files().posix_rename(f"{path}.part", path)
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise self._lost(f"sending {local} to {self}", error) from error

    def extend(self, local: Path, path: str) -> Iterator[int]:
        """Let ``path`` have the bytes of a file of this computer that it lacks at its end; yield how many are there so far.

        What is there is taken for the beginning of the file, as an earlier try has left it: the caller compares hashes.
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
                f"{doing}: the connection was lost (silent for {self._patience.silent_s:.0f} s). See whether the machine and "
                "the network live (fab status), then run the same command again."
            )
        return UnreachableError(f"{doing}: the connection was lost ({reason(error)}).")

    def close(self) -> None:
        """End the connection."""
        if self._connection:
            self._connection.close()
            self._connection = None

    def _other_key(self, shown: paramiko.PKey) -> str:
        ordered = self.pinned_key == self.facts.host_key
        pinned = "the one it was ordered with" if ordered else "the one that was trusted"
        return (
            f"connecting to {self}: it shows the host key {host_key.fingerprint(host_key.line(shown))}, which is not "
            f"{pinned}. Nothing was sent to it. If you know that this key is right: fab trust {self.facts.name}"
        )


def shown(argv: Sequence[str]) -> str:
    """Return the beginning of a command as it may stand in a sentence."""
    return shlex.join(argv).split("\n")[0][:200]
