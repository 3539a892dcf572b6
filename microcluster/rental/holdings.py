"""Resources of an account with our marks: compared with Pulumi's state, and as a table."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from microcluster.accounts.registry import attached_kinds, resource_types
from microcluster.accounts.shared.account import Resource
from microcluster.core.home import Home
from microcluster.core.plain_text import duration
from microcluster.display.console import show_table
from microcluster.lifecycle import pulumi_state
from microcluster.lifecycle.pulumi_state import BrokenStateError, Held, Snapshot

COLUMNS = ("id", "name", "owner", "since", "per hour", "")


@dataclass(frozen=True)
class Compared:
    """Differences between state and account."""

    account_only: tuple[Resource, ...] = ()
    state_only: tuple[Held, ...] = ()
    under_way: tuple[Held, ...] = ()
    """Orders that were pending when the state was last written."""
    broken: str | None = None
    """Why the state cannot be read."""

    @property
    def agrees(self) -> bool:
        """Return whether they do not differ."""
        return not (self.account_only or self.state_only or self.under_way or self.broken)


def compare(found: Iterable[Resource], state: Snapshot) -> Compared:
    """Compare what bears the mark with what the state holds; a cancelled guest that is still listed counts as gone."""
    there = {(each.kind, each.id): each for each in found if each.is_alive}
    kinds, attached = resource_types(), attached_kinds()
    held = [each for each in state.held if each.kind in kinds]
    recorded = {(kinds[each.kind], each.id): each for each in held if each.id}
    return Compared(
        account_only=tuple(
            each for key, each in there.items() if not (key in recorded or each.kind in attached or each.is_kept)
        ),
        state_only=tuple(each for key, each in recorded.items() if key not in there),
        under_way=tuple(each for each in held if not each.id),
    )


def known_machines(stack: str, home: Home) -> set[str]:
    """Return the ids of the machines in the state, if it can be read: the account's lists may not show them yet."""
    state = pulumi_state.readable(stack, home)
    return state.machines if state else set()


def with_state(found: Iterable[Resource], stack: str, home: Home) -> Compared:
    """Compare ``found`` with the state file."""
    try:
        return compare(found, pulumi_state.read(stack, home))
    except BrokenStateError as broken:
        return Compared(broken=str(broken))


def differences(compared: Compared, stack: str) -> list[str]:
    """Return the differences between Pulumi's state and the account, one line each."""
    if compared.broken:
        return [
            f"Pulumi's state of stack {stack} cannot be read: {compared.broken}. Repair it: fab recover --stack {stack}"
        ]
    lines = [f"in the account, not in Pulumi's state: {each}" for each in compared.account_only]
    lines += [f"in Pulumi's state, not in the account: {each.name} ({each.id})" for each in compared.state_only]
    lines += [f"being ordered when Pulumi last stopped: {each.name}" for each in compared.under_way]
    return lines or ["Pulumi's state and the account agree"]


def show(things: Iterable[Resource], title: str, remarks: dict[str, str]) -> None:
    """Print one line for each thing; ``remarks`` holds remarks on some, by their label."""
    in_order = sorted(things, key=lambda thing: (str(thing.owner), thing.label))
    show_table(COLUMNS, [_row(each, remarks) for each in in_order], title, right=("per hour",))


def per_hour(things: Iterable[Resource]) -> str:
    """Return the sum of their hourly prices."""
    return f"{sum((each.per_hour for each in things), Decimal(0)).normalize():f} USD an hour"


def _row(each: Resource, remarks: dict[str, str]) -> tuple[str, ...]:
    price = f"{each.per_hour.normalize():f}" if each.is_billed else ""
    more = "; ".join(filter(None, (remarks.get(each.label), each.cancel_by_hand)))
    return each.label, each.name, str(each.owner), age(each.since), price, more


def age(since: datetime | None) -> str:
    """Return when something was made, and its age."""
    if since is None:
        return ""
    seconds = max((datetime.now(UTC) - since).total_seconds(), 0)
    return f"{since.astimezone(UTC):%Y-%m-%d %H:%M} UTC ({duration(seconds)})"
