"""Virtual guests as the API shows them, with their interfaces and transactions."""

from typing import Any

from emulator.softlayer import transactions
from emulator.softlayer.account import Account
from emulator.softlayer.dates import iso
from emulator.softlayer.objects import bills, disks, goods, places, security
from emulator.softlayer.records import Component, Guest, Transaction
from emulator.softlayer.views import View

ACTIVE_ID = 1001


def guest(account: Account, record: Guest) -> View:
    """A virtual guest, from its order to the end of its reclaim."""
    flavor = account.flavor_of(record)
    local = {
        "id": record.id,
        "accountId": 278444,
        "globalIdentifier": record.uuid,
        "uuid": record.uuid,
        "hostname": record.hostname,
        "domain": record.domain,
        "fullyQualifiedDomainName": record.name,
        "createDate": iso(record.created),
        "modifyDate": iso(record.modified),
        "provisionDate": iso(record.provisioned),
        "startCpus": flavor.cores,
        "maxCpu": flavor.cores,
        "maxCpuUnits": "CORE",
        "maxMemory": flavor.memory_gb * 1024,
        "notes": record.notes,
        "statusId": ACTIVE_ID,
        "dedicatedAccountHostOnlyFlag": False,
        "privateNetworkOnlyFlag": record.public is None,
        "postInstallScriptUri": record.post_install_uri,
        "placementGroupId": None,
        "lastPowerStateId": None,
        "lastVerifiedDate": None,
        "metricPollDate": None,
    }
    return View(local, _scalars(account, record) | _relations(account, record))


def created(account: Account, record: Guest) -> View:
    """A guest as ``createObject`` answers: local properties alone."""
    return View(guest(account, record).local)


def component(account: Account, owner: Guest, record: Component) -> View:
    """A network interface."""
    vlan = account.store.vlans[record.vlan_id]
    return View(
        {
            "id": record.id,
            "guestId": owner.id,
            "name": "eth",
            "port": record.port,
            "macAddress": record.mac,
            "primaryIpAddress": record.address,
            "status": "ACTIVE",
            "speed": record.max_speed,
            "maxSpeed": record.max_speed,
            "uuid": f"{owner.uuid[:-1]}{record.port}",
        },
        {
            "guest": lambda: guest(account, owner),
            "networkVlan": lambda: places.vlan(account, vlan),
            "primarySubnet": lambda: places.subnet(account, vlan),
            "router": lambda: places.router(account, account.catalog.router(vlan.router_id)),
            "securityGroupBindings": lambda: [
                View(
                    {"networkComponentId": record.id, "securityGroupId": each},
                    {"securityGroup": lambda each=each: security.group(account, account.store.security_groups[each])},
                )
                for each in record.groups
            ],
        },
    )


def transaction(account: Account, owner: Guest, record: Transaction) -> View:
    """A transaction on a guest, with its current step."""
    until = account.now if record.ended is None else record.ended
    step = transactions.step(record, until)
    minutes = record.duration_s / len(transactions.STEPS[record.group]) / 60
    status = {"name": step, "friendlyName": step.replace("_", " ").title(), "averageDuration": f"{minutes:.2f}"}
    return View(
        {
            "id": record.id,
            "guestId": owner.id,
            "hardwareId": None,
            "createDate": iso(record.started),
            "modifyDate": iso(until),
            "statusChangeDate": iso(until),
            "elapsedSeconds": int(until - record.started),
        },
        {"transactionStatus": lambda: status, "transactionGroup": lambda: {"name": record.group}},
    )


def _scalars(account: Account, record: Guest) -> dict[str, Any]:
    flavor = account.flavor_of(record)
    return {
        "primaryIpAddress": lambda: record.public.address if record.public else None,
        "primaryBackendIpAddress": lambda: record.private.address,
        "hourlyBillingFlag": lambda: record.hourly,
        "localDiskFlag": lambda: not flavor.san,
        "transientGuestFlag": lambda: False,
        "pendingMigrationFlag": lambda: False,
        "gpuCount": lambda: flavor.gpu_count,
        "gpuType": lambda: flavor.gpu_type,
    }


def _relations(account: Account, record: Guest) -> dict[str, Any]:
    by_port = {each.port: each for each in record.components}
    pending, last = record.transaction, record.last_transaction
    vlans = account.store.vlans
    power = {"keyName": "RUNNING", "name": "Running"} if record.powered else {"keyName": "HALTED", "name": "Halted"}
    system = account.catalog.system(record.system) if record.system else None
    image = account.catalog.image(record.image_id) if record.image_id else None

    def side(port: int) -> View | None:
        return component(account, record, by_port[port]) if port in by_port else None

    return {
        "status": lambda: {"keyName": "ACTIVE", "name": "Active"},
        "deviceStatus": lambda: {"id": 1, "name": "Active", "keyName": "ACTIVE"},
        "powerState": lambda: power,
        "lastKnownPowerState": lambda: power,
        "datacenter": lambda: places.datacenter(account.datacenter_of(record)),
        "location": lambda: places.datacenter(account.datacenter_of(record)),
        "activeTransaction": lambda: transaction(account, record, pending) if pending else None,
        "activeTransactions": lambda: [transaction(account, record, pending)] if pending else [],
        "lastTransaction": lambda: transaction(account, record, pending or last) if pending or last else None,
        "lastOperatingSystemReload": lambda: (
            {"id": record.reload_transaction_id} if record.reload_transaction_id else None
        ),
        "billingItem": lambda: bills.of_guest(account, record),
        "networkComponents": lambda: [component(account, record, each) for each in record.components],
        "frontendNetworkComponents": lambda: [side(1)] if 1 in by_port else [],
        "backendNetworkComponents": lambda: [side(0)],
        "primaryNetworkComponent": lambda: side(1),
        "primaryBackendNetworkComponent": lambda: side(0),
        "networkVlans": lambda: [places.vlan(account, vlans[each.vlan_id]) for each in record.components],
        "frontendRouters": lambda: _routers(account, record, 1),
        "backendRouters": lambda: _routers(account, record, 0),
        "blockDevices": lambda: disks.block_devices(account, record),
        "blockDeviceTemplateGroup": lambda: goods.image(account, image) if image else None,
        "operatingSystem": lambda: goods.installed(record, system) if system else None,
        "softwareComponents": lambda: [goods.installed(record, system)] if system else [],
        "tagReferences": lambda: security.tag_references(record.tags),
        "userData": lambda: [{"value": record.user_data}] if record.user_data else [],
        "sshKeys": lambda: _ssh_keys(account, record),
        "networkMonitors": list,
        "allowedNetworkStorage": list,
    }


def _ssh_keys(account: Account, record: Guest) -> list[View]:
    keys = account.store.ssh_keys
    return [security.ssh_key(keys[each]) for each in record.ssh_key_ids if each in keys]


def _routers(account: Account, record: Guest, port: int) -> list[View]:
    devices = [account.store.vlans[each.vlan_id].router_id for each in record.components if each.port == port]
    return [places.router(account, account.catalog.router(each)) for each in devices]
