"""A guest, a key and a group as the account shows them: alive or not, ready or not, and how they differ from what was ordered."""

from collections.abc import Callable, Mapping
from typing import Any

from microcluster.accounts.shared.account import Pending, Resource
from microcluster.accounts.shared.api_calls import Row, at, text_at
from microcluster.accounts.softlayer import billing
from microcluster.accounts.softlayer.specs import GROUP, GUEST, KEY
from microcluster.core.home import owner_in_domain, owner_in_notes

Guest = Mapping[str, Any]

# primaryRouter tells on which side of the private network a guest already stands.
GUEST_MASK = (
    "mask[id,hostname,domain,createDate,provisionDate,hourlyBillingFlag,primaryIpAddress,primaryBackendIpAddress,"
    "datacenter[name],tagReferences[tag[name]],"
    "activeTransaction[id,elapsedSeconds,transactionGroup[name],transactionStatus[name,friendlyName,averageDuration]],"
    "primaryNetworkComponent[id,maxSpeed,securityGroupBindings[securityGroup[id]]],"
    "primaryBackendNetworkComponent[id,maxSpeed,networkVlan[id,primaryRouter[id]],securityGroupBindings[securityGroup[id]]],"
    "blockDevices[device,diskImage[capacity]],blockDeviceTemplateGroup[id,globalIdentifier],"
    "billingItem[id,cancellationDate,hourlyFlag,hourlyRecurringFee,recurringFee,"
    "children[id,hourlyRecurringFee,recurringFee],"
    "activeAssociatedGuestDiskBillingItems[id,hourlyRecurringFee,recurringFee],"
    "orderItem[id,order[id,status],preset[keyName]]]]"
)
RECLAIMING = ("RECLAIM", "TEAR_DOWN")
BOOT_DEVICES = ("0", "1", "7")
"""Boot disk, swap and configuration drive come with the flavor; what was ordered beside them starts at device 2."""
ITEM = "item"
KEY_MASK = "mask[id,key,label,notes,createDate]"
GROUP_MASK = (
    "mask[id,name,description,createDate,"
    "rules[id,direction,ethertype,protocol,portRangeMin,portRangeMax,remoteIp,remoteGroupId],"
    "networkComponentBindings[networkComponentId,networkComponent[guest[id,hostname,domain]]]]"
)


def is_reclaimed(guest: Guest) -> bool:
    """Tell whether the guest is being taken away; it stays listed for half an hour after its cancellation."""
    names = f"{transaction_name(guest)} {at(guest, 'activeTransaction.transactionGroup.name')}".upper()
    return any(word in names for word in RECLAIMING)


def is_cancelled(guest: Guest) -> bool:
    """Tell whether the guest was cancelled: it has no billing item any more, or one with an end, and is taken away.

    The name of a transaction alone proves nothing: while an item is open and has no end, it costs money.
    """
    if guest.get("billingItem"):
        return is_reclaimed(guest) and bool(guest["billingItem"].get("cancellationDate"))
    return is_reclaimed(guest) or bool(guest.get("provisionDate"))


def transaction_name(guest: Guest) -> str | None:
    """Name the pending work on the guest."""
    name = at(guest, "activeTransaction.transactionStatus.name")
    return name or ("unnamed" if guest.get("activeTransaction") else None)


def unready(guest: Guest) -> Pending | None:
    """Say what a guest still lacks; None once it is provisioned, nothing is pending and both addresses are known.

    Status and addresses alone mean nothing: a guest in the middle of provisioning shows ACTIVE and both addresses.
    """
    transaction = transaction_name(guest)
    if transaction:
        return Pending(f"in transaction {transaction}", _usual_s(guest))
    if not guest.get("provisionDate"):
        return Pending("not provisioned yet")
    if not (guest.get("primaryIpAddress") and guest.get("primaryBackendIpAddress")):
        return Pending("without addresses yet")
    return None


