"""Sizes of the SAN disks that can be added to a guest."""

from __future__ import annotations

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

MAX_DATA_DISKS = 4  # Five disks in all; the first is the flavor's boot disk.
