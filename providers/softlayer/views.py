"""A guest, a key and a group as the account shows them: alive or not, ready or not, and how they differ from what was ordered."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from core.home import owner_in_domain, owner_in_notes
from providers.rental.account import Pending, Resource
from providers.rental.wire import Row
from providers.softlayer import billing
from providers.softlayer.specs import GROUP, GUEST, KEY

Guest = Mapping[str, Any]

# primaryRouter tells on which side of the private network a guest already stands.
GUEST_MASK = (
    "mask[id,hostname,domain,notes,createDate,provisionDate,hourlyBillingFlag,primaryIpAddress,primaryBackendIpAddress,"
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
    names = (
        transaction_name(guest),
        ((guest.get("activeTransaction") or {}).get("transactionGroup") or {}).get("name"),
    )
    return any(word in str(name or "").upper() for name in names for word in RECLAIMING)


def is_cancelled(guest: Guest) -> bool:
    """Tell whether the guest was cancelled: it has no billing item any more, or one with an end, and is taken away.

    The name of a transaction alone proves nothing: while an item is open and has no end, it costs money.
    """
    if guest.get("billingItem"):
        return is_reclaimed(guest) and bool(guest["billingItem"].get("cancellationDate"))
    return is_reclaimed(guest) or bool(guest.get("provisionDate"))


def transaction_name(guest: Guest) -> str | None:
    """Name the pending work on the guest."""
    status = (guest.get("activeTransaction") or {}).get("transactionStatus") or {}
    return status.get("name") or ("unnamed" if guest.get("activeTransaction") else None)


def readiness(guest: Guest) -> Guest | Pending:
    """Return the guest once it is ready: provisioned, nothing pending, both addresses known.

    Status and addresses alone mean nothing: a guest in the middle of provisioning shows ACTIVE and both addresses.
    """
    transaction = transaction_name(guest)
    if transaction:
        status = guest["activeTransaction"].get("transactionStatus") or {}
        return Pending(f"in transaction {transaction}", _usual_s(status))
    if not guest.get("provisionDate"):
        return Pending("not provisioned yet")
    if not (guest.get("primaryIpAddress") and guest.get("primaryBackendIpAddress")):
        return Pending("without addresses yet")
    return guest


def outputs(guest: Guest) -> dict[str, Any]:
    """Write down what the program wants to know of a guest, as far as the account shows it."""
    item = guest.get("billingItem")
    return {
        "publicIp": guest.get("primaryIpAddress") or None,
        "privateIp": guest.get("primaryBackendIpAddress") or None,
        "pricePerHour": f"{billing.per_hour(item).normalize():f}" if item else None,
        "provisionDate": guest.get("provisionDate") or None,
    }


def live_inputs(guest: Guest) -> dict[str, Any]:
    """Read back what can be read back of a guest's ordered properties; what is not shown (yet) is left out."""
    preset = ((guest.get("billingItem") or {}).get("orderItem") or {}).get("preset") or {}
    backend = guest.get("primaryBackendNetworkComponent") or {}
    vlan = backend.get("networkVlan") or {}
    router = (vlan.get("primaryRouter") or {}).get("id")
    found = {
        "hostname": guest.get("hostname"),
        "domain": guest.get("domain"),
        "datacenter": (guest.get("datacenter") or {}).get("name"),
        "flavor": preset.get("keyName"),
        # Disks appear one by one while the guest is built.
        "dataDisksGb": data_disks(guest) if guest.get("provisionDate") else None,
        "portSpeedMbps": backend.get("maxSpeed"),
        "backendRouterId": str(router) if router else None,
        "privateVlanId": str(vlan["id"]) if vlan.get("id") else None,
        "publicSecurityGroupIds": _worn(guest, "primaryNetworkComponent"),
        "privateSecurityGroupIds": _worn(guest, "primaryBackendNetworkComponent"),
    }
    return {key: value for key, value in found.items() if value not in (None, "")}


def _worn(guest: Guest, side: str) -> list[str] | None:
    component = guest.get(side) or {}
    return groups(component) if component.get("id") else None


def groups(component: Mapping[str, Any] | None) -> list[str]:
    """List the security groups that are attached to an interface."""
    bindings = (component or {}).get("securityGroupBindings") or []
    return [str(binding["securityGroup"]["id"]) for binding in bindings]


def data_disks(guest: Guest) -> list[int] | None:
    """List the sizes of the ordered disks in device order; None while the guest shows no disk at all."""
    devices = guest.get("blockDevices") or []
    ordered = [each for each in devices if str(each.get("device")) not in BOOT_DEVICES and each.get("diskImage")]
    sizes = [int(each["diskImage"]["capacity"]) for each in sorted(ordered, key=lambda each: int(each["device"]))]
    return sizes if devices else None


def tags(guest: Guest) -> set[str]:
    """List the guest's tags."""
    return {str((reference.get("tag") or {}).get("name")) for reference in guest.get("tagReferences") or []}


def described(guest: Guest) -> str:
    """Name the guest for a person."""
    return f"guest {guest['id']} ({guest['hostname']}.{guest['domain']})"


def resource(guest: Guest) -> Resource:
    """Read a guest as the kernel sees it."""
    item, owner = guest.get("billingItem") or {}, owner_in_domain(guest.get("domain"))
    state, ordered = readiness(guest), billing.order_of(item)
    return Resource(
        kind=GUEST,
        id=str(guest["id"]),
        name=f"{guest.get('hostname')}.{guest.get('domain')}",
        owner=owner,
        short_name=str(guest.get("hostname")),
        is_alive=not is_cancelled(guest),
        is_billed=bool(item),
        since=billing.dated(guest.get("createDate") or item.get("createDate")),
        per_hour=billing.per_hour(item) if item else Decimal(0),
        price=billing.rate(item) if item else "",
        work=transaction_name(guest),
        is_built=bool(guest.get("provisionDate")),
        order=billing.as_status(ordered) if ordered else None,
        unready=state if isinstance(state, Pending) else None,
        ends=item.get("cancellationDate") or None,
        rename=f"slcli vs edit {guest['id']} --domain ",
        inputs=live_inputs(guest),
        outputs=outputs(guest),
        row=guest,
    )


def _usual_s(status: Mapping[str, Any]) -> float | None:
    # The service reports minutes, as text.
    try:
        return float(status.get("averageDuration") or 0) * 60 or None
    except ValueError:
        return None


def as_key(row: Row) -> Resource:
    """Read a key."""
    label, since = str(row.get("label") or ""), billing.dated(row.get("createDate"))
    owner, public_key = owner_in_notes(row.get("notes")), str(row.get("key") or "").strip()
    return Resource(
        KEY,
        str(row["id"]),
        label,
        owner,
        what="ssh key",
        since=since,
        inputs={"label": label, "publicKey": public_key},
        row=row,
    )


def as_group(row: Row) -> Resource:
    """Read a security group."""
    name, since = str(row.get("name") or ""), billing.dated(row.get("createDate"))
    owner, description = owner_in_notes(row.get("description")), str(row.get("description") or "").partition(": ")[2]
    inputs = {"name": name, "description": description}
    return Resource(GROUP, str(row["id"]), name, owner, what="security group", since=since, inputs=inputs, row=row)


OTHERS: Mapping[str, tuple[str, str, Callable[[Row], Resource]]] = {
    KEY: ("Security_Ssh_Key", KEY_MASK, as_key),
    GROUP: ("Network_SecurityGroup", GROUP_MASK, as_group),
}
