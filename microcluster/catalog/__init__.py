"""What SoftLayer sells, as dated data: for validation and offline previews, never a promise that it can be ordered today.

Sources: the vendor's profile and data center pages (May 2026, last edited 2022 to 2025) for what is sold where; the client library's recorded preset
for the P100 price; the course procedure for the price of a pair with disks. The account itself is asked before the first order (`Ledger`).
"""

from microcluster.catalog.disks import DATA_DISK_SIZES_GB, MAX_DATA_DISKS
from microcluster.catalog.flavors import FLAVORS, Flavor, sold_in
from microcluster.catalog.networks import DATACENTERS, PORT_SPEEDS_MBPS, SERVICE_NETWORKS
from microcluster.catalog.prices import price_per_hour
from microcluster.catalog.systems import OPERATING_SYSTEMS, newest_system

AS_OF = "2026-05"

__all__ = [
    "AS_OF",
    "DATACENTERS",
    "DATA_DISK_SIZES_GB",
    "FLAVORS",
    "MAX_DATA_DISKS",
    "OPERATING_SYSTEMS",
    "PORT_SPEEDS_MBPS",
    "SERVICE_NETWORKS",
    "Flavor",
    "newest_system",
    "price_per_hour",
    "sold_in",
]
