"""Stacks chosen at random, each priced as a preview does, then rented in an emulated account whose invoice is the judge.

``python -m tests.unit.priced_rentals`` prints all of them.
"""

import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from emulator.paperspace import billing as team_billing
from emulator.paperspace import lifecycle
from emulator.softlayer import billing, transactions
from microcluster.accounts.paperspace import catalog as paperspace
from microcluster.accounts.registry import account_of
from microcluster.accounts.shared.cluster_section import ClusterSection
from microcluster.accounts.softlayer import catalog as softlayer
from microcluster.accounts.softlayer.billing import verify
from microcluster.accounts.softlayer.specs import GuestSpec, guest_template
from tests.unit.emulated import Emulated
from tests.unit.emulated_paperspace import EmulatedPaperspace, order

EACH = 100
HOUR_S = 3600
MANY_HOURS = (1, 3, 30, 300, 1500)
"""A month has some 730: parts with a limit a month reach it."""


@dataclass(frozen=True)
class Rental:
    """One stack: what a preview says that so many hours cost, by catalog and by account, and what they did cost."""

    section: ClusterSection
    hours: float
    by_catalog: Decimal
    by_account: Decimal
    invoice: Decimal

    @property
    def off(self) -> Decimal:
        """The larger of the two errors, as a share of the invoice."""
        return max(abs(each - self.invoice) for each in (self.by_catalog, self.by_account)) / self.invoice


class Wireless:
    """The emulated account as the provider asks it."""

    def __init__(self, emulated: Emulated) -> None:
        self.emulated = emulated

    def read(self, service: str, method: str, *arguments: Any) -> Any:
        return self.emulated.call(service, method, *arguments)


def rentals(folder: Path, seed: int = 0) -> Iterator[Rental]:
    """Rent the stacks one after the other, of both accounts."""
    dice = random.Random(seed)
    guests, team = Emulated(folder / "softlayer"), EmulatedPaperspace(folder / "paperspace")
    for _ in range(EACH):
        yield _of_guests(dice, guests)
        yield _of_machines(dice, team)


def _of_guests(dice: random.Random, emulated: Emulated) -> Rental:
    flavor = dice.choice([each for each in softlayer.FLAVORS.values() if each.san])
    nodes = dice.randint(1, 4)
    section = _section(
        "softlayer",
        datacenter=dice.choice(flavor.datacenters),
        flavor=flavor.name,
        nodes=nodes,
        portSpeedMbps=dice.choice(softlayer.PORT_SPEEDS_MBPS),
        dataDiskGb=dice.choice(softlayer.DATA_DISK_SIZES_GB),
        os="UBUNTU_18_64",
    )
    domain = f"s{emulated.account.next_id()}-1f3a9c42.microcluster"
    hardware = {
        "datacenter": section.datacenter,
        "flavor": section.flavor,
        "data_disks_gb": (section.data_disk_gb,),
        "port_speed_mbps": section.port_speed_mbps,
        "os": section.os,
    }
    specs = [
        GuestSpec.model_construct(hostname=name, domain=domain, mark="1f3a9c42", **hardware)
        for name in section.hostnames
    ]
    answer = verify(Wireless(emulated), specs)
    hours = _hours(dice)
    opened = emulated.account.now
    ids = [emulated.call("Virtual_Guest", "createObject", guest_template(spec, "")) for spec in specs]
    # They are built first: one that is being built cannot be cancelled.
    for seconds in (20, 20, 20, hours * HOUR_S - 60):
        emulated.account.clock.step(seconds)
        transactions.advance(emulated.account)
    for each in ids:
        emulated.call("Virtual_Guest", "deleteObject", identifier=each["id"])
    items = [each for each in emulated.account.store.billing_items.read_all() if each.domain == domain]
    paid = sum((billing.charged(each, emulated.account.now) for each in items), Decimal(0))
    emulated.account.clock.step(dice.uniform(0, 20 * 24) * HOUR_S)
    while transactions.advance(emulated.account):
        emulated.account.clock.step(20)
    return _rental(section, hours, opened, Decimal(answer["postTaxRecurringHourly"]), paid)


