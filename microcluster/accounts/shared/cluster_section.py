"""The contract of an account: its ``cluster`` section with what follows from it, what is said of it, and checks of single values.

An account is pure: it says what is rented there, and nothing outside the registry asks which account it is.
"""

import difflib
import ipaddress
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, StrictStr
from pydantic.alias_generators import to_camel

from microcluster.core.catalog.billing_rules import Prices, hostname
from microcluster.core.plain_text import printable, shown
from microcluster.jobs.job_section import Origin, Runtime, Workload

MAX_NODES = 64
MOST_ADMIN_CIDRS = 40
"""A security group of SoftLayer takes 50 rules."""
MOST_ADMIN_ADDRESSES = 2**24
"""The size of a /8, for all networks together."""
DOCUMENTATION_CIDR = "203.0.113.7/32"


@dataclass(frozen=True)
class Hardware:
    """One size of machine."""

    name: str
    gpu: str
    gpus: int


class ClusterSection(BaseModel, ABC):
    """The ``cluster`` section of a stack file; beside its own keys it has ``nodes``, and ``adminCidrs`` where machines are rented.

    The class methods take a section as it is written, which may be invalid.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel)

    account: StrictStr

    @classmethod
    def defaults(cls, written: Mapping[str, Any]) -> Mapping[str, Origin]:
        """Return values for keys that the stack file leaves out, such as "cluster.os"."""
        return {}

    @classmethod
    @abstractmethod
    def problems(cls, written: Mapping[str, Any], *, ordering: bool) -> list[str]:
        """Return problems that types cannot find: keys that contradict each other."""

    @classmethod
    def size_of(cls, written: Mapping[str, Any]) -> Hardware | None:
        """Return the size of machine that a section names; None where the catalog has none."""
        return None

    @classmethod
    def installed_driver(cls, written: Mapping[str, Any]) -> int | None:
        """Return the branch of the driver that we install; None where the machine brings its own."""
        return None

    @property
    def hardware(self) -> Hardware:
        """The size of each machine."""
        return self.size_of(self.model_dump(by_alias=True))

    @property
    def hostnames(self) -> list[str]:
        """The machines' host names in rank order; the first one is the launcher."""
        return [hostname(rank) for rank in range(self.nodes)]

    @property
    def disk_of_data_gb(self) -> int | None:
        """The size of the disk on which a machine's data lie; None where nobody knows it."""
        return getattr(self, "data_disk_gb", None) or getattr(self, "disk_gb", None)

    @property
    def prices(self) -> Prices | None:
        """The catalog's prices of all that the section rents; None for what the catalog does not know or nobody sells."""
        return None

    @property
    def rent_per_hour(self) -> Decimal | None:
        """The catalog's price of all of it, in US dollars."""
        return self.prices.per_hour if self.prices else None

    def costs(self, per_hour: str, source: str) -> list[str]:
        """Say for people what each part costs at the price that somebody gave for the whole; without a price only why."""
        return (
            self.prices.at(Decimal(per_hour), source).lines() if self.prices and per_hour else [f"no price: {source}"]
        )

    def variants(self, counts: Collection[int]) -> Iterable[Mapping[str, Any]]:
        """Return the keys of the section that choose machines, one mapping for each choice that is sold, of so many machines."""
        return ()

    def order(self) -> Mapping[str, Any]:
        """Return the ledger's fields for an account that sells, without the number of machines."""
        return {}

    @abstractmethod
    def facts(self) -> Mapping[str, Any]:
        """Return the fields of the cluster's facts that only such a section knows."""


@dataclass(frozen=True)
class KeySetting:
    """The setting ``NAME:...`` of a stack file that names the file with the account's key.

    Attributes:
        default, meaning: for the page of the stack file.
        mistaken: what a person may write there by mistake, and which must not be in a stack file; ``advice`` says where it belongs.
    """

    name: str
    default: str
    meaning: str
    mistaken: tuple[str, ...]
    advice: str


