"""Operating systems that the vendor documents for GPU flavors."""

from __future__ import annotations

# Reference codes, newest first. Windows and RHEL are sold too, but the procedures and the driver packages are for these.
OPERATING_SYSTEMS = ("UBUNTU_18_64", "UBUNTU_16_64", "DEBIAN_9_64")


def newest_system() -> str:
    """Return the reference code of the newest system in the catalogue."""
    return OPERATING_SYSTEMS[0]