def _of_machines(dice: random.Random, team: EmulatedPaperspace) -> Rental:
    kind = dice.choice([each for each in paperspace.MACHINE_TYPES.values() if each.label in team.account.catalog.types])
    template = "tvimtol9" if kind.gpu in ("A100", "H100") else "twnlo3zj"
    section = _section(
        "paperspace",
        region=dice.choice(kind.regions),
        machineType=kind.label,
        nodes=dice.randint(1, 4),
        diskGb=dice.choice([size for size in paperspace.DISKS if size >= 100]),
        driveGb=dice.choice((0, *list(paperspace.DRIVES)[:4])),
        publicIp=dice.choice(("dynamic", "static")),
    )
    hours, opened = _hours(dice), team.account.now
    before = {item.id for item in team.account.store.billing_items.read_all()}
    network = team.network(f"net-{opened}", section.region)
    if section.drive_gb:
        drive = team.drive(network, size=section.drive_gb, region=section.region)["id"]
    wanted = {"machineType": kind.label, "templateId": template, "region": section.region, "networkId": network}
    address = {"diskSize": section.disk_gb, "publicIpType": section.public_ip}
    orders = [order(name) | wanted | address for name in section.hostnames]
    machines = [team.call("POST", "/machines", **each)["data"]["id"] for each in orders]
    team.account.clock.step(hours * HOUR_S)
    lifecycle.advance(team.account)
    addresses = [team.call("GET", f"/machines/{machine}")["publicIp"] for machine in machines]
    for method, path in (("PATCH", "/stop"), ("DELETE", "")):
        for machine in machines:
            team.call(method, f"/machines/{machine}{path}")
        team.account.clock.step(60)
        lifecycle.advance(team.account)
    for each in addresses if section.public_ip == "static" else ():
        team.call("DELETE", f"/public-ips/{each}")
    if section.drive_gb:
        team.call("DELETE", f"/shared-drives/{drive}")
    team.call("DELETE", f"/private-networks/{network}")
    items = [item for item in team.account.store.billing_items.read_all() if item.id not in before]
    assert all(item.closed for item in items)
    paid = sum((team_billing.charged(item, team.account.now) for item in items), Decimal(0))
    team.account.clock.step(dice.uniform(0, 20 * 24) * HOUR_S)
    return _rental(section, hours, opened, section.prices.per_hour, paid)


def _section(account: str, **keys: Any) -> ClusterSection:
    return account_of(account).section(account=account, adminCidrs=["198.51.100.7/32"], **keys)


def _hours(dice: random.Random) -> float:
    """Choose a length that does not end within minutes of a full hour: ordering and ending take time of their own."""
    return dice.randint(0, dice.choice(MANY_HOURS)) + dice.uniform(0.05, 0.9)


def _rental(section: ClusterSection, hours: float, opened: float, per_hour: Decimal, paid: Decimal) -> Rental:
    begin = datetime.fromtimestamp(opened, UTC)
    end = begin + timedelta(hours=hours)
    by_catalog, by_account = (
        sum((part.rate.cost(begin, end) for part in prices.parts), Decimal(0))
        for prices in (section.prices, section.prices.at(per_hour, "the account"))
    )
    return Rental(section, hours, by_catalog, by_account, paid)


def _row(one: Rental) -> str:
    section = one.section
    if section.account == "softlayer":
        parts = f"{section.data_disk_gb} GB, {section.port_speed_mbps} Mb/s"
    else:
        parts = f"{section.disk_gb} GB, {section.public_ip}, drive {section.drive_gb} GB"
    rented = f"{section.nodes}x {section.hardware.name}, {parts}"
    figures = "".join(f"{each:11.2f}" for each in (one.by_catalog, one.by_account, one.invoice))
    return f"{section.account:<10} {rented:<48}{one.hours:8.2f} h{figures}{one.off:8.2%}"


if __name__ == "__main__":
    print(f"{'account':<10} {'rented':<48}{'':>10}{'catalog':>11}{'account':>11}{'invoice':>11}{'off':>8}")
    with tempfile.TemporaryDirectory() as home:
        for each in rentals(Path(home)):
            print(_row(each))
