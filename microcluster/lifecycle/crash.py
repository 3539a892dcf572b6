"""What a killed command left behind is repaired before the next one begins, where it is proven that nobody works on the stack."""

from core.home import Home
from microcluster.lifecycle import commands, emulated_account, pulumi_state, stacks
from microcluster.lifecycle.locks import refuse_living_pulumi, refuse_unreadable_lock, stale_lock
from microcluster.setup import pulumi_install
from microcluster.setup.errors import SetupError
from microcluster.setup.progress import Stages


def repair(home: Home, stack: str, command: str, stages: Stages) -> None:
    """Run `fab recover` if a crash left a lock, or a broken or missing state.

    Raises:
        SetupError: somebody may work on the stack, or the repair failed.
    """
    refuse_living_pulumi(stack, command, home)
    refuse_unreadable_lock(stack, home)
    if not needs_repair(stack, home):
        return
    pulumi_install.ensure_any(home, stages)
    emulator = stacks.emulator_of(stack, home)
    if emulator and emulator.state.exists():
        emulated_account.answer(emulator, home, stages)
    with stages.stage("recover", "repairing first: a command was killed, or the state is damaged"):
        if commands.fab(home, "recover", stack, "--yes"):
            raise SetupError(
                f"Nothing was ordered or canceled, for the reason above. `{command} STACK={stack}` tries again."
            )


def needs_repair(stack: str, home: Home) -> bool:
    """Whether a crash left a lock, or a broken or missing state."""
    try:
        gone = pulumi_state.read(stack, home) is None and pulumi_state.older_copies(stack, home)
    except pulumi_state.BrokenStateError:
        return True
    return bool(gone or stale_lock(stack, home))
