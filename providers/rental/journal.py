"""The journal of a stack: what was about to be ordered, on the disk before the order is sent.

It knows what no state and, for up to two minutes, no list of the account knows: that an order may have been accepted whose
answer nobody saw. It is a help, never a condition: with the journal lost, the owner mark still finds everything.
"""

import errno
import hashlib
import json
import os
import threading
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.home import Home, Owner
from providers.rental import waiting
from providers.rental.errors import ProviderError
from providers.rental.waiting import Instant

MEMBERS = {
    "begun": ("journal",),
    "intent": ("attempt", "at", "account", "mark", "name", "kind", "order"),
    "lost": ("attempt",),
    "receipt": ("attempt", "order_id"),
    "ordered": ("attempt", "id"),
    "refused": ("attempt", "code"),
    "closed": ("attempt", "id"),
}
"""What a line of each kind holds at least; anything else is none of ours."""
JOURNAL_DIGITS = 8
_LOCK = threading.Lock()
_BEGINNING = threading.Lock()


@dataclass(frozen=True)
class Intent:
    """One order that is about to be sent."""

    account: str
    mark: str
    name: str
    """The logical name of the resource it is for."""
    kind: str
    order: str
    """What is ordered, as a digest without secrets."""
    hostname: str | None = None
    attempt: str = ""
    at: str = ""
    """By the wall clock: for people, as nothing is decided by it."""
    order_id: str = ""
    """The account's number of the order, where its receipt named nothing else."""
    sold: str = ""
    """What a price list needs to know of it."""
    called: str = ""
    """What tells it from others of its kind and owner, as the account shows it."""
    ended: Instant | None = None
    """When the call was over; None if it was killed, or is not over."""


class Journal:
    """The journal file of one stack and mark; every line is on the disk before the call returns."""

    def __init__(self, stack: str, owner_mark: str) -> None:
        self.owner = Owner(stack, owner_mark)
        self.path = Home.of().root / "journal" / f"{self.owner}.jsonl"

    def intend(self, intent: Intent) -> Intent:
        """Write an intent, and return it with its attempt and time.

        Raises:
            ProviderError: it cannot be written, so nothing may be ordered.
        """
        dated = replace(intent, attempt=uuid.uuid4().hex, at=waiting.wall().isoformat())
        event = {"event": "intent", **{key: value for key, value in asdict(dated).items() if value}}
        self._must_append(event, f"the order of {intent.kind} {intent.name}")
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

    def found(self, account_id: str, kind: str, called: str, object_id: str) -> None:
        """Write that an order whose answer got lost has made what the account shows under its name: a receipt has to name it."""
        if object_id not in self.made(account_id, kind):
            lost = [each for each in self.unresolved(account_id, kind=kind) if each.called == called]
            for intent in lost[:1]:
                self.ordered(intent.attempt, object_id)

    def closed(self, account_id: str, kind: str, object_id: str) -> None:
        """Write that what an order made is gone and billed no more, so that nobody waits for it to appear."""
        intent = self.accepted(account_id, kind).get(object_id)
        if intent is not None:
            closed = {"event": "closed", "attempt": intent.attempt, "id": object_id}
            self._outcome({**closed, "at": waiting.wall().isoformat()})

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

    def unresolved(self, account_id: str, name: str | None = None, kind: str | None = None) -> list[Intent]:
        """List the intents in this account whose outcome nobody wrote, oldest first."""
        intents = unresolved(self.events())
        return [
            each
            for each in intents
            if each.account == account_id and name in (None, each.name) and kind in (None, each.kind)
        ]

    def accepted(self, account_id: str, kind: str) -> dict[str, Intent]:
        """Return what was ordered in this account and not closed since, by the id of what was made."""
        return accepted(_of(self.events(), account_id, kind))

    def kinds(self, account_id: str) -> list[str]:
        """List the kinds of what was to be ordered in this account."""
        intents = [each for each in self.events() if each["event"] == "intent" and each["account"] == account_id]
        return sorted({each["kind"] for each in intents})

    def made(self, account_id: str, kind: str) -> dict[str, Intent]:
        """Return whatever was ordered in this account, closed or not, by the id of what was made."""
        return made(_of(self.events(), account_id, kind))

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
            self._append({**event, **asdict(waiting.now())})
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


def unresolved(events: Iterable[Mapping[str, Any]]) -> list[Intent]:
    """Pair intents with outcomes, and return the intents that have none."""
    intents: dict[str, Intent] = {}
    for event in events:
        if event["event"] == "intent":
            intents[event["attempt"]] = _intent(event)
        elif event["event"] in ("lost", "receipt") and (intent := intents.get(event["attempt"])):
            order_id = event.get("order_id", "")
            intents[event["attempt"]] = replace(intent, order_id=order_id, ended=waiting.read_instant(event))
        else:
            intents.pop(event.get("attempt", ""), None)
    return list(intents.values())


def accepted(events: Iterable[Mapping[str, Any]]) -> dict[str, Intent]:
    """Pair the ids of what was made, and not closed since, with its intents."""
    events = list(events)
    closed = {event["id"] for event in events if event["event"] == "closed"}
    return {object_id: intent for object_id, intent in made(events).items() if object_id not in closed}


def made(events: Iterable[Mapping[str, Any]]) -> dict[str, Intent]:
    """Pair the ids of whatever was made with its intents."""
    intents: dict[str, Intent] = {}
    found = {}
    for event in events:
        if event["event"] == "intent":
            intents[event["attempt"]] = _intent(event)
        elif event["event"] == "ordered" and event["attempt"] in intents:
            found[event["id"]] = replace(intents[event["attempt"]], ended=waiting.read_instant(event))
    return found


def digest(order: Any) -> str:
    """Name an order by what it asks for; host keys and user data are left out, as they differ each time."""
    plain = json.dumps(_without_secrets(order), sort_keys=True, default=str)
    return hashlib.sha256(plain.encode()).hexdigest()


def _of(events: Iterable[Mapping[str, Any]], account_id: str, kind: str) -> list[Mapping[str, Any]]:
    """Keep what is about one kind of thing in one account: a key and a guest may have the same number."""
    events = list(events)
    wanted = (account_id, kind)
    intents = {each.get("attempt") for each in events if (each.get("account"), each.get("kind")) == wanted}
    return [each for each in events if each.get("attempt") in intents]


def _intent(event: Mapping[str, Any]) -> Intent:
    return Intent(**{key: event[key] for key in Intent.__annotations__ if key in event})


def _without_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_secrets(member) for key, member in value.items() if key != "userData"}
    return [_without_secrets(member) for member in value] if isinstance(value, list | tuple) else value


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
