"""A stack's state file in Pulumi's file backend, its backups, and how a broken one is restored.

It is read without `pulumi`, which lists no stack while one file is broken.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from microcluster.accounts.registry import ACCOUNTS, machine_types
from microcluster.core import stack_keys
from microcluster.core.files import write_whole
from microcluster.core.home import Home, Owner
from microcluster.core.plain_text import say
from microcluster.lifecycle import pulumi
from microcluster.setup.environment import BACKEND, settings
from microcluster.setup.errors import CommandFailed

PROJECT_NAME = "microcluster"
QUICK_S = 60
ACCOUNT_TYPES = tuple(f"{name}:index:" for name in ACCOUNTS)
"""Prefixes of the types of the accounts' resources."""
LEDGERS = tuple(f"{each}Ledger" for each in ACCOUNT_TYPES)


class BrokenStateError(Exception):
    """The file is no valid state; the message says why."""


@dataclass(frozen=True)
class Held:
    """A resource of the account in the state."""

    kind: str
    name: str
    id: str | None
    """Id in the account; None if its order was pending when the state was written."""


@dataclass(frozen=True)
class Snapshot:
    """The content of a state file."""

    resources: int
    held: tuple[Held, ...]
    pending_creates: int = 0
    outputs: Mapping[str, Any] = field(default_factory=dict)
    """The stack's, of which secrets are encrypted."""
    owner: Owner | None = None
    """Owner that its resources name; None while it holds nothing."""
    account_id: str | None = None
    """Id of the account that its ledger checked; None without a ledger."""

    @property
    def machines(self) -> set[str]:
        """The ids of the machines."""
        return {each.id for each in self.held if each.id and each.kind in machine_types()}


NOTHING = Snapshot(0, ())


def path_of(stack: str, home: Home) -> Path:
    """Return the path of a stack's state file."""
    return _folder("stacks", home) / f"{stack}.json"


def ensure(names: tuple[str, ...], home: Home) -> tuple[str, ...]:
    """Create the missing states; return their names."""
    home.make()
    new_stacks = tuple(name for name in names if not path_of(name, home).exists())
    for name in new_stacks:
        completed = pulumi.answer(home, "stack", "init", name, "--no-select", limit_s=QUICK_S)
        if completed.returncode:
            raise CommandFailed(
                f"Creating the state of stack {name}: {pulumi.reason(completed)}. "
                f"Run `. ./env.sh` and `pulumi stack init {name}` to see more."
            )
    return new_stacks


def prepare_stacks(names: tuple[str, ...], home: Home) -> None:
    """Create the missing states and keys of these stacks."""
    new = ensure(names, home)
    made = [name for name in names if stack_keys.ensure(home.folder_of(name), name)]
    if new:
        say(f"    new in {home.root}: the state of {', '.join(new)}")
    if made:
        say(f"    new in {home.keys}: ssh keys of {', '.join(made)}")


def read(stack: str, home: Home) -> Snapshot:
    """Return a stack's state; an empty one without a file.

    Raises:
        BrokenStateError: the file is empty, cut off, or no state.
    """
    try:
        return parse(path_of(stack, home).read_bytes())
    except FileNotFoundError:
        return NOTHING


def readable(stack: str, home: Home) -> Snapshot | None:
    """Return a stack's state; None where it cannot be read, which is no reason to leave the account alone."""
    with suppress(OSError, BrokenStateError):
        return read(stack, home)
    return None


def known(stack: str, home: Home) -> Snapshot:
    """Return a stack's state; an empty one if the stack does not exist.

    Raises:
        CommandFailed: it cannot be read.
    """
    try:
        return read(stack, home)
    except BrokenStateError as broken:
        raise CommandFailed(
            f"Reading Pulumi's state of stack {stack} in {path_of(stack, home)}: {broken}. "
            f"Next: `fab recover --stack {stack}` restores the newest readable copy and compares it with the account."
        ) from broken


def outputs(stack: str, home: Home) -> Mapping[str, Any]:
    """Return a stack's outputs; none if the stack does not exist.

    Raises:
        CommandFailed: they cannot be read.
    """
    if is_in(home):
        return known(stack, home).outputs
    words = ("stack", "output", "--json", "-s", stack)
    completed = pulumi.answer(home, *words, limit_s=QUICK_S, environment=settings(home) | os.environ)
    if completed.returncode == 0:
        return json.loads(completed.stdout or "{}")
    if "no stack named" in completed.stderr:
        return {}
    raise CommandFailed(
        f"Reading the outputs of stack {stack} with pulumi: {pulumi.reason(completed)}. Run: make setup, then try again."
    )


