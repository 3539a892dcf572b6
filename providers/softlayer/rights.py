"""What the key's user may do and see: asked before an order, and before an absence is believed."""

from collections.abc import Iterable, Mapping
from typing import Any

from providers.rental.errors import ProviderError

ALL_DEVICES = "ACCESS_ALL_GUEST"
VIEW = "VIRTUAL_GUEST_VIEW"
BILLS = "ACCOUNT_SUMMARY_VIEW"
RIGHTS = {
    "SERVER_ADD": "Add Server",
    "INSTANCE_UPGRADE": "Add/Upgrade Cloud Instances",
    "PUBLIC_NETWORK_COMPUTE": "Add Compute with Public Network Port",
    "SERVER_CANCEL": "Cancel Server",
    "CUSTOMER_SSH_KEY_MANAGEMENT": "Manage SSH Keys",
    "MANAGE_SECURITY_GROUPS": "Manage Security Groups",
    "PORT_CONTROL": "Manage Port Control",
    "HOSTNAME_EDIT": "Edit Hostname/Domain",
    "REMOTE_MANAGEMENT": "IPMI Remote Management",
    VIEW: "View Virtual Server Details",
    BILLS: "View Account Summary",
    ALL_DEVICES: "access to all virtual servers, also to new ones",
}
"""What an `up` and its `down` need: orders, larger disks, cancellations, keys, groups, port speeds, notes and restarts.

The key names, and what the vendor's console calls them (sldn.softlayer.com, "Permission Enforcement in the SoftLayer API").
Tags need VIEW and ALL_DEVICES (cloud.ibm.com/docs/account?topic=account-access); docs/never-run.md says what is not certain.
"""
SEEING = (VIEW, BILLS, ALL_DEVICES)
PORTAL = "Manage > Access (IAM) > Users > the user > Classic infrastructure"


def check_to_order(account: Any) -> None:
    """Refuse to order with a user who could not see, set up or cancel what was ordered.

    Raises:
        ProviderError: the text names what is missing, and where it is granted.
    """
    missing = lacking(account.user(), RIGHTS)
    if missing:
        raise ProviderError(
            f"checking the rights of {_user(account)}: it lacks {_named(missing)}. Nothing was ordered. {_grant(account, missing)}"
        )


def check_to_see(account: Any, guest_id: str) -> None:
    """Refuse to take a guest for gone because a user who does not see all guests does not see it.

    Raises:
        ProviderError: the text names what is missing, and where it is granted.
    """
    missing = lacking(account.user(), SEEING)
    if missing:
        raise ProviderError(
            f"looking for guest {guest_id}: the account shows neither it nor a charge for it, but {_user(account)} lacks "
            f"{_named(missing)}, so it may run and be billed. Nothing is ordered instead of it. {_grant(account, missing)}"
        )


def unseen(account: Any) -> str | None:
    """Say why machines may be billed that this user does not see; None if it sees all."""
    missing = lacking(account.user(), SEEING)
    if not missing:
        return None
    return f"{_user(account)} lacks {_named(missing)}, so machines that it does not see may be billed. {_grant(account, missing)}"


def lacking(user: Mapping[str, Any], needed: Iterable[str]) -> list[str]:
    """Return the rights that a user lacks; the master user has all."""
    if user.get("isMasterUserFlag"):
        return []
    has = {str(each.get("keyName")) for each in user.get("permissions") or []}
    has |= {ALL_DEVICES} if user.get("hasFullVirtualGuestAccessFlag") else set()
    return [each for each in needed if each not in has]


def _named(missing: Iterable[str]) -> str:
    return ", ".join(f"'{RIGHTS[each]}' ({each})" for each in missing)


def _grant(account: Any, missing: Iterable[str]) -> str:
    wanted = " ".join(f"-p {each}" for each in missing)
    return (
        f"Have it granted ({PORTAL}, or 'slcli user edit-permissions {account.api.credentials.username} --enable {wanted}') "
        "and run the command again."
    )


def _user(account: Any) -> str:
    return f"user {account.api.credentials.username} at {account.api.credentials.endpoint}"
