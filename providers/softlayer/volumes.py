"""A block volume as the account shows it: whose it is, ready or not, and what it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from providers.softlayer import mark as marks
from providers.softlayer import money
from providers.softlayer.calls import Api
from providers.softlayer.goods import BILLING_MASK, Goods, order_id
from providers.softlayer.waiting import Pending

Volume = Mapping[str, Any]

# Neither the volume's password nor a host's credential: what is not asked for cannot get into a state or a log.
VOLUME_MASK = (
    "mask[id,username,capacityGb,notes,lunId,volumeStatus,activeTransactionCount,provisionedIops,storageTierLevel,"
    "serviceResourceBackendIpAddress,serviceResource[datacenter[name]],storageType[keyName],"
    f"allowedVirtualGuests[id],{BILLING_MASK}]"
)
BLOCK, ENDURANCE = "BLOCK_STORAGE", "ENDURANCE"
PROVISIONED = "PROVISION_COMPLETED"
OUTPUTS = ("volumeId", "orderId", "username", "lunId", "targetAddress", "billing", "ends", "accountId")


def listed(api: Api) -> list[dict[str, Any]]:
    """List all block volumes of the account, cancelled ones included as long as the account shows them."""
    found = api.read_all("Account", "getNetworkStorage", mask=VOLUME_MASK)
    return [each for each in found if BLOCK in str((each.get("storageType") or {}).get("keyName"))]


def name_of(volume: Volume) -> str:
    """Read the name from the notes."""
    return str(volume.get("notes") or "").partition(": ")[2].partition("; ")[0]


def guest_ids(volume: Volume) -> set[str]:
    """List the guests that may attach it."""
    return {str(guest["id"]) for guest in volume.get("allowedVirtualGuests") or []}


def readiness(volume: Volume) -> Volume | Pending:
    """Return the volume once it is provisioned and nothing works on it."""
    if str(volume.get("volumeStatus") or "") != PROVISIONED:
        return Pending(f"its status is {volume.get('volumeStatus') or 'not known yet'}")
    if int(volume.get("activeTransactionCount") or 0):
        return Pending("a transaction is active")
    return volume


def live_inputs(volume: Volume) -> dict[str, Any]:
    """Read back the ordered properties."""
    kind = str((volume.get("storageType") or {}).get("keyName"))
    size, iops = int(volume["capacityGb"]), int(float(volume.get("provisionedIops") or 0))
    speed = (
        {"iopsPerGb": _per_gb(str(volume.get("storageTierLevel")))} if kind.startswith(ENDURANCE) else {"iops": iops}
    )
    found = {
        "datacenter": ((volume.get("serviceResource") or {}).get("datacenter") or {}).get("name"),
        "sizeGb": size,
        "hourly": bool((volume.get("billingItem") or {}).get("hourlyFlag")),
        **speed,
    }
    return {key: value for key, value in found.items() if value is not None}


def outputs(volume: Volume, account_id: str, order: str | None) -> dict[str, Any]:
    """Write down what the rest of the program wants to know; the CHAP password is no part of it."""
    ends = (volume.get("billingItem") or {}).get("cancellationDate")
    return {
        "volumeId": str(volume["id"]),
        "orderId": order_id(volume) or order,
        "username": volume.get("username"),
        "lunId": None if volume.get("lunId") is None else str(volume["lunId"]),
        "targetAddress": volume.get("serviceResourceBackendIpAddress") or None,
        "billing": money.billing(volume.get("billingItem")),
        "ends": ends or None,
        "accountId": account_id,
    }


def described(volume: Volume) -> str:
    """Name the volume for a person."""
    return f"volume {volume['id']} ({volume.get('username')})"


def _per_gb(tier: str) -> float | None:
    return {"LOW_INTENSITY_TIER": 0.25, "READHEAVY_TIER": 2, "WRITEHEAVY_TIER": 4, "10_IOPS_PER_GB": 10}.get(tier)


VOLUMES = Goods(
    kind="BlockVolume",
    word="volume",
    service="Network_Storage",
    mask=VOLUME_MASK,
    listed=listed,
    bears=lambda volume, owner_mark: marks.notes_are(volume.get("notes"), owner_mark),
)
