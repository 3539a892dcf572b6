"""Who calls, and whether the team pays."""

from typing import Any

from emulator.paperspace.account import Account
from emulator.paperspace.keys import Role, role_of
from emulator.paperspace.operations import Call, Operation
from emulator.paperspace.views import moment

NAMESPACE = "microcluster-emulator"


def session(account: Account, call: Call) -> dict[str, Any] | None:
    """The user and the team of a key; null for a key that is not valid."""
    role = role_of(account.settings, call.key)
    if role is None:
        return None
    is_admin, created = role is not Role.MEMBER, moment(account.clock.virtual0)
    team = f"{account.team_ref}x" if role is Role.OTHER_TEAM else account.team_ref
    membership = {"name": NAMESPACE, "id": team, "namespace": NAMESPACE, "isUserTeam": True, "dtCreated": created}
    user = {
        "id": account.member_ref if role is Role.MEMBER else account.user_ref,
        "firstName": None,
        "lastName": None,
        "email": "emulated@example.invalid",
        "dtCreated": created,
        "dtConfirmed": created,
        "teamMemberships": [{"team": membership, "isOwner": is_admin, "isAdmin": is_admin}],
        "isPhoneVerified": True,
        "isPasswordAuthEnabled": True,
        "isQrCodeBasedMfaEnabled": False,
        "isQrCodeBasedMfaConfirmed": False,
        "analyticsId": 1,
        "metadata": {},
    }
    of_team = {
        "id": team,
        "namespace": NAMESPACE,
        "isPrivate": True,
        "maxMachines": account.settings.max_machines,
        "analyticsId": 1,
    }
    return {"user": user, "team": of_team}


def account_standing(account: Account, call: Call) -> dict[str, Any]:
    """Whether the team may order; in no document, but the vendor's client asks it before every order."""
    is_good = account.settings.account_standing == "good"
    messages = [] if is_good else ["Add a payment method to your team."]
    return {
        "isInGoodStanding": is_good,
        "hasPaymentMethod": is_good,
        "isAdminLocked": False,
        "messages": messages,
    }


OPERATIONS = (
    Operation("auth-session", "GET", "/auth/session", session, needs_key=False, for_members=True),
    Operation("billing-accountStanding", "GET", "/billing/account-standing", account_standing, for_members=True),
)
