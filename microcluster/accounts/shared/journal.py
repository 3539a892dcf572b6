"""The journal of a stack: what was about to be ordered, on the disk before the order is sent.

It knows what no state and, for up to two minutes, no list of the account knows: that an order may have been accepted whose
answer nobody saw. It is a help, never a condition: with the journal lost, the owner mark still finds everything.
"""

import errno
import json
import os
import threading
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from microcluster.accounts.shared.errors import ProviderError
from microcluster.core.home import Home, Owner

MEMBERS = {
    "begun": ("journal",),
    "intent": ("attempt", "at", "account", "name", "kind"),
    "lost": ("attempt",),
    "receipt": ("attempt", "order_id"),
    "ordered": ("attempt", "id"),
    "refused": ("attempt", "code"),
    "closed": ("attempt", "id"),
}
"""Required members of a line, by its event; any other line is not ours."""
OPEN = ("intent", "lost", "receipt")
"""Events after which the outcome of an order is unknown."""
JOURNAL_DIGITS = 8
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Clock that goes on while the computer sleeps and is never set; comparable within one boot, also between processes."""
_LOCK = threading.Lock()
_BEGINNING = threading.Lock()


@dataclass(frozen=True)
class Instant:
    """A moment of one boot of this computer."""

    boot: str
    seconds: float


_FIRST_READ: dict[str, Instant] = {}
"""First reading of each order whose end this process cannot date."""


@dataclass(frozen=True)
class Intent:
    """One order that is about to be sent, and what became of it."""

    name: str
    """The logical name of the resource it is for."""
    kind: str
    hostname: str | None = None
    sold: str = ""
    """Facts for the price list."""
    called: str = ""
    """Unique name among the owner's resources of its kind, as the account shows it."""
    account: str = ""
    attempt: str = ""
    at: str = ""
    """Time by the wall clock, which somebody may set: for people, and to know an order by its date with ``ahead_s``."""
    ahead_s: float = 0.0
    """Seconds by which that clock was ahead of the account's; 0 where an older version wrote it or nobody knew."""
    event: str = "intent"
    """The newest that is written of it."""
    order_id: str = ""
    """The account's number of the order, where its receipt named nothing else."""
    id: str = ""
    """Id of what it made."""
    ended: Instant | None = None
    """End of the call; None if it was killed, or is not over."""

    @property
    def over_s(self) -> float:
        """Seconds for which the order's call has certainly been over.

        Nobody knows when a killed process's call ended, nor how long ago another boot was: that counts from when we first read
        of it.
        """
        over = since(self.ended)
        if over is None:
            over = since(_FIRST_READ.setdefault(self.attempt, now()))
        return over or 0.0


class Journal:
    """The journal file of one stack and mark, read for one account; every line is on the disk before the call returns."""

    def __init__(self, stack: str, owner_mark: str, account_id: str) -> None:
        self.owner, self.account_id = Owner(stack, owner_mark), account_id
        self.path = Home.of().root / "journal" / f"{self.owner}.jsonl"

    def intend(self, intent: Intent) -> Intent:
        """Write an intent, and return it with its attempt and time.

        Raises:
            ProviderError: it cannot be written, so nothing may be ordered.
        """
        dated = replace(intent, account=self.account_id, attempt=uuid.uuid4().hex, at=wall().isoformat())
        self._must_append(
            {key: value for key, value in asdict(dated).items() if value}, f"the order of {intent.kind} {intent.name}"
        )
        return dated

    def identity(self) -> str:
        """Return the journal's own name, which another one, or one that was lost and begun anew, does not have.

        Raises:
            ProviderError: it has none yet, and none can be written.
        """
        with _BEGINNING:
            named = next((event["journal"] for event in self.events() if event["event"] == "begun"), None)
            if named is None:
                named = uuid.uuid4().hex[:JOURNAL_DIGITS]
                self._must_append({"event": "begun", "journal": named}, "the journal's name")
        return named

    def lost(self, attempt: str) -> None:
        """Write that the call of an order is over and its answer got lost: the intent stays unresolved."""
        self._outcome({"event": "lost", "attempt": attempt})

    def receipt(self, attempt: str, order_id: str) -> None:
        """Write that an order was accepted whose receipt does not name what it makes: the intent stays unresolved."""
        self._outcome({"event": "receipt", "attempt": attempt, "order_id": order_id})

    def ordered(self, attempt: str, object_id: str) -> None:
        """Write that an order was accepted, and what it made."""
        self._outcome({"event": "ordered", "attempt": attempt, "id": object_id})

    def refused(self, attempt: str, code: str) -> None:
        """Write that an order was not accepted, and why."""
        self._outcome({"event": "refused", "attempt": attempt, "code": code})

    def found(self, kind: str, called: str, object_id: str) -> None:
        """Write that an order whose answer got lost has made what the account shows under its name: a receipt has to name it."""
        if object_id not in self.made(kind):
            lost = [each for each in self.unresolved(kind=kind) if each.called == called]
            for intent in lost[:1]:
                self.ordered(intent.attempt, object_id)

    def closed(self, kind: str, object_id: str) -> None:
        """Write that what an order made is gone and billed no more, so that nobody waits for it to appear."""
        intent = self.accepted(kind).get(object_id)
        if intent is not None:
            closed = {"event": "closed", "attempt": intent.attempt, "id": object_id}
            self._outcome({**closed, "at": wall().isoformat()})

    def events(self) -> list[dict[str, Any]]:
        """Read every whole line; a line that a crash tore is no event.

        Raises:
            ProviderError: it is there and cannot be read: an order in it may stand, so that it is not taken for empty.
        """
        try:
            text = self.path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ProviderError(
                f"reading the journal {self.path}: {error.strerror or error}. It says what was ordered for stack "
                f"{self.owner.stack}; without it nothing is ordered and nothing is called clean. Make it readable "
                "by you, or set MICROCLUSTER_HOME to the folder that has it, and run the command again."
            ) from error
        return [event for line in text.splitlines() if (event := _event(line))]

    def intents(self, kind: str | None = None) -> list[Intent]:
        """List the intents to order in the account, oldest first: a key and a guest may have the same number."""
        found = intents(self.events())
        return [each for each in found if each.account == self.account_id and kind in (None, each.kind)]

    def unresolved(self, name: str | None = None, kind: str | None = None) -> list[Intent]:
        """List the intents whose outcome nobody wrote, oldest first."""
        found = self.intents(kind)
        return [each for each in found if each.event in OPEN and name in (None, each.name)]

    def accepted(self, kind: str) -> dict[str, Intent]:
        """Return ordered resources that were not closed since, by id."""
        found = self.intents(kind)
        closed = {each.id for each in found if each.event == "closed"}
        return {each.id: each for each in found if each.id and each.id not in closed}

    def made(self, kind: str) -> dict[str, Intent]:
        """Return whatever was ordered, closed or not, by the id of what was made."""
        return {each.id: each for each in self.intents(kind) if each.id}

    def kinds(self) -> list[str]:
        """List the kinds of what was to be ordered."""
        return sorted({each.kind for each in self.intents()})

    def _must_append(self, event: Mapping[str, Any], what: str) -> None:
        try:
            self._append(event)
        except OSError as error:
            raise ProviderError(
                f"writing down {what} in {self.path}: {error.strerror or error}. Nothing was ordered. Make the folder "
                "writable, or set MICROCLUSTER_HOME to one that is, and run the command again."
            ) from error

    def _outcome(self, event: Mapping[str, Any]) -> None:
        # What is ordered is ordered: a disk that is full by now must not make a failure of it. The next look resolves it.
        try:
            self._append({**event, **asdict(now())})
        except OSError:
            return

    def _append(self, event: Mapping[str, Any]) -> None:
        with _LOCK:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            is_new = not self.path.exists()
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                _write(file, json.dumps(event, sort_keys=True))
            finally:
                os.close(file)
            if is_new:
                _sync(self.path.parent)


