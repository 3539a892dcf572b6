"""Catalog of Paperspace with dated prices, for validation, previews and receipts: its API shows no price.

Sources: the vendor's price page (docs.digitalocean.com/products/paperspace/pricing/, edited 14 November 2025), without tax; its
pages on machine types (17 June 2025) and on regions (2026). The account itself is asked before the first order (`Ledger`).
"""

from dataclasses import dataclass
from decimal import Decimal

from microcluster.core.catalog.billing_rules import DOLLARS, Part, Prices, Rate, hostname

AS_OF = "2025-11-14"
CURRENCY = DOLLARS
PRICE_SOURCE = f"the vendor's price list of {AS_OF}, as the API shows no price"

REGIONS = {"ny2": "East Coast (NY2)", "ca1": "West Coast (CA1)", "ams1": "Europe (AMS1)"}
"""Regions: the slug that requests carry, and the name that replies may carry instead."""


@dataclass(frozen=True)
class MachineType:
    """One type of machine with GPUs; ``label`` is what orders name it."""

    label: str
    gpu: str
    gpus: int
    rate: Rate
    """Rate of the machine alone, without its disk and address; no month caps it."""
    regions: tuple[str, ...]

    def describe(self) -> str:
        """Return for example ``P4000x2 (2x P4000)``."""
        return f"{self.label} ({self.gpus}x {self.gpu})"


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
FREE = Rate(Decimal(0))

TEMPLATES = {"twnlo3zj": "ML-in-a-Box 20.04", "tvimtol9": "ML-in-a-Box 22.04"}
"""The vendor's machine learning images; the newer one is for A100 and H100 only."""

_ALL = tuple(REGIONS)


def _types(
    gpu: str, price: str, regions: tuple[str, ...], counts: tuple[int, ...], label: str = ""
) -> list[MachineType]:
    # A label with several GPUs is spelled like the vendor's examples (P4000x2); each GPU costs the same.
    label = label or gpu.replace(" ", "")
    found = []
    for count in counts:
        rate = Rate(Decimal(price) * count, by_month=True)
        found.append(MachineType(f"{label}x{count}" if count > 1 else label, gpu, count, rate, regions))
    return found


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
    ]
}


def slug(region: str) -> str:
    """Return the slug of a region that is given by slug or name; another text as it is, in lower case."""
    return next((each for each, name in REGIONS.items() if region in (name, each, each.upper())), region.lower())


def sold_in(region: str) -> list[str]:
    """Return the labels of the machine types that the price list sells in a region."""
    return [each.label for each in MACHINE_TYPES.values() if region in each.regions]


def machine_parts(of: str, machine_type: str, disk_gb: int, public_ip_type: str) -> dict[str, Part]:
    """Return the billed parts of one machine by category; a part that is not on the price list costs nothing."""
    kind = MACHINE_TYPES.get(machine_type)
    parts = {"machine": Part(of, kind.describe(), kind.rate) if kind else Part(of, machine_type, FREE)}
    if disk_gb in DISKS:
        parts["disk"] = Part(of, f"its disk of {disk_gb} GB", DISKS[disk_gb])
    if public_ip_type != "none":
        parts["address"] = Part(of, f"its {public_ip_type} address", PUBLIC_IP)
    return parts


def prices(
    machine_type: str, nodes: int, disk_gb: int, public_ip_type: str, drive_gb: int | None, *, keeps_drive: bool = False
) -> Prices:
    """Return the prices of machines with their network and drive, all of which the price list has."""
    kept = ", stays after make down" if keeps_drive else ""
    parts: list[Part] = []
    for rank in range(nodes):
        parts += machine_parts(hostname(rank), machine_type, disk_gb, public_ip_type).values()
    parts.append(Part("network", f"private network{kept}", NETWORK))
    if drive_gb:
        parts.append(Part("drive", f"{drive_gb} GB{kept}", DRIVES[drive_gb]))
    return Prices(tuple(parts), PRICE_SOURCE)
