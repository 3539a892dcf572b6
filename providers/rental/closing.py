"""Cancels or removes one thing and proves that it is not billed any more."""

import time

from core.home import Owner
from providers.rental.account import Account, Market, Resource
from providers.rental.errors import CallError, ProviderError, WaitError
from providers.rental.waiting import Deadline, Pending, Tell, wait_until

REFUSED_FOR_S = 10 * 60.0
"""A refusal that lasts so long, while nothing is done on the machine, has another reason than work that has to end first."""


def close(account: Account, resource: Resource, deadline: Deadline, tell: Tell, *, fresh_until: float = 0.0) -> None:
    """End it at once and return when the account shows that it is billed no more.

    A machine that is somebody else's by now is an error; anything else of that kind, or that is kept, is left alone.

    Args:
        resource: its kind, id and owner count; everything else is read anew.
        fresh_until: until this moment of ``time.monotonic`` the account need not show it, as it was ordered only now.

    Raises:
        ProviderError: it is still there; the text has its id and its price.
    """
    doing, closing = (
        f"cancelling {resource.kind} {resource.id}",
        _Closing(account, resource, deadline.time_scale, fresh_until),
    )
    try:
        wait_until(f"{resource.kind} {resource.id} cancelled", closing.look, deadline, tell)
    except (WaitError, CallError) as error:
        raise ProviderError(f"{doing}: {error} {closing.cost}Run 'pulumi destroy' again.") from error


def check_ours(found: Resource, owner: Owner, doing: str) -> None:
    """Refuse a thing that bears another stack or mark, or none: an id alone proves nothing.

    Raises:
        ProviderError: it is somebody else's, or somebody renamed it; nothing was done to it.
    """
    if found.owner != owner:
        way = f"with '{found.rename}{owner.domain}'" if found.rename else "in the console"
        raise ProviderError(
            f"{doing} {found.described}: it does not bear {owner}, so it is not this stack's, or was renamed. "
            f"Nothing was done to it, and it may be billed. If it is yours, name it back {way} and "
            "run the command again; if not, take it out of the state with 'pulumi state delete'."
        )


class _Closing:
    """One cancellation on its way: wait for the end of work, cancel, look until it is closed."""

    def __init__(self, account: Account, resource: Resource, time_scale: float, fresh_until: float) -> None:
        self._account, self._sought = account, resource
        self._is_machine = resource.kind == account.machine
        self._time_scale, self._fresh_until = time_scale, fresh_until
        self._is_accepted = self._has_work = False
        self._refused_since: float | None = None
        self.cost = ""

    def look(self) -> bool | Pending:
        found = self._read()
        if found is None or isinstance(found, Pending):
            return found or True
        if not self._is_machine and (found.owner != self._sought.owner or found.is_kept):
            return True
        check_ours(found, self._sought.owner, "cancelling")
        if not found.is_alive or (self._is_machine and self._is_accepted and not found.is_billed):
            return True
        if self._is_machine:
            self.cost = "It is ordered and not billed yet. "
        if found.is_billed:
            self.cost = f"It is still billed at {found.price}. "
        self._has_work = bool(found.work) and not self._is_accepted
        if self._has_work:
            self._refused_since = None
            return Pending(f"in transaction {found.work}, which has to end first")
        if self._is_accepted:
            return Pending(f"cancelled, and {f'billed until {found.ends}' if found.ends else 'not closed yet'}")
        return self._end(found)

    def _read(self) -> Resource | Pending | None:
        account, sought = self._account, self._sought
        # Lists lag behind cancellations, so that only the machine itself proves one; for the end of work the list will do.
        if self._has_work or not isinstance(account, Market):
            listed = account.resources(sought.owner, sought.kind)
            found = next((each for each in listed if each.id == sought.id and each.is_alive), None)
            if found is not None or not isinstance(account, Market):
                return found
        # What was shown, and whose end was accepted, is not missing because it is too fresh to be shown.
        is_fresh = not self._is_accepted and time.monotonic() < self._fresh_until
        return account.find(sought.kind, sought.id, sought.owner, fresh=is_fresh)

    def _end(self, found: Resource) -> bool | Pending:
        try:
            begun = self._account.end(found)
        except CallError as error:
            if found.ends and not error.is_transient:
                raise ProviderError(
                    f"cancelling {found.described}: it was cancelled before, for {found.ends}, and the API does "
                    f"not end it sooner ({error.text}). {self.cost}Ask the vendor's support to end it now."
                ) from error
            if error.is_forbidden or self._is_final(is_transient=error.is_transient):
                raise ProviderError(self._refused(found, error)) from error
            # Refused because work began in between, lost on the way, or done already: the next look tells which.
            return Pending(f"the API did not accept the cancellation ({error.text})")
        if begun is not None:
            return begun
        self._is_accepted = True
        return self.look()

    def _is_final(self, *, is_transient: bool) -> bool:
        """Tell whether the API has refused for so long, with no work in sight, that it will go on."""
        if is_transient:
            self._refused_since = None
            return False
        now = time.monotonic()
        self._refused_since = self._refused_since or now
        return now - self._refused_since > REFUSED_FOR_S * self._time_scale

    def _refused(self, found: Resource, error: CallError) -> str:
        if not error.is_forbidden:
            reason = f"the API refuses it ({error.text}). {self.cost}Ask the vendor's support to end it."
            return f"cancelling {found.described}: {reason}"
        return (
            f"cancelling {found.described}: user {self._account.whoami().username} may not ({error.text}). {self.cost}Grant it "
            f"with '{error.grant}', or let another user cancel it, and run 'pulumi destroy' again."
        )
