"""The SharedDrive resource: a network drive, whose password goes into no output and no state."""

import re
from collections.abc import Mapping
from typing import Any

import pydantic

from core.catalog import paperspace as catalog
from providers.paperspace import named_goods, names
from providers.paperspace.account import DRIVES
from providers.paperspace.machine_spec import InRegion, Name, ObjectId, sold
from providers.paperspace.machine_view import GIB, number
from providers.rental.backend import OrderRequest, Thing
from providers.rental.owner_mark import Owner

KIND = "drive"
LARGEST_GB = 100_000
"""A larger number is one of bytes: the API does not say in which unit it answers."""


class DriveSpec(InRegion):
    """A drive."""

    name: Name
    size_gb: int
    network_id: ObjectId
    keep: bool = False

    @pydantic.field_validator("size_gb")
    @classmethod
    def _known_size(cls, size: int) -> int:
        sold("drive size", size, catalog.DRIVES)
        return size


class SharedDrive(named_goods.NamedGood):
    """A drive as a resource."""

    KIND, PATH, SPEC = KIND, DRIVES, DriveSpec
    OUTPUTS = ("address", "share", "username", "accountId")
    REPLACE_ON = frozenset({"mark", "name", "region", "sizeGb", "networkId"})

    def request(self, owner: Owner, spec: DriveSpec) -> OrderRequest:
        """Write the order of a drive."""
        name, size = names.full(spec.name, owner, keep=spec.keep), spec.size_gb
        body = {"name": name, "size": size, "region": spec.region, "networkId": spec.network_id}
        what = f"drive {spec.name} of {owner}"
        return OrderRequest(KIND, owner, what, spec.name, body, key_ids=(), sold=str(size))

    def shown(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Read where it is mounted from, and as whom."""
        address, share = mount_point(row)
        return {"address": address, "share": share, "username": str(row.get("username") or "")}


def thing(row: Mapping[str, Any]) -> Thing:
    """Read a drive."""
    size = size_gb(row)
    rate = catalog.DRIVES.get(size)
    price = f"at most {rate.per_month} USD a month by the price list of {catalog.AS_OF}" if rate else ""
    shown = {key: value for key, value in row.items() if key != "password"}
    return named_goods.thing(KIND, shown, price, {"sizeGb": size, "networkId": str(row.get("networkId"))})


def size_gb(row: Mapping[str, Any]) -> int:
    """Read the size, which may be bytes or GB, a number or a text."""
    given = number(row.get("size"))
    return round(given / GIB if given > LARGEST_GB else given)


def mount_point(row: Mapping[str, Any]) -> tuple[str | None, str | None]:
    r"""Read address and share from ``\\10.64.92.2\sdvkpg3v2v``, with slashes of either kind."""
    found = re.fullmatch(r"[\\/]*([0-9A-Za-z.-]+)[\\/]+([0-9A-Za-z._-]+)[\\/]*", str(row.get("mountPoint") or ""))
    return (found[1], found[2]) if found else (None, None)