def is_in(home: Home) -> bool:
    """Return whether the states are in this home; what the person has set holds: a backend that a team shares."""
    ours = settings(home)
    return (ours | os.environ)[BACKEND] == ours[BACKEND]


def all_owners(home: Home) -> dict[str, Owner]:
    """Return the owner of every stack whose state here holds something and can be read."""
    owners = {}
    for path in sorted(_folder("stacks", home).glob("*.json")):
        with suppress(OSError, BrokenStateError):
            owners[path.stem] = parse(path.read_bytes()).owner
    return {name: owner for name, owner in owners.items() if owner}


def parse(content: bytes) -> Snapshot:
    """Read a state file's content."""
    if not content.strip():
        raise BrokenStateError("it is empty")
    try:
        latest = json.loads(content)["checkpoint"].get("latest") or {}
        resources, under_way = latest.get("resources") or [], latest.get("pending_operations") or []
        held_resources = [_held(each) for each in resources]
        outputs = next((each.get("outputs") or {} for each in resources if each["type"] == pulumi.STACK), {})
        ledgers = [each.get("outputs") or {} for each in resources if each["type"] in LEDGERS]
        pending = [_held(each["resource"]) for each in under_way if each["type"] == "creating"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BrokenStateError(f"it is no Pulumi state ({type(error).__name__}: {error})") from error
    known = {each.name for each in held_resources}
    pending_alone = [each for each in pending if each.name not in known]
    of_account = tuple(each for each in (*held_resources, *pending_alone) if each.kind.startswith(ACCOUNT_TYPES))
    account_id = next((str(each["accountId"]) for each in ledgers if each.get("accountId")), None)
    owner = next(filter(None, (owner_in(each.get("inputs") or {}) for each in resources)), None)
    return Snapshot(len(resources), of_account, len(pending), outputs, owner, account_id)


def older_copies(stack: str, home: Home) -> Iterator[Path]:
    """Yield the backups, newest first: Pulumi keeps the previous write, and a copy of each operation.

    What a stack left that had the name before and was renamed is no copy of this one.
    """
    before = path_of(stack, home).with_suffix(".json.bak")
    copies = [path for path in (_folder("backups", home) / stack).glob(f"{stack}.*.json") if _written(path)]
    for path in (before, *sorted(copies, key=_written, reverse=True)):
        owner = None
        with suppress(OSError, BrokenStateError):
            owner = parse(path.read_bytes()).owner
        if path.is_file() and (owner is None or owner.stack == home.label_of(stack)):
            yield path


def _folder(name: str, home: Home) -> Path:
    return home.state / ".pulumi" / name / PROJECT_NAME


def _written(path: Path) -> int:
    """Nanoseconds since 1970 in the name of a backup."""
    stamp = path.name.split(".")[-2]
    return int(stamp) if stamp.isdecimal() else 0


def _held(resource: Mapping[str, Any]) -> Held:
    identity = resource.get("id")
    return Held(str(resource["type"]), str(resource["urn"]).rpartition("::")[2], str(identity) if identity else None)


def owner_in(inputs: Mapping[str, Any]) -> Owner | None:
    """Read whose a resource is: a ledger's inputs say it, and the facts on the standard input of a step."""
    with suppress(ValueError, TypeError):
        inputs = dict(json.loads(inputs["stdin"])) if "stdin" in inputs else inputs
    stack, mark = inputs.get("stack"), inputs.get("mark")
    return Owner(stack, mark) if isinstance(stack, str) and isinstance(mark, str) else None


def repair(stack: str, home: Home) -> list[str]:
    """Make the state of ``stack`` readable; return what was done, one sentence each."""
    path, reason = path_of(stack, home), "it is gone"
    try:
        read(stack, home)
        if path.exists():
            return []
    except BrokenStateError as broken:
        reason = str(broken)
    report = [f"state of stack {stack}: {reason}"]
    if path.exists():
        aside = path.with_name(f"{path.name}.broken-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}")
        os.replace(path, aside)
        report.append(f"set aside as {aside.name}")
    copy = newest_readable(stack, home)
    if copy:
        write_whole(path, copy.read_bytes())
        return [*report, f"restored from {copy.name}, which the refresh compares with the account"]
    ensure((stack,), home)
    return [*report, "no copy can be read; began an empty state: resources in the account are found by their mark"]


def newest_readable(stack: str, home: Home) -> Path | None:
    """Return the newest readable copy, or None."""
    for copy in older_copies(stack, home):
        try:
            parse(copy.read_bytes())
        except (OSError, BrokenStateError):
            continue
        return copy
    return None
