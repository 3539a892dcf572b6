"""Dated data on what SoftLayer sells, for validation and offline previews; the account may sell less today.

Sources: the vendor's profile and data center pages (May 2026, last edited 2022 to 2025) for what is sold where; the client library's
recorded preset for the P100 price; the course procedure for the price of a pair with disks (about $9 an hour for P100, $13 for V100,
with 2 TB each), from which the rest is derived, undated and without tax. The account itself is asked before the first order (`Ledger`).
"""

from dataclasses import dataclass
from decimal import Decimal

from microcluster.core.catalog.billing_rules import Part, Prices, Rate, hostname

AS_OF = "2026-05"
PRICE_SOURCE = f"estimate from the catalog of {AS_OF}"

# Datacenters that have ever sold a GPU guest.
DATACENTERS = ("dal10", "dal12", "dal13", "fra02", "lon04", "lon06", "syd04", "tok02", "wdc07")

PORT_SPEEDS_MBPS = (10, 100, 1000)

PRIVATE_NETWORK = "10.0.0.0/8"
"""The network of every guest's private card, whatever an image calls that card."""

# IBM Cloud services network: DNS, time, provisioning, monitoring and storage of every datacenter. Without these on the private
# interface, a guest stays in provisioning for ever. The 10.x blocks are those that the vendor's Direct Link and VPC pages
# reserve for it; 161.26/16 and 166.8/14 carry its DNS, mirrors and cloud service endpoints.
SERVICE_NETWORKS = ("10.0.0.0/14", "10.198.0.0/15", "10.200.0.0/14", "161.26.0.0/16", "166.8.0.0/14")

# "2 TB" is 2000: the guest sees 2000 * 1024^3 bytes.
DATA_DISK_SIZES_GB = (
    10,
    20,
    25,
    30,
    40,
    50,
    75,
    100,
    125,
    150,
    175,
    200,
    250,
    300,
    350,
    400,
    500,
    750,
    1000,
    1500,
    2000,
)


# Reference codes, newest first. Others are sold too (Ubuntu 16.04, Debian 9, RHEL, Windows), but we know how to install driver and container
# runtime on this one only.
OPERATING_SYSTEMS = ("UBUNTU_18_64",)


# The per-GPU tables of about 2022; the vendor's later pages list both GPUs together and name no withdrawal.
_P100_DATACENTERS = ("dal13", "fra02", "lon04", "lon06", "syd04", "tok02", "wdc07")
_V100_DATACENTERS = ("dal10", "dal12", "fra02", "lon04", "syd04", "tok02", "wdc07")


@dataclass(frozen=True)
class Flavor:
    """One size of guest."""

    name: str
    gpu: str
    gpus: int
    boot_gb: int
    san: bool
    datacenters: tuple[str, ...]

    def describe(self) -> str:
        """Return for example ``AC1_16X120X100 (2x P100)``."""
        return f"{self.name} ({self.gpus}x {self.gpu})"


def _family(prefix: str, gpu: str, datacenters: tuple[str, ...]) -> list[Flavor]:
    sizes = [("8X60X25", 1, 25), ("8X60X100", 1, 100), ("16X120X25", 2, 25), ("16X120X100", 2, 100)]
    san = [Flavor(f"{prefix}_{size}", gpu, gpus, boot, True, datacenters) for size, gpus, boot in sizes]
    local_prefix = prefix.replace("AC", "ACL")
    local = [
        Flavor(f"{local_prefix}_{size}", gpu, gpus, 100, False, datacenters)
        for size, gpus in (("8X60X100", 1), ("16X120X100", 2))
    ]
    return san + local


FLAVORS: dict[str, Flavor] = {
    flavor.name: flavor
    for flavor in _family("AC1", "P100", _P100_DATACENTERS) + _family("AC2", "V100", _V100_DATACENTERS)
}


def sold_in(datacenter: str) -> list[str]:
    """Return the names of the flavors that ``datacenter`` sells."""
    return [flavor.name for flavor in FLAVORS.values() if datacenter in flavor.datacenters]


_GPU_NODE_PER_HOUR = {"P100": Decimal("1.948"), "V100": Decimal("2.95")}  # One GPU with its 8 cores and 60 GB.
_DISK_PER_GB_HOUR = Decimal("0.00028")
_PORT_PER_HOUR = {10: Decimal("0"), 100: Decimal("0"), 1000: Decimal("0.04")}  # Public and private together.


def price_per_hour(flavor: str, disks_gb: tuple[int, ...], port_speed_mbps: int) -> Decimal | None:
    """Return the estimated US dollars an hour for one guest, or ``None`` for what the catalog does not know."""
    size = FLAVORS.get(flavor)
    if size is None or port_speed_mbps not in _PORT_PER_HOUR:
        return None
    node = _GPU_NODE_PER_HOUR[size.gpu] * size.gpus
    return (node + sum(map(disk_per_hour, disks_gb)) + _PORT_PER_HOUR[port_speed_mbps]).quantize(Decimal("0.001"))


def disk_per_hour(size_gb: int) -> Decimal:
    """Return the estimated US dollars an hour for a SAN disk, which are part of its guest's price."""
    return _DISK_PER_GB_HOUR * size_gb


def prices(flavor: str, disks_gb: tuple[int, ...], port_speed_mbps: int, nodes: int) -> Prices | None:
    """Return the prices of equal guests, each by the hour with disks and port; None if they have no price."""
    each = price_per_hour(flavor, disks_gb, port_speed_mbps)
    if each is None:
        return None
    disks = "".join(f", disk of {size} GB" for size in disks_gb)
    what = f"{FLAVORS[flavor].describe()}{disks}, port of {port_speed_mbps} Mb/s"
    return Prices(tuple(Part(hostname(rank), what, Rate(each)) for rank in range(nodes)), PRICE_SOURCE)
