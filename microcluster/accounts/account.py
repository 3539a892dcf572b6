"""The contract of an account, and the ``cluster`` section that every account has.

An account is pure: it says what is rented there, and nothing outside the registry asks which account it is.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, StrictStr
from pydantic.alias_generators import to_camel

from microcluster.accounts.registry import ACCOUNTS, DEFAULT, account_of, name_in
from microcluster.jobs.contract import Origin, Runtime


@dataclass(frozen=True)
class Hardware:
    """One size of machine."""

    name: str
    gpu: str
    gpus: int


class ClusterSection(BaseModel):
    """What every account's ``cluster`` section holds; beside this it has ``nodes``, and ``adminCidrs`` where machines are rented."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel)

    account: StrictStr = DEFAULT

    @property
    def hardware(self) -> Hardware:
        """The size of each machine."""
        raise NotImplementedError


def _refuse(value: str) -> str:
    raise ValueError(f"{value[:80]!r} is no account; one of {', '.join(ACCOUNTS)}")


class UnknownAccount(BaseModel):
    """The ``cluster`` section of an account that does not exist: nothing else in it can be judged."""

    model_config = ConfigDict(frozen=True, extra="allow")

    account: Annotated[StrictStr, AfterValidator(_refuse)]


@dataclass(frozen=True)
class SlowPort:
    """A port too slow for gradients: the field and the key that set it, its speed in Mb/s, and the speed to use."""

    field: str
    key: str
    speed_mbps: int
    needed_mbps: int


class AccountKind(ABC):
    """The whole of what an account says; what it leaves out is as here."""

    title: str
    """Its name for people."""
    section: type[ClusterSection]
    """What the ``cluster`` section may say."""
    runtime: Runtime
    """In what the processes of a run run on its machines."""
    key_setting: str
    """The setting ``NAME:...`` that names the file with the account's key."""
    key_setting_meaning: tuple[str, str]
    """Its default and its meaning, for the page of the stack file."""
    credentials: tuple[str, ...]
    """What a person may write there by mistake, and which must not be in a stack file."""
    credentials_advice: str
    """Where they belong."""
    examples: Mapping[str, str]
    """Of values of the section."""
    ranges: Mapping[str, str]
    """Of values of the section, for the page of the stack file."""
    resource_types: Mapping[str, str] = MappingProxyType({})
    """The kind of the account's inventory by the type in Pulumi's state; the ledger is none."""
    machine_type: str
    """The type in Pulumi's state that is a machine."""
    attached_kinds: tuple[str, ...] = ()
    """Kinds of the inventory that come and go with a resource, and have none of their own."""
    emulated_by: tuple[str, ...] = ()
    """The images of this computer that the machines of its emulator need; empty for those of every stack."""
    prices_as_of: str
    """The date of the prices."""
    order_takes: str
    cancel_takes: str
    """How long the engine usually needs."""

    def defaults(self, cluster: Mapping[str, Any]) -> Mapping[str, Origin]:
        """Return what follows for keys such as "cluster.os" that the stack file leaves out."""
        return {}

    @abstractmethod
    def problems(self, cluster: Mapping[str, Any], *, ordering: bool) -> list[str]:
        """Say what the section's types cannot: what contradicts other keys."""

    def hardware(self, cluster: Mapping[str, Any]) -> Hardware | None:
        """Return the size of machine that a section names, which may be invalid; None where the catalog has none."""
        return None

    def slow_port(self, cluster: Mapping[str, Any]) -> SlowPort | None:
        """Return the port that is too slow for the nodes of a section, which may be invalid; None where nobody orders a port."""
        return None

    def price_per_hour(self, cluster: Any) -> Decimal | None:
        """Return the list price of one machine, in US dollars, or None for what the catalog does not know or nobody sells."""
        return None

    @abstractmethod
    def billing(self, cluster: Any) -> str:
        """Say what of a section is billed by the hour, and what by the month."""

    @abstractmethod
    def facts(self, cluster: Any) -> Mapping[str, Any]:
        """Return the fields of the cluster's facts that only such a section knows."""


def section_of(cluster: Any) -> type[BaseModel]:
    """Return what the ``cluster`` section of a stack file has to be, by the account that it names."""
    named = name_in(cluster)
    return account_of(named).section if named else UnknownAccount