def intents(events: Iterable[Mapping[str, Any]]) -> list[Intent]:
    """Pair intents with what was written of them later."""
    found: dict[str, Intent] = {}
    for event in events:
        attempt = event.get("attempt", "")
        if event["event"] == "intent":
            found[attempt] = Intent(**{key: event[key] for key in Intent.__annotations__ if key in event})
        elif attempt in found:
            intent = found[attempt]
            # Two commands may have seen it make two things: neither is lost.
            key = f"{attempt} {event['id']}" if intent.id and event.get("id", intent.id) != intent.id else attempt
            found[key] = _followed(found.get(key) or replace(intent, id=""), event)
    return list(found.values())


def now() -> Instant:
    """Return the moment that it is; orders are decided by it, never by the wall clock."""
    return Instant(_boot(), time.clock_gettime(STEADY))


def since(moment: Instant | None) -> float | None:
    """Return the seconds since a moment; None if it is of another boot, of which nobody knows when it was."""
    here = now()
    if moment is None or moment.boot != here.boot or moment.seconds > here.seconds:
        return None
    return here.seconds - moment.seconds


def wall() -> datetime:
    """Return the date and time to show; anybody may set it, so nothing is decided by it."""
    return datetime.now(UTC)


def _followed(intent: Intent, event: Mapping[str, Any]) -> Intent:
    if event["event"] == "closed":
        return replace(intent, event="closed")
    if intent.id:
        return intent  # Something was made, whatever another process has given up.
    known = {key: event.get(key, "") for key in ("event", "order_id", "id")}
    return replace(intent, **known, ended=_instant(event))


def _instant(event: Mapping[str, Any]) -> Instant | None:
    boot, seconds = event.get("boot"), event.get("seconds")
    return Instant(boot, float(seconds)) if isinstance(boot, str) and isinstance(seconds, int | float) else None


@cache
def _boot() -> str:
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return uuid.uuid4().hex  # Without it no two processes can compare their moments.


def _event(line: str) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
        datetime.fromisoformat(event.get("at") or "1970-01-01T00:00:00+00:00").astimezone(UTC)
    except (ValueError, TypeError, AttributeError):
        return None
    needed = MEMBERS.get(str(event.get("event")), ())
    return event if needed and all(isinstance(event.get(key), str) for key in needed) else None


def _write(file: int, line: str) -> None:
    size = os.fstat(file).st_size
    # After a torn line the next one begins anew, or both would be lost.
    torn = size > 0 and os.pread(file, 1, size - 1) != b"\n"
    content = f"{chr(10) * torn}{line}\n".encode()
    if os.write(file, content) < len(content):  # The disk had room for a part of it.
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(file)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
