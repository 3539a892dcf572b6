"""Reads ``catalog.toml``, the price list, into the types of the catalog."""

import functools
import tomllib
from decimal import Decimal
from pathlib import Path

from emulator.softlayer.catalog import (
    DISK_CATEGORIES,
    Catalog,
    Category,
    Datacenter,
    Flavor,
    Image,
    Price,
    Router,
    System,
)

CATALOG_FILE = Path(__file__).with_name("catalog.toml")
LINKS = (("bcr", 0), ("fcr", 500))  # private and public routers; a router's id tells its datacenter and pod
PODS_PER_DATACENTER = 2


@functools.cache
def load_catalog(path: Path = CATALOG_FILE) -> Catalog:
    """Read the price list."""
    raw = tomllib.loads(path.read_text())
    categories = {code: Category(code, **row) for code, row in raw["categories"].items()}
    datacenters = tuple(Datacenter(**row) for row in raw["datacenters"])
    boot = {int(size): _boot_disk(int(size), row, categories) for size, row in raw["boot_disks"].items()}
    return Catalog(
        currency=raw["currency"],
        hours_per_month=raw["hours_per_month"],
        package_id=raw["package"]["id"],
        package_key=raw["package"]["key_name"],
        package_name=raw["package"]["name"],
        datacenters=datacenters,
        routers=tuple(router for number, each in enumerate(datacenters, 1) for router in _routers(number, each)),
        flavors=tuple(_flavor(key, row, raw, categories, boot) for key, row in raw["flavors"].items()),
        systems=tuple(_system(row, categories["os"]) for row in raw["systems"]),
        images=tuple(Image(**row) for row in raw["images"]),
        included=tuple(_included(row, categories) for row in raw["included"]),
        port_speeds=_port_speeds(raw, categories["port_speed"]),
        boot_disks=boot,
        disks=_disks(raw["san_disks"], categories),
        categories=categories,
    )


def _routers(number: int, datacenter: Datacenter) -> list[Router]:
    return [
        Router(1000 * number + offset + pod, f"{kind}{pod:02d}a.{datacenter.name}", datacenter, pod)
        for kind, offset in LINKS
        for pod in range(1, PODS_PER_DATACENTER + 1)
    ]


def _flavor(key: str, row: dict, raw: dict, categories: dict[str, Category], boot: dict[int, Price]) -> Flavor:
    gpu, cores, memory = raw["gpus"][row["gpu"]], row["cores"], row["memory_gb"]
    first_id = 207000 + 10 * row["id"]
    gpu_item = f"{row['gpus']}_X_{row['gpu']}_GPU"
    gpu_text = f"{row['gpus']} x {gpu['model']} GPU"
    parts = (
        Price(first_id, first_id, gpu_item, gpu_text, categories["guest_pcie_device0"], row["gpus"] * _fee(gpu)),
        Price(
            first_id + 1,
            first_id + 1,
            f"RAM_{memory}_GB",
            f"{memory} GB",
            categories["ram"],
            memory * Decimal(raw["units"]["memory_gb_fee"]),
            memory,
            "GB",
        ),
        Price(
            first_id + 2,
            first_id + 2,
            f"GUEST_CORE_{cores}",
            f"{cores} x 2.0 GHz or higher Cores",
            categories["guest_core"],
            cores * Decimal(raw["units"]["core_fee"]),
            cores,
            "CORE",
        ),
        boot[row["boot_gb"]],
    )
    return Flavor(
        id=row["id"],
        key_name=key,
        gpu_model=gpu["model"],
        gpu_type=row["gpu"],
        gpu_count=row["gpus"],
        cores=cores,
        memory_gb=memory,
        boot_gb=row["boot_gb"],
        san=row["storage"] == "SAN",
        sold_in=frozenset(gpu["sold_in"]),
        prices=parts,
    )


def _system(row: dict, category: Category) -> System:
    price = Price(row["price"], row["price"], row["key_name"], row["description"], category, _fee(row))
    return System(price, tuple(row["codes"]), row["manufacturer"], row["version"])


def _included(row: dict, categories: dict[str, Category]) -> Price:
    return Price(
        row["price"], row["price"], row["key_name"], row["description"], categories[row["category"]], Decimal()
    )


def _port_speeds(raw: dict, category: Category) -> dict[tuple[int, bool], Price]:
    speeds = {}
    for private, rows in ((False, raw["port_speeds"]), (True, raw["port_speeds_private"])):
        for row in rows:
            speed = f"{row['mbps']} Mbps" if row["mbps"] < 1000 else f"{row['mbps'] // 1000} Gbps"
            text = f"{speed} {'Private Network Uplink' if private else 'Public & Private Network Uplinks'}"
            price = Price(row["price"], row["price"], row["key_name"], text, category, _fee(row), row["mbps"], "Mbps")
            speeds[row["mbps"], private] = price
    return speeds


def _boot_disk(size: int, row: dict, categories: dict[str, Category]) -> Price:
    category = categories["guest_disk0"]
    return Price(row["price"], row["price"], row["key_name"], f"{size} GB (SAN)", category, Decimal(), size, "GB")


def _disks(rows: dict, categories: dict[str, Category]) -> dict[tuple[str, int], Price]:
    disks = {}
    for size, row in rows.items():
        for number, code in enumerate(DISK_CATEGORIES[1:]):
            price_id, capacity = row["price"] + number, int(size)
            name, text = row["key_name"], f"{size} GB (SAN)"
            disks[code, capacity] = Price(
                price_id, row["price"], name, text, categories[code], _fee(row), capacity, "GB"
            )
    return disks


def _fee(row: dict) -> Decimal:
    return Decimal(row["fee"])
