"""Block volumes: the sizes and speeds that are sold, and rough list prices so that a preview can name a figure.

Sizes, tiers and bounds are those of the vendor's storage pages, the prices are rough and undated; the account's own billing item says what is paid.
"""

from __future__ import annotations

from decimal import Decimal

SMALLEST_GB, LARGEST_GB = 20, 12000
LARGEST_OF_FASTEST_TIER_GB = 4000
TIER_PER_GB_MONTH = {  # Operations a second and GB, and what a GB of them costs a month.
    0.25: Decimal("0.066"),
    2: Decimal("0.151"),
    4: Decimal("0.197"),
    10: Decimal("0.578"),
}
_GB_MONTH = Decimal("0.0986")
_IOPS_MONTH = Decimal("0.0657")
_IOPS_OF_SIZE = (  # From this size in GB on: from and to, in operations a second.
    (20, 100, 1000),
    (40, 100, 2000),
    (80, 100, 4000),
    (100, 100, 6000),
    (500, 100, 10000),
    (1000, 100, 20000),
    (2000, 200, 40000),
    (3000, 200, 48000),
    (4000, 300, 48000),
    (8000, 500, 48000),
    (10000, 1000, 48000),
)


def iops_range(size_gb: int) -> tuple[int, int]:
    """Return the operations a second, from and to, that a performance volume of this size is sold with."""
    return next((least, most) for size, least, most in reversed(_IOPS_OF_SIZE) if size_gb >= size)


def volume_per_month(size_gb: int, iops_per_gb: float | None, iops: int | None) -> Decimal:
    """Return the estimated US dollars a month of a volume of an endurance tier, or with so many operations a second."""
    if iops_per_gb is not None:
        return (TIER_PER_GB_MONTH[iops_per_gb] * size_gb).quantize(Decimal("0.01"))
    return (_GB_MONTH * size_gb + _IOPS_MONTH * (iops or 0)).quantize(Decimal("0.01"))
