"""Limits of a stack: those of its stack file, of a guard's record, or of the account alone."""

from decimal import Decimal

from microcluster.config import stack as config
from microcluster.core.home import Home
from microcluster.core.plain_text import note
from microcluster.guard.decision import Limits
from microcluster.guard.records import log_of
from microcluster.rental.account import account_and_owner, guarded_owner
from microcluster.setup.errors import UserMistake


def limits_of(stack: str) -> Limits | None:
    """Return the limits in a stack file, even if the rest of it is wrong by now."""
    return limits_in(config.read_guard(stack))


def limits_known(stack: str, home: Home) -> Limits:
    """Return the limits in a stack file; where that cannot be read or has none, those that a guard wrote down, or the account's alone.

    Raises:
        UserMistake: nothing was rented with limits, and the stack file has none.
    """
    newest = log_of(stack, home).newest()
    if guarded_owner(stack):
        return Limits.of_account()
    try:
        limits, why = limits_of(stack), f"stacks/Pulumi.{stack}.yaml has no microcluster:guard"
    except config.ConfigError as error:
        limits, why = None, str(error)
    if limits:
        return limits
    if newest and newest.lives:
        note(f"guard of stack {stack}: {why.rstrip('.')}. The limits with which it was rented count.")
        return newest.limits or Limits.of_account()
    account, owner = account_and_owner(stack)
    terms = account.terms(owner)
    if terms is None or (terms.lease_minutes is None and terms.budget_cents is None):
        raise UserMistake(
            f"Nothing limits stack {stack}: {why.rstrip('.')}. Write for example "
            "`microcluster:guard: {lease: 30}` under config, then run the same command again."
        )
    return Limits.of_account()


def limits_in(section: config.GuardSection | None) -> Limits | None:
    """Return the limits that the section of a stack file says."""
    if section is None:
        return None
    budget, lease_h = (
        None if each is None else Decimal(str(each)).quantize(Decimal("0.0001"))
        for each in (section.budget, section.lease)
    )
    idle_s = None if section.idle is None else section.idle * 60
    return Limits(budget, lease_h, idle_s, section.when_done == "cancel", section.keep_failed * 60, section.blind * 60)
