"""The differences between Pulumi's state and the account; pure but for reading the state file."""

from collections.abc import Iterable
from dataclasses import dataclass

from core.home import Home
from microcluster.accounts.registry import attached_kinds, resource_types
from microcluster.lifecycle import pulumi_state
from microcluster.lifecycle.pulumi_state import BrokenStateError, Held, Snapshot
from providers.rental.backend import Belonging


@dataclass(frozen=True)
class Compared:
    """How state and account differ."""

    account_only: tuple[Belonging, ...] = ()
    state_only: tuple[Held, ...] = ()
    under_way: tuple[Held, ...] = ()
    """What was being ordered when the state was last written."""
    broken: str | None = None
    """Why the state cannot be read."""

    @property
    def agrees(self) -> bool:
        """Return whether they do not differ."""
        return not (self.account_only or self.state_only or self.under_way or self.broken)


def compare(found: Iterable[Belonging], state: Snapshot) -> Compared:
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
    try:
        return (pulumi_state.read(stack, home) or pulumi_state.NOTHING).machines
    except BrokenStateError:
        return set()


def with_state(found: Iterable[Belonging], stack: str, home: Home) -> Compared:
    """Compare ``found`` with the state file."""
    try:
        return compare(found, pulumi_state.read(stack, home) or pulumi_state.NOTHING)
    except BrokenStateError as broken:
        return Compared(broken=str(broken))
