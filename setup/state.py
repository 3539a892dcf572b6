"""Where Pulumi remembers what is rented: a folder of the home, with one stack per stack file."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from setup.environment import PULUMI, Home, child_environment
from setup.errors import SetupError
from setup.process import Step, output_of, run_logged

QUICK_S = 60
PROJECT_NAME = "microcluster"
DEAD = ("Z", "X")  # States of a process that has ended and that nobody has waited for yet.


@dataclass(frozen=True)
class Lock:
    """What a running (or killed) ``pulumi`` leaves beside the state."""

    pid: int
    host: str
    since: str


def resource_counts(home: Home) -> Mapping[str, int]:
    """The stacks that exist in the backend, with how many resources each holds."""
    listing = output_of((str(PULUMI), "stack", "ls", "--json"), child_environment(home), QUICK_S)
    if listing is None:
        raise SetupError(
            f"Reading the stacks in {home.state}: pulumi failed. Run `. ./env.sh` and `pulumi stack ls` to see why."
        )
    return {stack["name"].rsplit("/", 1)[-1]: stack.get("resourceCount") or 0 for stack in json.loads(listing)}


@dataclass(frozen=True)
class Holdings:
    """What Pulumi's state says of a stack."""

    resources: int
    rented: int
    """Resources of the account, orders that were under way when a pulumi was killed included."""


def holdings(name: str, home: Home) -> Holdings:
    """Count what the state holds of a stack; nothing when the stack does not exist."""
    if not resource_counts(home).get(name):
        return Holdings(0, 0)
    export = output_of((str(PULUMI), "stack", "export", "-s", name), child_environment(home), QUICK_S)
    if export is None:
        raise SetupError(
            f"Reading the state of stack {name}: pulumi failed. Run `. ./env.sh` and `pulumi stack export -s {name}` to see why."
        )
    return parse_export(json.loads(export))


def parse_export(export: Mapping[str, Any]) -> Holdings:
    """Count the resources in what ``pulumi stack export`` prints."""
    deployment = export["deployment"]
    resources = deployment.get("resources") or []
    under_way = [operation["resource"] for operation in deployment.get("pending_operations") or []]
    rented = [resource for resource in (*resources, *under_way) if resource["type"].startswith("softlayer:")]
    return Holdings(len(resources), len(rented))


def ensure_stacks(names: tuple[str, ...], home: Home) -> tuple[str, ...]:
    """Create those of the stacks that do not exist yet; return their names."""
    home.make()
    existing = resource_counts(home)
    new = tuple(name for name in names if name not in existing)
    for name in new:
        _create(name, home)
    return new


def _create(name: str, home: Home) -> None:
    argv = (str(PULUMI), "stack", "init", name, "--no-select")
    hint = f"Run `. ./env.sh` and `pulumi stack init {name}` to see more."
    step = Step(f"creating stack {name}", "2 s", argv, home.logs / "stack.log", hint, QUICK_S)
    run_logged(step, child_environment(home))


def stale_lock(name: str, home: Home) -> Lock | None:
    """The lock of a ``pulumi`` that was killed while it worked on the stack; None when there is none, or it lives."""
    return next(
        (lock for lock in locks(name, home) if lock.host == socket.gethostname() and not _is_pulumi(lock.pid)), None
    )


def locks(name: str, home: Home) -> tuple[Lock, ...]:
    """The locks on a stack in the file backend."""
    folder = home.state / ".pulumi" / "locks" / "organization" / PROJECT_NAME / name
    found = (json.loads(path.read_text()) for path in sorted(folder.glob("*.json")))
    return tuple(Lock(entry["pid"], entry["hostname"], entry["timestamp"]) for entry in found)


def _is_pulumi(pid: int) -> bool:
    try:
        name, _, rest = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(")")
    except OSError:
        return False
    return "pulumi" in name and rest.split()[0] not in DEAD


def refuse_stale_lock(name: str, home: Home) -> None:
    """Raise with the way out when a killed ``pulumi`` left its lock on the stack."""
    lock = stale_lock(name, home)
    if lock:
        raise SetupError(
            f"Stack {name} is still locked by a pulumi (process {lock.pid}, since {lock.since}) that was killed; nothing works on it any more. "
            f"Run `. ./env.sh && pulumi cancel --yes {name}`, then repeat: what was ordered meanwhile is found again by its mark."
        )
