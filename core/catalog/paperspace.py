"""What Paperspace sells, as dated data for validation, previews and receipts: its API shows no price.

Sources: the vendor's price page (docs.digitalocean.com/products/paperspace/pricing/, edited 14 November 2025), without tax; its
pages on machine types (17 June 2025) and on regions (2026). The account itself is asked before the first order (`Ledger`).
"""

from dataclasses import dataclass
from decimal import Decimal

from core.catalog.prices import DOLLARS, Part, Prices, Rate, hostname

AS_OF = "2025-11-14"
CURRENCY = DOLLARS
PRICE_SOURCE = f"the vendor's price list of {AS_OF}, as the API shows no price"

REGIONS = {"ny2": "East Coast (NY2)", "ca1": "West Coast (CA1)", "ams1": "Europe (AMS1)"}
"""By the slug that requests carry: the name that replies may carry instead."""
PUBLIC_IP_TYPES = ("static", "dynamic", "none")


@dataclass(frozen=True)
class MachineType:
    """One type of machine; ``label`` is what orders name it."""

    label: str
    gpu: str | None
    gpus: int
    per_hour: Decimal
    """Of the machine alone, and without a limit a month."""
    regions: tuple[str, ...]

    @property
    def rate(self) -> Rate:
        """Its price without a limit a month."""
        return Rate(self.per_hour, by_month=True)

    def describe(self) -> str:
        """Return for example ``P4000x2 (2x P4000)``."""
        return f"{self.label} ({self.gpus}x {self.gpu})" if self.gpu else self.label


def _rate(per_hour: str, per_month: int) -> Rate:
    return Rate(Decimal(per_hour), Decimal(per_month), by_month=True)


DISKS = {
    50: _rate("0.0074", 5),
    100: _rate("0.0104", 7),
    250: _rate("0.0149", 10),
    500: _rate("0.0372", 25),
    1000: _rate("0.0818", 55),
    2000: _rate("0.1786", 120),
}
"""A machine's disk, by its GB."""
DRIVES = {
    250: _rate("0.0238", 16),
    500: _rate("0.0491", 33),
    1000: _rate("0.0967", 65),
    2000: _rate("0.1935", 130),
    4000: _rate("0.3869", 260),
    8000: _rate("0.7738", 520),
    12000: _rate("1.1607", 780),
    16000: _rate("1.5476", 1040),
}
"""A shared drive, by its GB."""
PUBLIC_IP = _rate("0.0045", 3)
NETWORK = _rate("0.0015", 1)

TEMPLATES = {"twnlo3zj": "ML-in-a-Box 20.04", "tvimtol9": "ML-in-a-Box 22.04"}
"""The vendor's machine learning images; the newer one is for A100 and H100 only."""

_ALL = tuple(REGIONS)


def _types(
    gpu: str, price: str, regions: tuple[str, ...], counts: tuple[int, ...], label: str = ""
) -> list[MachineType]:
    # A label with several GPUs is spelled like the vendor's examples (P4000x2); each GPU costs the same.
    label = label or gpu.replace(" ", "")
    return [
        MachineType(f"{label}x{count}" if count > 1 else label, gpu, count, Decimal(price) * count, regions)
        for count in counts
    ]


def _cpu(label: str, price: str) -> MachineType:
    return MachineType(label, None, 0, Decimal(price), _ALL)


MACHINE_TYPES: dict[str, MachineType] = {
    each.label: each
    for each in [
        *_types("P4000", "0.51", _ALL, (1, 2, 4)),
        *_types("P5000", "0.78", _ALL, (1, 2, 4)),
        *_types("P6000", "1.10", _ALL, (1, 2, 4)),
        *_types("RTX 4000", "0.56", _ALL, (1, 2, 4)),
        *_types("RTX 5000", "0.82", ("ny2",), (1, 2, 4)),
        *_types("V100", "2.30", ("ny2", "ams1"), (1,)),
        *_types("V100", "2.30", ("ny2",), (1, 2, 4), "V100-32G"),
        *_types("A4000", "0.76", _ALL, (1, 2, 4)),
        *_types("A5000", "1.38", ("ny2", "ca1"), (1, 2, 4)),
        *_types("A6000", "1.89", ("ny2", "ca1"), (1, 2, 4)),
        *_types("A100", "3.09", ("ny2",), (1, 8)),
        *_types("A100", "3.18", ("ny2",), (1, 8), "A100-80G"),
        *_types("H100", "5.95", ("ny2",), (1, 8)),
        _cpu("C3", "0.018"),
        _cpu("C4", "0.04"),
        _cpu("C5", "0.08"),
        _cpu("C6", "0.16"),
        _cpu("C7", "0.30"),
        _cpu("C8", "0.60"),
        _cpu("C9", "0.90"),
        _cpu("C10", "1.60"),
    ]
}


@dataclass(frozen=True)
class Cluster:
    """What is rented together, as far as it has a price."""

    machine_type: str
    nodes: int
    disk_gb: int
    public_ip_type: str
    drive_gb: int | None = None
    keep_drive: bool = False


def slug(region: str) -> str:
    """Return the slug of a region that is given by slug or name; another text as it is, in lower case."""
    return next((each for each, name in REGIONS.items() if region in (name, each, each.upper())), region.lower())


def sold_in(region: str) -> list[str]:
    """Return the labels of the machine types that the price list sells in a region."""
    return [each.label for each in MACHINE_TYPES.values() if region in each.regions]


def machine_parts(of: str, machine_type: str, disk_gb: int, public_ip_type: str) -> tuple[Part, ...] | None:
    """Return what is billed for one machine that is on, or None for what the catalog does not know."""
    kind, disk = MACHINE_TYPES.get(machine_type), DISKS.get(disk_gb)
    if kind is None or disk is None or public_ip_type not in PUBLIC_IP_TYPES:
        return None
    parts = (Part(of, kind.describe(), kind.rate), Part(of, f"its disk of {disk_gb} GB", disk))
    return parts if public_ip_type == "none" else (*parts, Part(of, f"its {public_ip_type} address", PUBLIC_IP))


def prices(cluster: Cluster) -> Prices | None:
    """Return what is billed for all of it, or None for what the catalog does not know."""
    machines = [
        machine_parts(hostname(rank), cluster.machine_type, cluster.disk_gb, cluster.public_ip_type)
        for rank in range(cluster.nodes)
    ]
    if None in machines or cluster.drive_gb not in (None, *DRIVES):
        return None
    kept = ", stays after make down" if cluster.keep_drive else ""
    shared = [Part("network", f"private network{kept}", NETWORK)]
    if cluster.drive_gb:
        shared.append(Part("drive", f"{cluster.drive_gb} GB{kept}", DRIVES[cluster.drive_gb]))
    return Prices((*(part for parts in machines for part in parts), *shared), PRICE_SOURCE)
