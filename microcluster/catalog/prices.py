"""Rough list prices, so that a preview without an account can name a figure.

The P100 figure is the sum of a recorded preset's parts, doubled. The rest is derived from what the course procedure states for a pair
with 2 TB disks (about $9 an hour for P100, $13 for V100): derived, undated and without tax.
"""

from __future__ import annotations

from decimal import Decimal

from microcluster.catalog.flavors import FLAVORS

_GPU_NODE_PER_HOUR = {"P100": Decimal("1.948"), "V100": Decimal("2.95")}  # One GPU with its 8 cores and 60 GB.
_DISK_PER_GB_HOUR = Decimal("0.00029")
_PORT_PER_HOUR = {10: Decimal("0"), 100: Decimal("0"), 1000: Decimal("0.02")}


def price_per_hour(flavor: str, disks_gb: tuple[int, ...], port_speed_mbps: int) -> Decimal | None:
    """Return the estimated US dollars an hour for one guest, or ``None`` for what the catalog does not know."""
    known = FLAVORS.get(flavor)
    if known is None or port_speed_mbps not in _PORT_PER_HOUR:
        return None
    node = _GPU_NODE_PER_HOUR[known.gpu] * known.gpus
    return (node + _DISK_PER_GB_HOUR * sum(disks_gb) + _PORT_PER_HOUR[port_speed_mbps]).quantize(Decimal("0.001"))
