"""What every vendor's machine does the same: it is adopted with care, recorded whatever happens, read, and closed.

A vendor's resource writes an ``OrderRequest``, calls ``adopt_or_order``, and then these; see ``softlayer/virtual_guest.py``.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from providers.rental.backend import Backend, Thing
from providers.rental.closing import close
from providers.rental.errors import PartialFailure, ProviderError, WaitError
from providers.rental.operation import Operation
from providers.rental.owner_mark import Owner
from providers.rental.readiness import GoneError, Readiness
from providers.rental.reconcile import certain, fresh_until
from providers.rental.waiting import Pending


def check_adoptable(
    thing: Thing, wanted: Mapping[str, Any], later: Collection[str] = (), flaws: Sequence[str] = ()
) -> None:
    """Refuse to adopt a machine that is not what is wanted.

    Args:
        wanted: the resource's inputs.
        later: the inputs that are put right after the adoption, as in any update.
        flaws: why it may not be adopted, whatever its properties are; for example ``it is billed by the month``.

    Raises:
        ProviderError: the text has every difference.
    """
    compared = [key for key in thing.inputs if key in wanted and key not in later]
    differing = [
        f"{key} is {thing.inputs[key]} there and {wanted[key]} here"
        for key in sorted(compared)
        if thing.inputs[key] != wanted[key]
    ]
    differing += flaws
    if differing:
        raise ProviderError(
            f"adopting {thing.label}, which an earlier run ordered: {'; '.join(differing)}. Nothing was "
            "touched. Put the stack file back as it was, or cancel that one, and run the command again."
        )


@contextmanager
def recorded(op: Operation, machine: Readiness, known: Mapping[str, Any]) -> Iterator[None]:
    """Let the id of a machine that costs money reach the state, whatever goes wrong.

    Args:
        known: the outputs that do not come from the account's view of it.

    Raises:
        PartialFailure: for every error inside.
    """
    try:
        yield
    except GoneError as error:
        raise PartialFailure(machine.machine_id, dict(known), f"{machine.what}: {error}") from error
    except Exception as error:  # noqa: BLE001  # Whatever it is.
        seen = machine.seen
        standing = (
            "ordered, and not billed before it is approved" if seen and not seen.is_billed else "ordered and billed"
        )
        outputs = {**(seen.outputs if seen else {}), **known}
        reason = f"{machine.what} is {standing}: {op.sentence(error)}"
        raise PartialFailure(machine.machine_id, outputs, reason) from error


def read(
    op: Operation, backend: Backend, owner: Owner, machine_id: str, *, inputs: Mapping[str, Any], old: Mapping[str, Any]
) -> Thing | None:
    """Read a machine, once it is certain whether it exists.

    Returns:
        None if it is gone or cancelled.

    Raises:
        PartialFailure: nobody can know yet; it has the recorded inputs and outputs.
    """
    try:
        thing = certain(op, backend, owner, backend.machine, machine_id)
    except WaitError as error:
        raise PartialFailure(machine_id, dict(old), str(error), dict(inputs)) from error
    if thing is not None:
        backend.check_visible(thing)
    return thing if thing is not None and thing.is_alive else None


def check_ready(
    op: Operation, backend: Backend, thing: Thing, live: Mapping[str, Any], outputs: Mapping[str, Any]
) -> None:
    """Report a machine that was read and is not ready as a partial failure, so that the next update finishes it.

    Args:
        live: its inputs as the account shows them.
        outputs: all of its outputs.
    """
    owner = thing.owner or Owner(op.stack, "")
    try:
        state = Readiness(op, backend, owner, thing.id, thing.name).assess(thing)
    except ProviderError as error:
        raise PartialFailure(thing.id, dict(outputs), str(error), dict(live)) from error
    if isinstance(state, Pending):
        reason = f"{thing.label} is not ready: {state.detail}."
        raise PartialFailure(thing.id, dict(outputs), reason, dict(live))


def delete(op: Operation, backend: Backend, owner: Owner, machine_id: str) -> None:
    """Cancel the machine and return when the account shows that it is billed no more."""
    until = fresh_until(op, backend, owner.mark, backend.machine, machine_id)
    close(backend, machine_id, owner, op.deadline, op.log.progress, fresh_until=until)
    op.journal(owner.mark).closed(backend.identity().account_id, backend.machine, machine_id)