def live_inputs(guest: Guest) -> dict[str, Any]:
    """Read back what can be read back of a guest's ordered properties; what is not shown (yet) is left out."""
    inputs = {
        "hostname": guest.get("hostname"),
        "domain": guest.get("domain"),
        "datacenter": at(guest, "datacenter.name"),
        "flavor": at(guest, "billingItem.orderItem.preset.keyName"),
        # Disks appear one by one while the guest is built.
        "dataDisksGb": data_disks(guest) if guest.get("provisionDate") else None,
        "portSpeedMbps": at(guest, "primaryBackendNetworkComponent.maxSpeed"),
        "backendRouterId": text_at(guest, "primaryBackendNetworkComponent.networkVlan.primaryRouter.id"),
        "privateVlanId": text_at(guest, "primaryBackendNetworkComponent.networkVlan.id"),
        "publicSecurityGroupIds": _worn(guest, "primaryNetworkComponent"),
        "privateSecurityGroupIds": _worn(guest, "primaryBackendNetworkComponent"),
    }
    return {key: value for key, value in inputs.items() if value not in (None, "")}


def _worn(guest: Guest, side: str) -> list[str] | None:
    return groups(guest, side) if at(guest, f"{side}.id") else None


def groups(guest: Guest, side: str) -> list[str]:
    """List the security groups that are attached to an interface."""
    return [str(at(each, "securityGroup.id")) for each in at(guest, f"{side}.securityGroupBindings") or []]


def data_disks(guest: Guest) -> list[int] | None:
    """List the sizes of the ordered disks in device order; None while the guest shows no disk at all."""
    devices = guest.get("blockDevices") or []
    ordered = [each for each in devices if str(each.get("device")) not in BOOT_DEVICES and each.get("diskImage")]
    sizes = [int(each["diskImage"]["capacity"]) for each in sorted(ordered, key=lambda each: int(each["device"]))]
    return sizes if devices else None


def tags(guest: Guest) -> set[str]:
    """List the guest's tags."""
    return {str(at(each, "tag.name")) for each in guest.get("tagReferences") or []}


def described(guest: Guest) -> str:
    """Name the guest for a person."""
    return f"guest {guest['id']} ({guest['hostname']}.{guest['domain']})"


def resource(guest: Guest) -> Resource:
    """Read a guest as the kernel sees it."""
    item = guest.get("billingItem") or {}
    ordered = billing.order_of(item)
    return Resource(
        kind=GUEST,
        id=str(guest["id"]),
        name=f"{guest.get('hostname')}.{guest.get('domain')}",
        owner=owner_in_domain(guest.get("domain")),
        short_name=str(guest.get("hostname")),
        is_alive=not is_cancelled(guest),
        is_billed=bool(item),
        since=billing.dated(guest.get("createDate") or item.get("createDate")),
        per_hour=billing.per_hour(item),
        price=billing.rate(item),
        work=transaction_name(guest),
        is_built=bool(guest.get("provisionDate")),
        order=billing.as_status(ordered) if ordered else None,
        unready=unready(guest),
        ends=item.get("cancellationDate") or None,
        rename=f"slcli vs edit {guest['id']} --domain ",
        inputs=live_inputs(guest),
        outputs={
            "publicIp": guest.get("primaryIpAddress") or None,
            "privateIp": guest.get("primaryBackendIpAddress") or None,
            "provisionDate": guest.get("provisionDate") or None,
        },
        row=guest,
    )


def _usual_s(guest: Guest) -> float | None:
    # The service reports minutes, as text.
    try:
        return float(at(guest, "activeTransaction.transactionStatus.averageDuration") or 0) * 60 or None
    except ValueError:
        return None


def as_key(row: Row) -> Resource:
    """Read a key."""
    shown = {"label": text_at(row, "label"), "publicKey": text_at(row, "key").strip()}
    own = {"what": "ssh key", "since": billing.dated(row.get("createDate")), "inputs": shown, "row": row}
    return Resource(KEY, str(row["id"]), shown["label"], owner_in_notes(row.get("notes")), **own)


def as_group(row: Row) -> Resource:
    """Read a security group."""
    text = text_at(row, "description")
    shown = {"name": text_at(row, "name"), "description": text.partition(": ")[2]}
    own = {"what": "security group", "since": billing.dated(row.get("createDate")), "inputs": shown, "row": row}
    return Resource(GROUP, str(row["id"]), shown["name"], owner_in_notes(text), **own)


VIEWS: Mapping[str, Callable[[Row], Resource]] = {GUEST: resource, KEY: as_key, GROUP: as_group}
