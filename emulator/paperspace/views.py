"""The records as the API shows them."""

from datetime import UTC, datetime
from typing import Any

from emulator.paperspace.account import Account
from emulator.paperspace.catalog import Template
from emulator.paperspace.records import Drive, Event, Machine, Network, PublicIp, Script

GIB = 1024**3  # Bytes are texts: the document says integer, and clients of the live service have read a string.
AGENT = "LinuxHeadless"
NETMASK = "255.255.255.0"
USED_BYTES = 28 * GIB  # what a fresh image takes, after the vendor's page on resizing
PUBLISHED = 1730419200.0  # 1 November 2024, as most names of the templates say
View = dict[str, Any]


def moment(seconds: float | None) -> str | None:
    """A moment as the API writes it: UTC with milliseconds."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def machine(account: Account, shown: Machine) -> View:
    """A machine."""
    kind, template = account.catalog.types[shown.machine_type], account.catalog.templates[shown.template_id]
    return {
        "id": shown.ref,
        "name": shown.name,
        "state": shown.state,
        "os": template.label,
        "machineType": shown.machine_type,
        "agentType": AGENT,
        "cpus": kind.cores,
        "ram": str(int(kind.memory_gb * GIB)),
        "storageTotal": str(shown.disk_gb * GIB),
        "storageUsed": str(USED_BYTES),
        "accelerators": [{"name": kind.gpu, "memory": str(kind.gpu_memory_gb * GIB), "count": kind.gpus}],
        "region": account.catalog.regions[shown.region],
        "privateIp": shown.private_ip,
        "networkId": account.store.networks[shown.network_id].ref,
        "publicIp": shown.public_ip,
        "publicIpType": shown.public_ip_type,
        "autoShutdownEnabled": False,
        "autoShutdownTimeout": None,
        "autoShutdownForce": None,
        "autoSnapshotEnabled": False,
        "autoSnapshotFrequency": None,
        "autoSnapshotSaveCount": None,
        "updatesPending": False,
        "restorePointEnabled": False,
        "restorePointFrequency": None,
        "restorePointSnapshotId": None,
        "usageRate": float(kind.rate.per_hour),
        "storageRate": float(account.catalog.disks[shown.disk_gb].per_month),
        "dtCreated": moment(shown.created),
        "dtModified": moment(shown.modified),
        "dtDeleted": None,
        "reservation": None,
    }


def network(account: Account, shown: Network) -> View:
    """A private network."""
    return {
        "id": shown.ref,
        "name": shown.name,
        "region": shown.region,
        "network": shown.subnet.partition("/")[0],
        "netmask": NETMASK,
        "dtCreated": moment(shown.created),
        "dtDeleted": None,
    }


def drive(account: Account, shown: Drive) -> View:
    """A shared drive, with its password."""
    return {
        "id": shown.ref,
        "name": shown.name,
        "dtCreated": moment(shown.created),
        "dtDeleted": None,
        "size": str(shown.size_gb * GIB),
        "mountPoint": f"\\\\{shown.address}\\{shown.ref}",
        "username": shown.username,
        "password": shown.password,
        "networkId": account.store.networks[shown.network_id].ref,
        "region": shown.region,
    }


def script(account: Account, shown: Script) -> View:
    """A startup script, without its text."""
    living = (account.store.machines.get(number) for number in shown.machine_ids)
    return {
        "id": shown.ref,
        "name": shown.name,
        "description": None,
        "isEnabled": True,
        "isRunOnce": shown.is_run_once,
        "assignedMachineIds": [each.ref for each in living if each],
        "dtCreated": moment(shown.created),
        "dtDeleted": None,
    }


def public_ip(account: Account, shown: PublicIp) -> View:
    """A claimed address."""
    assigned = account.store.machines.get(shown.machine_id) if shown.machine_id else None
    holder = {"assignedMachineId": assigned.ref} if assigned else {}
    return {"ip": shown.ref, "region": shown.region, **holder, "dtCreated": moment(shown.created)}


def event(account: Account, shown: Event) -> View:
    """A machine event."""
    return {
        "id": shown.ref,
        "name": shown.name,
        "state": shown.state,
        "machineId": shown.machine_ref,
        "dtCreated": moment(shown.created),
        "dtStarted": moment(shown.started),
        "dtFinished": moment(shown.finished),
        "error": None,
    }


def template(shown: Template) -> View:
    """A template."""
    return {
        "id": shown.ref,
        "name": shown.name,
        "agentType": AGENT,
        "operatingSystemLabel": shown.label,
        "defaultSizeGb": shown.default_gb,
        "availableMachineTypes": [{"machineTypeLabel": each.label, "isAvailable": True} for each in shown.types],
        "dtCreated": moment(PUBLISHED),
    }
