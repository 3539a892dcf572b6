"""The registry of accounts by the name that ``cluster.account`` gives.

The name of an account is also that of its folder here, whose ``section.py`` holds it as ACCOUNT, of its
emulator (``emulator.vendors``), of its component (``components.NAME``) and of its settings in the stack file (``NAME:...``). Only the
standard library: setup reads it first.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from microcluster.accounts.shared.cluster_section import AccountFacts

DEFAULT = "softlayer"
ACCOUNTS: Mapping[str, tuple[str, ...]] = {
    DEFAULT: (
        *("SL_USERNAME", "SL_API_KEY"),
        *("SOFTLAYER_USERNAME", "SOFTLAYER_API_KEY", "IAAS_CLASSIC_USERNAME", "IAAS_CLASSIC_API_KEY"),
        *("BLUEMIX_API_KEY", "IC_API_KEY", "IBMCLOUD_API_KEY"),
    ),
    "paperspace": ("PAPERSPACE_API_KEY",),
    "queue": (),
}
"""The accounts, and for each the environment variables with its secrets: those that we read, and those that other tools for it read."""

FORMER_NAMES: Mapping[str | None, str] = {"pbs": "queue"}
"""Names of accounts in states and records of older versions, and in stack files that are not changed yet."""


@dataclass(frozen=True)
class AccountSettings:
    """Account of a stack: its name here, the file with its key, and the unit of its provider's waits.

    Attributes:
        config_file: None for the account's usual sources.
    """

    name: str
    config_file: str | None = None
    time_scale: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", FORMER_NAMES.get(self.name, self.name))


def account_of(name: str | None) -> "AccountFacts":
    """Return the account of that name; the names are those of ACCOUNTS and FORMER_NAMES."""
    return import_module(f"microcluster.accounts.{FORMER_NAMES.get(name, name) or DEFAULT}.section").ACCOUNT


def name_in(cluster: Any) -> str | None:
    """Return the account that a ``cluster`` section names, or None where it names none that exists."""
    named = cluster.get("account", DEFAULT) if isinstance(cluster, Mapping) else DEFAULT
    return named if isinstance(named, str) and named in ACCOUNTS else None


def resource_types() -> Mapping[str, str]:
    """Return the kind of the account's inventory by the type in Pulumi's state, of all accounts."""
    return {kind: label for name in ACCOUNTS for kind, label in account_of(name).resource_types.items()}


def attached_kinds() -> frozenset[str]:
    """Return the kinds of the accounts' inventories that have no resource of their own."""
    return frozenset(kind for name in ACCOUNTS for kind in account_of(name).attached_kinds)


def machine_types() -> frozenset[str]:
    """Return the types in Pulumi's state that are machines, of all accounts."""
    return frozenset(account_of(name).machine_type for name in ACCOUNTS)
