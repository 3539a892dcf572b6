"""What can be rented, as dated data: the GPUs, and for each account what it sells."""

from microcluster.catalog.gpus import GPUS, Gpu
from microcluster.catalog.softlayer import (
    AS_OF,
    DATA_DISK_SIZES_GB,
    DATACENTERS,
    FLAVORS,
    MAX_DATA_DISKS,
    OPERATING_SYSTEMS,
    PORT_SPEEDS_MBPS,
    SERVICE_NETWORKS,
    Flavor,
    newest_system,
    price_per_hour,
    sold_in,
)

__all__ = [
    "AS_OF",
    "DATACENTERS",
    "DATA_DISK_SIZES_GB",
    "FLAVORS",
    "GPUS",
    "MAX_DATA_DISKS",
    "OPERATING_SYSTEMS",
    "PORT_SPEEDS_MBPS",
    "SERVICE_NETWORKS",
    "Flavor",
    "Gpu",
    "newest_system",
    "price_per_hour",
    "sold_in",
]
