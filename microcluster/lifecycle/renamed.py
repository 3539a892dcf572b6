"""Stacks that were renamed in Pulumi: what a stack's state holds bears the label of its keys, whatever the stack is called by now."""

from microcluster.core import stack_keys
from microcluster.core.home import Home, Owner, bears, stack_of
from microcluster.core.plain_text import note
from microcluster.lifecycle import pulumi, pulumi_state


def settle(home: Home, stack: str | None = None) -> None:
    """Give every stack the keys that its state names; of another backend than this home's, only ``stack``, if it has none.

    If the stack that has the keys holds the same, the other one is a copy of it and gets nothing.
    """
    rented = pulumi_state.all_owners(home) if pulumi_state.is_in(home) else _elsewhere(home, stack)
    for name, owner in rented.items():
        folder = home.keys / owner.stack
        before = stack_of(folder)
        if before != name and rented.get(before) != owner and bears(folder, owner.mark):
            stack_keys.give(folder, name)
            note(
                f"Stack {before} is called {name} now; it goes on with its keys in {folder}, its journal and its receipts."
            )


def _elsewhere(home: Home, stack: str | None) -> dict[str, Owner]:
    if stack is None or home.folder_of(stack).exists():
        return {}
    owner = _owner(home, stack)
    before = stack_of(home.keys / owner.stack) if owner else stack
    return {name: found for name in (stack, before) if (found := _owner(home, name))}


def _owner(home: Home, stack: str) -> Owner | None:
    return pulumi_state.owner_in({"stdin": pulumi_state.outputs(stack, home).get(pulumi.OUTPUT)})
