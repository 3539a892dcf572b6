"""The catalog: what is sold, where, and for how much per hour; ``catalog.toml`` is the price list."""

import functools
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

DISK_CATEGORIES = ("guest_disk0", "guest_disk1", "guest_disk2", "guest_disk3", "guest_disk4")
CATALOG_FILE = Path(__file__).with_name("catalog.toml")
LINKS = (("bcr", 0), ("fcr", 500))  # private and public routers; a router's id tells its datacenter and pod
PODS_PER_DATACENTER = 2


@dataclass(frozen=True)
class Category:
    """A billing category."""

    code: str
    id: int
    name: str


@dataclass(frozen=True)
class Price:
    """One orderable item under one category, with its fee per hour."""

    id: int
    item_id: int
    key_name: str
    description: str
    category: Category
    hourly: Decimal
    capacity: int | None = None
    units: str | None = None


@dataclass(frozen=True)
class System:
    """An operating system with the reference codes that mean it."""

    price: Price
    codes: tuple[str, ...]
    manufacturer: str
    version: str


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
    pod: int

    @property
    def private(self) -> bool:
        """Whether it is a backend router."""
        return self.hostname.startswith("bcr")


@dataclass(frozen=True)
class Flavor:
    """A preset: the machine that is rented, and the prices it is made of."""

    id: int
    key_name: str
    gpu_model: str
    gpu_type: str
    gpu_count: int
    cores: int
    memory_gb: int
    boot_gb: int
    san: bool
    sold_in: frozenset[str]
    prices: tuple[Price, ...]

    @property
    def hourly(self) -> Decimal:
        """The flavor's own fee per hour."""
        return sum((price.hourly for price in self.prices), Decimal())

    @property
    def description(self) -> str:
        """How lists call it."""
        storage = "SAN" if self.san else "local"
        return (
            f"{self.cores} x 2.0 GHz or higher Cores, {self.memory_gb} GB RAM, {self.gpu_count} x {self.gpu_type} GPU, "
            f"{self.boot_gb} GB {storage} disk"
        )


@dataclass(frozen=True)
class Image:
    """An image template; a foreign one belongs to another account, which keeps it to itself."""

    id: int
    guid: str
    name: str
    note: str
    virtualization: str
    cloud_init: bool
    boot_gb: int
    private: bool
    foreign: bool = False


@dataclass(frozen=True)
class Catalog:
    """Everything that is sold."""

    currency: str
    hours_per_month: int
    package_id: int
    package_key: str
    datacenters: tuple[Datacenter, ...]
    routers: tuple[Router, ...]
    flavors: tuple[Flavor, ...]
    systems: tuple[System, ...]
    images: tuple[Image, ...]
    included: tuple[Price, ...]
    port_speeds: dict[int, Price]  # by Mbps
    boot_disks: dict[int, Price]
    disks: dict[tuple[str, int], Price]  # by category code and capacity in GB
    categories: dict[str, Category]

    def monthly(self, hourly: Decimal) -> Decimal:
        """What an hourly fee is per month."""
        return (hourly * self.hours_per_month).quantize(Decimal("0.01"))

    def cost(self, prices: Iterable[Price], *, hourly: bool) -> Decimal:
        """The sum of prices per hour or per month; each is rounded alone, as it is billed alone."""
        return sum((each.hourly if hourly else self.monthly(each.hourly) for each in prices), Decimal())

    def flavor(self, key: str | int) -> Flavor | None:
        """A flavor by its key name or preset id."""
        return next((each for each in self.flavors if key in (each.key_name, each.id)), None)

    def datacenter(self, key: str | int) -> Datacenter | None:
        """A datacenter by its name or id, the latter also as text."""
        return next((each for each in self.datacenters if str(key) in (each.name, str(each.id))), None)

    def router(self, router_id: int) -> Router | None:
        """A router by its id."""
        return next((each for each in self.routers if each.id == router_id), None)

    def system(self, code: str) -> System | None:
        """An operating system by one of its reference codes."""
        return next((each for each in self.systems if code in each.codes), None)

    def image(self, key: str | int) -> Image | None:
        """An image by id or GUID."""
        return next((each for each in self.images if str(key) in (str(each.id), each.guid)), None)

    @functools.cached_property
    def prices(self) -> dict[int, Price]:
        """Every price by its id."""
        flavored = [price for flavor in self.flavors for price in flavor.prices]
        systems = [system.price for system in self.systems]
        ports = [*self.port_speeds.values()]
        every = [*self.included, *ports, *self.boot_disks.values(), *self.disks.values(), *systems, *flavored]
        return {price.id: price for price in every}


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
        datacenters=datacenters,
        routers=tuple(router for number, each in enumerate(datacenters, 1) for router in _routers(number, each)),
        flavors=tuple(_flavor(key, row, raw, categories, boot) for key, row in raw["flavors"].items()),
        systems=tuple(_system(row, categories["os"]) for row in raw["systems"]),
        images=tuple(Image(**row) for row in raw["images"]),
        included=tuple(_included(row, categories) for row in raw["included"]),
        port_speeds=_port_speeds(raw["port_speeds"], categories["port_speed"]),
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


def _port_speeds(rows: list[dict], category: Category) -> dict[int, Price]:
    speeds = {}
    for row in rows:
        speed = f"{row['mbps']} Mbps" if row["mbps"] < 1000 else f"{row['mbps'] // 1000} Gbps"
        text = f"{speed} Public & Private Network Uplinks"
        price = Price(row["price"], row["price"], row["key_name"], text, category, _fee(row), row["mbps"], "Mbps")
        speeds[row["mbps"]] = price
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
