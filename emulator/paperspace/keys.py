"""API keys: each belongs to one user of the team, who may do everything, or little; and what the API says of both."""

import enum
import hmac
from typing import Any

from emulator.paperspace.account import Account
from emulator.paperspace.operations import Call, Operation
from emulator.paperspace.settings import Settings
from emulator.paperspace.views import moment

NAMESPACE = "microcluster-emulator"


class Role(enum.Enum):
    """What the owner of a key is in the team."""

    ADMIN = "admin"
    MEMBER = "member"  # to whom no machine was assigned


def role_of(settings: Settings, key: str | None) -> Role | None:
    """The role of a key; None for one that is not valid."""
    for known, role in ((settings.api_key, Role.ADMIN), (settings.member_key, Role.MEMBER)):
        if known and key and hmac.compare_digest(known.encode(), key.encode()):
            return role
    return None


def session(account: Account, call: Call) -> dict[str, Any] | None:
    """The user and the team of a key; null for a key that is not valid."""
    role = role_of(account.settings, call.key)
    if role is None:
        return None
    is_admin, created, team = role is Role.ADMIN, moment(account.clock.virtual0), account.own_ref("te")
    membership = {"name": NAMESPACE, "id": team, "namespace": NAMESPACE, "isUserTeam": True, "dtCreated": created}
    user = {
        "id": account.own_ref("u" if is_admin else "m"),
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


def standing(account: Account, call: Call) -> dict[str, Any]:
    """The team may order; in no document, but the vendor's client asks it before every order."""
    return {"isInGoodStanding": True, "hasPaymentMethod": True, "isAdminLocked": False, "messages": []}


OPERATIONS = (
    Operation("auth-session", "GET", "/auth/session", session, needs_key=False, for_members=True),
    Operation("billing-accountStanding", "GET", "/billing/account-standing", standing, for_members=True),
)
