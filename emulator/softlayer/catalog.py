"""The catalog: what is sold, where, and for how much per hour; ``catalog.toml`` is the price list."""

import functools
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

DISK_CATEGORIES = ("guest_disk0", "guest_disk1", "guest_disk2", "guest_disk3", "guest_disk4")
CATALOG_FILE = Path(__file__).with_name("catalog.toml")
LINKS = (("bcr", 0), ("fcr", 500))  # private and public routers; a router's id tells its datacenter and pod
PODS_PER_DATACENTER = 2


@dataclass(frozen=True)
class Price:
    """One orderable item under one billing category, with its fee per hour."""

    id: int
    key_name: str
    description: str
    category: str
    hourly: Decimal
    capacity: int | None = None


@dataclass(frozen=True)
class Datacenter:
    """A place; its two pods are a pair of routers each."""

    id: int
    name: str
    long_name: str


@dataclass(frozen=True)
class Router:
    """One router: ``bcr`` leads to the private network, ``fcr`` to the public one."""

    id: int
    hostname: str
    datacenter: Datacenter
    pod: str

    @property
    def private(self) -> bool:
        """Whether the router leads to the private network."""
        return self.hostname.startswith("bcr")


@dataclass(frozen=True)
class Flavor:
    """A preset: the machine that is rented, and the prices it is made of, without its boot disk's."""

    id: int
    key_name: str
    gpu_model: str
    gpu_count: int
    cores: int
    memory_gb: int
    boot_gb: int
    san: bool
    sold_in: frozenset[str]
    prices: tuple[Price, ...]


@dataclass(frozen=True)
class Image:
    """An image template; a foreign one belongs to another account, which keeps it to itself."""

    id: int
    guid: str
    name: str
    virtualization: str
    cloud_init: bool
    boot_gb: int
    system: int  # the price of its operating system
    foreign: bool = False


@dataclass(frozen=True)
class Catalog:
    """Price list with everything that can be ordered."""

    currency: str
    hours_per_month: int
    package_id: int
    package_key: str
    datacenters: tuple[Datacenter, ...]
    routers: tuple[Router, ...]
    flavors: tuple[Flavor, ...]
    images: tuple[Image, ...]
    systems: dict[str, Price]  # by each of the reference codes that mean one
    software: dict[int, dict[str, Any]]  # the description of a system, by the id of its price
    categories: dict[str, dict[str, Any]]  # by their codes
    included: tuple[Price, ...]
    sized: dict[tuple[str, int], Price]  # disks and ports, by category and capacity

    def monthly(self, hourly: Decimal) -> Decimal:
        """The monthly fee of a part with this hourly fee."""
        return (hourly * self.hours_per_month).quantize(Decimal("0.01"))

    def flavor(self, key: str | int) -> Flavor | None:
        """A flavor by its key name or preset id."""
        return next((each for each in self.flavors if key in (each.key_name, each.id)), None)

    def datacenter(self, key: str) -> Datacenter | None:
        """A datacenter by its name or id."""
        return next((each for each in self.datacenters if key in (each.name, str(each.id))), None)

    def router(self, router_id: int) -> Router | None:
        """A router by its id."""
        return next((each for each in self.routers if each.id == router_id), None)

    def image(self, key: str | int) -> Image | None:
        """An image by id or GUID."""
        return next((each for each in self.images if str(key) in (str(each.id), each.guid)), None)

    @functools.cached_property
    def prices(self) -> dict[int, Price]:
        """Every price that an order may name, by its id."""
        return {price.id: price for price in (*self.included, *self.sized.values(), *self.systems.values())}


@functools.cache
def load_catalog(price_factor: float = 1.0) -> Catalog:
    """Read the price list, with each fee so many times as high."""
    raw = _with_fees(tomllib.loads(CATALOG_FILE.read_text()), Decimal(str(price_factor)))
    datacenters = tuple(Datacenter(**row) for row in raw["datacenters"])
    return Catalog(
        currency=raw["currency"],
        hours_per_month=raw["hours_per_month"],
        package_id=raw["package_id"],
        package_key=raw["package_key"],
        datacenters=datacenters,
        routers=tuple(router for number, each in enumerate(datacenters, 1) for router in _routers(number, each)),
        flavors=tuple(_flavor(key, row, raw) for key, row in raw["flavors"].items()),
        images=tuple(Image(**row) for row in raw["images"]),
        systems={code: _price(row, "os") for row in raw["systems"] for code in row["codes"]},
        software={
            row["price"]: {
                **{"manufacturer": row["manufacturer"], "name": row["manufacturer"], "version": row["version"]},
                **{"id": row["price"], "longDescription": row["description"], "referenceCode": row["codes"][0]},
            }
            for row in raw["systems"]
        },
        categories={code: {"categoryCode": code, **row} for code, row in raw["categories"].items()},
        included=tuple(_price(row, row["category"]) for row in raw["included"]),
        sized={(price.category, price.capacity): price for price in _sized(raw)},
    )


def _with_fees(rows: Any, factor: Decimal) -> Any:
    if isinstance(rows, list):
        return [_with_fees(each, factor) for each in rows]
    if not isinstance(rows, dict):
        return rows
    scaled = {key: _with_fees(value, factor) for key, value in rows.items()}
    return scaled | {key: str(Decimal(fee) * factor) for key, fee in rows.items() if key.endswith("fee")}


def _routers(number: int, datacenter: Datacenter) -> Iterator[Router]:
    for kind, offset in LINKS:
        for pod in range(1, PODS_PER_DATACENTER + 1):
            yield Router(
                id=1000 * number + offset + pod,
                hostname=f"{kind}{pod:02d}a.{datacenter.name}",
                datacenter=datacenter,
                pod=f"{datacenter.name}.pod{pod:02d}",
            )


def _flavor(key: str, row: dict[str, Any], raw: dict[str, Any]) -> Flavor:
    gpu, gpus, cores, memory_gb = raw["gpus"][row["gpu"]], row["gpus"], row["cores"], row["memory_gb"]
    core_fee, memory_gb_fee = (Decimal(raw["units"][name]) for name in ("core_fee", "memory_gb_fee"))
    part = functools.partial(Price, row["id"], key)
    return Flavor(
        id=row["id"],
        key_name=key,
        gpu_model=gpu["model"],
        gpu_count=gpus,
        cores=cores,
        memory_gb=memory_gb,
        boot_gb=row["boot_gb"],
        san=row["storage"] == "SAN",
        sold_in=frozenset(gpu["sold_in"]),
        prices=(
            part(f"{gpus} x {gpu['model']} GPU", "guest_pcie_device0", gpus * Decimal(gpu["fee"])),
            part(f"{memory_gb} GB", "ram", memory_gb * memory_gb_fee),
            part(f"{cores} x 2.0 GHz or higher Cores", "guest_core", cores * core_fee),
        ),
    )


def _sized(raw: dict[str, Any]) -> Iterator[Price]:
    for row in raw["port_speeds"]:
        yield _price(row, "port_speed", row["mbps"])
    for size, row in raw["boot_disks"].items():
        yield _price({"description": f"{size} GB (SAN)", **row}, DISK_CATEGORIES[0], int(size))
    for size, row in raw["san_disks"].items():
        for number, category in enumerate(DISK_CATEGORIES[1:]):
            disk = {**row, "price": row["price"] + number, "description": f"{size} GB (SAN)"}
            yield _price(disk, category, int(size))


def _price(row: dict[str, Any], category: str, capacity: int | None = None) -> Price:
    fee = Decimal(row.get("fee", "0"))
    return Price(row["price"], row["key_name"], row["description"], category, fee, capacity)
