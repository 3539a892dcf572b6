"""Operating systems for GPU flavors that the remote steps can make ready."""

from __future__ import annotations

# Reference codes, newest first. Others are sold too (Ubuntu 16.04, Debian 9, RHEL, Windows), but driver and container runtime are only
# known to install on this one, and a machine that cannot be made ready costs money until somebody looks.
OPERATING_SYSTEMS = ("UBUNTU_18_64",)


def newest_system() -> str:
    """Return the reference code of the newest system in the catalog."""
    return OPERATING_SYSTEMS[0]
