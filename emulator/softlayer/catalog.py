"""The catalog: what is sold, where, and for how much per hour, as types; ``price_list.py`` reads it."""

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

DISK_CATEGORIES = ("guest_disk0", "guest_disk1", "guest_disk2", "guest_disk3", "guest_disk4")


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
    package_name: str
    datacenters: tuple[Datacenter, ...]
    routers: tuple[Router, ...]
    flavors: tuple[Flavor, ...]
    systems: tuple[System, ...]
    images: tuple[Image, ...]
    included: tuple[Price, ...]
    port_speeds: dict[tuple[int, bool], Price]  # by Mbps and whether the guest is private only
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