@dataclass(frozen=True)
class AccountFacts:
    """Facts of an account that its section of the stack file does not hold.

    Attributes:
        title: its name for people.
        runtime: in what the processes of a run run on its machines.
        machine_type: the type in Pulumi's state that is a machine.
        resource_types: the kind of the account's inventory by the type in Pulumi's state; the ledger is none.
        attached_kinds: kinds of the inventory that come and go with a resource, and have none of their own.
        emulated_by: the images of this computer that the machines of its emulator need; empty for those of every stack.
        prices_as_of: the date of the prices.
        prices_are: what they are called: "list prices" where the vendor's own list has them, else "estimates".
        order_takes, cancel_takes: how long the engine usually needs.
        sells: whether what is rented there is paid in dollars.
        preparation_h: hours from the order to the first step, without data: at least, usually, at most.
    """

    title: str
    section: type[ClusterSection]
    runtime: Runtime
    key: KeySetting
    machine_type: str
    prices_as_of: str
    order_takes: str
    cancel_takes: str
    sells: bool = True
    preparation_h: tuple[float, float, float] = (0, 0, 0)
    resource_types: Mapping[str, str] = field(default_factory=dict)
    attached_kinds: tuple[str, ...] = ()
    emulated_by: tuple[str, ...] = ()
    prices_are: str = "list prices"

    @property
    def price_source(self) -> str:
        """Kind and date of the prices, for example "list prices of 2025-11-14"."""
        return f"{self.prices_are} of {self.prices_as_of}"

    def hours_before(self, workload: Workload | None) -> tuple[float, float, float]:
        """Return the hours from the order to the first step, with the making of the data: at least, usually, at most."""
        data_h = workload.data_h if workload else (0, 0, 0)
        least, usual, most = (machines + data for machines, data in zip(self.preparation_h, data_h, strict=True))
        return least, usual, most


def choice(kind: str, choices: Collection[str | int], also: str = "", **field: Any) -> Any:
    """Return the type of a value that is one of ``choices``; a word that is none of them is answered by the nearest one.

    Args:
        also: what the value's description says after the choices; ``field`` has what else pydantic's Field takes.
    """
    listed = ", ".join(map(str, choices))
    words = [one for one in choices if isinstance(one, str)]

    def check(value: str | int) -> str | int:
        if value in choices:
            return value
        near = difflib.get_close_matches(str(value)[:80], words, n=1, cutoff=0.4)
        hint = f"did you mean '{near[0]}'?" if near else f"one of {listed}"
        raise ValueError(f"{shown(value)} is not {kind}; {hint}")

    described = Field(**{"description": f"{listed}{also}", **field})
    return Annotated[StrictStr if words else StrictInt, AfterValidator(check), described]


def admin_cidr(value: str) -> str:
    """Accept a network from which people may log in."""
    try:
        network = ipaddress.IPv4Network(value)
    except ValueError as error:
        why = printable(str(error))
        raise ValueError(f"{shown(value)} is not an IPv4 network ({why}); for example 198.51.100.7/32") from error
    if network.is_unspecified or network.is_multicast or network.is_loopback or network.is_link_local:
        raise ValueError(f"{shown(value)} is not a usable address; name your own, for example 198.51.100.7/32")
    return str(network)


def few_addresses(cidrs: list[str]) -> list[str]:
    """Accept networks that together are not too large, such as the whole internet."""
    whole = sum(net.num_addresses for net in ipaddress.collapse_addresses(map(ipaddress.IPv4Network, cidrs)))
    if whole > MOST_ADMIN_ADDRESSES:
        raise ValueError(
            f"together they open port 22 to {whole:,} addresses; name your own, for example 198.51.100.7/32"
        )
    return cidrs


def account_image(value: str) -> str:
    """Accept the id or the global identifier of an image in the account."""
    if not re.fullmatch(r"[1-9][0-9]{0,9}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", value):
        raise ValueError(f"{shown(value)} is not the id or the global identifier of an image; for example '2263543'")
    return value


def problem_of_place(key: str, place: str, size: str, sold_in: Sequence[str], offered: Sequence[str]) -> list[str]:
    """Say where a size of machine is sold, if not there; a place that offers nothing does not exist."""
    if not offered or place in sold_in:
        return []
    return [
        f"cluster/{key}: {place} does not sell {size}; sold in {', '.join(sold_in)}. {place} sells {', '.join(offered)}"
    ]


def problem_of_example(cidrs: Any, *, ordering: bool) -> list[str]:
    """Refuse to order with the address of the documentation."""
    if not (ordering and isinstance(cidrs, list) and DOCUMENTATION_CIDR in cidrs):
        return []
    return [
        f"cluster/adminCidrs: {DOCUMENTATION_CIDR} is the documentation's address; use your own, which `curl ifconfig.me` prints"
    ]


Nodes = Annotated[StrictInt, Field(ge=1, le=MAX_NODES)]
AdminCidrs = Annotated[
    list[Annotated[StrictStr, AfterValidator(admin_cidr)]],
    Field(
        min_length=1,
        max_length=MOST_ADMIN_CIDRS,
        description="IPv4 networks, together not more than a /8",
        examples=["[198.51.100.7/32]"],
    ),
    AfterValidator(few_addresses),
]
