"""Cancels or removes one thing and proves that it is not billed any more."""

import time

from microcluster.accounts.shared.account import Account, Market, Pending, Resource
from microcluster.accounts.shared.errors import CallError, ProviderError, WaitError
from microcluster.accounts.shared.order import Operation

REFUSED_FOR_S = 10 * 60.0
"""A refusal that lasts so long, while nothing is done on the machine, has another reason than work that has to end first."""


def close(op: Operation, account: Account, resource: Resource, *, fresh_until: float = 0.0) -> None:
    """End it at once and return when the account shows that it is billed no more.

    A machine that is somebody else's by now is an error; anything else of that kind, or that is kept, is left alone.

    Args:
        resource: its kind, id and owner count; everything else is read anew.
        fresh_until: until this moment of ``time.monotonic`` the account need not show it, as it was ordered only now.

    Raises:
        ProviderError: it is still there; the text has its id and its price.
    """
    closing = _Closing(op, account, resource, fresh_until)
    try:
        op.wait_until(f"{resource.kind} {resource.id} cancelled", closing.look)
    except (WaitError, CallError) as error:
        doing = f"cancelling {resource.kind} {resource.id}"
        raise ProviderError(f"{doing}: {error} {closing.cost}Run 'pulumi destroy' again.") from error


class _Closing:
    """One cancellation on its way: wait for the end of work, cancel, look until it is closed."""

    def __init__(self, op: Operation, account: Account, resource: Resource, fresh_until: float) -> None:
        self._op, self._account, self._sought, self._fresh_until = op, account, resource, fresh_until
        self._is_machine = resource.kind == account.machine
        self._is_accepted = self._has_work = False
        self._refused_since: float | None = None
        self.cost = ""

    def look(self) -> bool | Pending:
        resource = self._read()
        if resource is None or isinstance(resource, Pending):
            return resource or True
        if not self._is_machine and (resource.owner != self._sought.owner or resource.is_kept):
            return True
        resource.check_ours(self._sought.owner, "cancelling")
        if not resource.is_alive or (self._is_machine and self._is_accepted and not resource.is_billed):
            return True
        if self._is_machine:
            self.cost = "It is ordered and not billed yet. "
        if resource.is_billed:
            self.cost = f"It is still billed at {resource.price}. "
        self._has_work = bool(resource.work) and not self._is_accepted
        if self._has_work:
            self._refused_since = None
            return Pending(f"in transaction {resource.work}, which has to end first")
        if self._is_accepted:
            return Pending(f"cancelled, and {f'billed until {resource.ends}' if resource.ends else 'not closed yet'}")
        return self._end(resource)

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

    def _end(self, resource: Resource) -> bool | Pending:
        try:
            pending = self._account.end(resource)
        except CallError as error:
            if resource.ends and not error.is_transient:
                raise ProviderError(
                    f"cancelling {resource.described}: it was cancelled before, for {resource.ends}, and the API does "
                    f"not end it sooner ({error.text}). {self.cost}Ask the vendor's support to end it now."
                ) from error
            if error.is_forbidden or self._is_final(is_transient=error.is_transient):
                raise ProviderError(self._refused(resource, error)) from error
            # Refused because work began in between, lost on the way, or done already: the next look tells which.
            return Pending(f"the API did not accept the cancellation ({error.text})")
        if pending is not None:
            return pending
        self._is_accepted = True
        return self.look()

    def _is_final(self, *, is_transient: bool) -> bool:
        """Tell whether the API has refused for so long, with no work in sight, that it will go on."""
        if is_transient:
            self._refused_since = None
            return False
        now = time.monotonic()
        self._refused_since = self._refused_since or now
        return now - self._refused_since > self._op.scaled(REFUSED_FOR_S)

    def _refused(self, found: Resource, error: CallError) -> str:
        if not error.is_forbidden:
            reason = f"the API refuses it ({error.text}). {self.cost}Ask the vendor's support to end it."
            return f"cancelling {found.described}: {reason}"
        return (
            f"cancelling {found.described}: user {self._account.whoami().username} may not ({error.text}). {self.cost}Grant it "
            f"with '{error.grant}', or let another user cancel it, and run 'pulumi destroy' again."
        )
