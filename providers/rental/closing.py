"""Cancels a machine and proves that it is not billed any more."""

import time

from providers.rental.backend import Backend, Tell, Thing
from providers.rental.errors import CallError, ProviderError, WaitError
from providers.rental.owner_mark import ZONE, Owner
from providers.rental.waiting import Deadline, Pending, wait_until

REFUSED_FOR_S = 10 * 60.0
"""A refusal that lasts so long, while nothing is done on the machine, has another reason than work that has to end first."""


def close(
    backend: Backend, machine_id: str, owner: Owner, deadline: Deadline, tell: Tell, *, fresh_until: float = 0.0
) -> None:
    """Cancel at once and return when the account shows that the machine is billed no more.

    Args:
        fresh_until: until this moment of ``time.monotonic`` the account need not show it, as it was ordered only now.

    Raises:
        ProviderError: it is still billed; the text has its id and its price.
    """
    closing = _Closing(backend, machine_id, owner, deadline.time_scale, fresh_until)
    try:
        wait_until(f"{backend.machine_label} {machine_id} cancelled", closing.look, deadline, tell)
    except (WaitError, CallError) as error:
        raise ProviderError(
            f"cancelling {backend.machine_label} {machine_id}: {error} {closing.cost}Run 'pulumi destroy' again."
        ) from error


def check_ours(thing: Thing, owner: Owner, doing: str) -> None:
    """Refuse a thing that bears another stack or mark, or none: an id alone proves nothing.

    Raises:
        ProviderError: it is somebody else's, or somebody renamed it; nothing was done to it.
    """
    if thing.owner != owner:
        domain = f"{owner}.{ZONE}"
        sign, way = f"its name does not end in {domain}", "in the console"
        if thing.rename:
            sign, way = f"its domain is not {domain}", f"with '{thing.rename}{domain}'"
        raise ProviderError(
            f"{doing} {thing.label}: {sign}, so it is not this stack's, or was renamed. "
            f"Nothing was done to it, and it may be billed. If it is yours, name it back {way} and "
            "run the command again; if not, take it out of the state with 'pulumi state delete'."
        )


class _Closing:
    """One cancellation on its way: wait for the end of work, cancel, look until it is closed."""

    def __init__(self, backend: Backend, machine_id: str, owner: Owner, time_scale: float, fresh_until: float) -> None:
        self._backend, self._id, self._owner = backend, machine_id, owner
        self._time_scale, self._fresh_until = time_scale, fresh_until
        self._is_accepted = self._has_work = False
        self._refused_since: float | None = None
        self.cost = ""

    def look(self) -> bool | Pending:
        thing = self._read()
        if thing is None or isinstance(thing, Pending):
            return thing or True
        check_ours(thing, self._owner, "cancelling")
        if not thing.is_alive or (self._is_accepted and not thing.is_billed):
            self._backend.check_visible(thing)
            return True
        self.cost = f"It is still billed at {thing.price}. " if thing.price else "It is ordered and not billed yet. "
        self._has_work = bool(thing.work) and not self._is_accepted
        if self._has_work:
            self._refused_since = None
            return Pending(f"in transaction {thing.work}, which has to end first")
        if self._is_accepted:
            end = f"billed until {thing.ends}" if thing.ends else "not closed yet"
            return Pending(f"cancelled, its billing item is {end}")
        return self._cancel(thing)

    def _read(self) -> Thing | Pending | None:
        # Lists lag behind cancellations, so that only the machine itself proves one; for the end of work the list will do.
        if self._has_work:
            listed = self._backend.list(self._backend.machine, self._owner)
            found = next((each for each in listed if each.id == self._id and each.is_alive), None)
            if found is not None:
                return found
        is_fresh = time.monotonic() < self._fresh_until
        return self._backend.find(self._backend.machine, self._id, self._owner, fresh=is_fresh)

    def _cancel(self, thing: Thing) -> bool | Pending:
        try:
            begun = self._backend.cancel(thing)
        except CallError as error:
            if thing.ends and not error.is_transient:
                raise ProviderError(
                    f"cancelling {thing.label}: it was cancelled before, for {thing.ends}, and the API does "
                    f"not end it sooner ({error.text}). {self.cost}Ask the vendor's support to end it now."
                ) from error
            if error.is_forbidden or self._is_final(is_transient=error.is_transient):
                raise ProviderError(self._refused(thing, error)) from error
            # Refused because work began in between, lost on the way, or done already: the next look tells which.
            return Pending(f"the API did not accept the cancellation ({error.text})")
        if begun is not None:
            return begun
        self._is_accepted = True
        return self.look()

    def _is_final(self, *, is_transient: bool) -> bool:
        """Tell whether the API has refused for so long, with no work on the machine in sight, that it will go on."""
        if is_transient:
            self._refused_since = None
            return False
        now = time.monotonic()
        self._refused_since = self._refused_since or now
        return now - self._refused_since > REFUSED_FOR_S * self._time_scale

    def _refused(self, thing: Thing, error: CallError) -> str:
        if not error.is_forbidden:
            reason = f"the API refuses it ({error.text}). {self.cost}Ask the vendor's support to end it."
            return f"cancelling {thing.label}: {reason}"
        return (
            f"cancelling {thing.label}: user {self._backend.username} may not ({error.text}). {self.cost}Grant it with "
            f"'{self._backend.grant_cancelling}', or let another user cancel it, and run 'pulumi destroy' again."
        )
