"""Volumes and the hosts that may attach them as the API shows them."""

from __future__ import annotations

import hashlib
from typing import Any

from .. import volumes as life
from ..account import Account
from ..clock import iso
from ..records import Guest, Transaction, Volume
from ..views import View
from . import bills, guests, places

NAS_TYPES = {"block": "ISCSI", "file": "NAS"}


def volume(account: Account, record: Volume) -> View:
    """A volume, from its order to the end of its reclaim."""
    address = _address(account, record)
    local = {
        "id": record.id,
        "accountId": account.id,
        "username": record.username,
        "password": record.password,
        "capacityGb": record.capacity_gb,
        "createDate": iso(record.created),
        "nasType": NAS_TYPES[record.kind],
        "notes": record.notes,
        "serviceResourceBackendIpAddress": address,
        "serviceResourceName": f"Storage Type 02 Aggregate {record.datacenter}",
        "upgradableFlag": True,
    }
    return View(local, _relations(account, record, address))


def allowed_host(account: Account, owner: Guest) -> View:
    """A guest as a storage host: its name is an IQN, its credential that of CHAP."""
    credential = {
        "username": f"SL01SU{account.id}-V{owner.id}",
        "password": hashlib.sha256(f"{owner.uuid}-chap".encode()).hexdigest()[:16],
    }
    return View(
        {
            "id": owner.id * 10 + 3,
            "name": f"iqn.2005-05.com.softlayer:{credential['username'].lower()}",
            "resourceTableId": owner.id,
            "resourceTableName": "VIRTUAL_GUEST",
        },
        {"credential": lambda: credential, "sourceSubnet": lambda: None},
    )


def _relations(account: Account, record: Volume, address: str) -> dict[str, Any]:
    block = record.kind == "block"
    style = "ENDURANCE" if record.tier else "PERFORMANCE"
    place = account.catalogue.datacenter(record.datacenter)
    resource = View(
        {"id": place.id * 10 + 1, "backendIpAddress": address, "name": f"Storage Type 02 Aggregate {place.name}"},
        {"datacenter": lambda: places.datacenter(place), "type": lambda: {"type": "NETAPP_STOR_AGGR"}},
    )
    work = record.transaction
    return {
        "storageType": lambda: {"keyName": f"{style}_{'BLOCK' if block else 'FILE'}_STORAGE"},
        "serviceResource": lambda: resource,
        "volumeStatus": lambda: "PROVISION_COMPLETED" if record.provisioned else "PROVISION_IN_PROGRESS",
        "storageTierLevel": lambda: record.tier,
        "provisionedIops": lambda: str(record.iops),
        "iops": lambda: str(record.iops),
        "lunId": lambda: str(record.lun) if block else None,
        "fileNetworkMountAddress": lambda: None if block else f"{address}:/{record.username}/data01",
        "bytesUsed": lambda: "0",
        "osType": lambda: {"keyName": record.system} if block else None,
        "iscsiTargetIpAddresses": lambda: [address] if block else [],
        "activeTransactions": lambda: [_transaction(account, work)] if work else [],
        "billingItem": lambda: bills.of(account, account.store.billing_items[record.billing_item_id]),
        "allowedVirtualGuests": lambda: [_allowed(account, each) for each in life.allowed(account, record)],
        "allowedHardware": list,
        "allowedSubnets": list,
        "allowedIpAddresses": list,
        "replicationPartners": list,
        "snapshots": list,
        "snapshotCapacityGb": lambda: None,
    }


def _allowed(account: Account, owner: Guest) -> View:
    shown = guests.guest(account, owner)
    return View(shown.local, shown.relations | {"allowedHost": lambda: allowed_host(account, owner)})


def _transaction(account: Account, work: Transaction) -> View:
    status = {"name": work.group.replace(" ", "_").upper(), "friendlyName": work.group, "averageDuration": "1.00"}
    return View(
        {"id": work.id, "createDate": iso(work.started), "elapsedSeconds": int(account.now - work.started)},
        {"transactionStatus": lambda: status, "transactionGroup": lambda: {"name": work.group}},
    )


def _address(account: Account, record: Volume) -> str:
    """An address in the vendor's storage network."""
    place = account.catalogue.datacenters.index(account.catalogue.datacenter(record.datacenter))
    return f"161.26.{100 + place}.{1 + record.lun % 250}"
