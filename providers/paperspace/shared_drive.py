"""The SharedDrive resource: a network drive, whose password goes into no output and no state."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pydantic

from microcluster.catalog import paperspace as catalog
from providers.grpc.properties import Problem, problems
from providers.grpc.resource_protocol import Created, Live
from providers.paperspace import named_goods, names
from providers.paperspace.account import DRIVES
from providers.paperspace.machine_spec import InRegion, Name, ObjectId, sold
from providers.paperspace.machine_view import GIB, number
from providers.rental.backend import Backend, OrderRequest, Thing
from providers.rental.operation import Operation
from providers.rental.owner_mark import Owner

KIND = "drive"
REPLACE_ON = frozenset({"mark", "name", "region", "sizeGb", "networkId"})
TIMEOUT_S = 30 * 60.0
OUTPUTS = ("address", "share", "username", "accountId")
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


def check(inputs: Mapping[str, Any], old_inputs: Mapping[str, Any]) -> list[Problem]:
    """Say what is wrong with the inputs."""
    return problems(DriveSpec, inputs)


def known_outputs(inputs: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Tell what stays."""
    return {key: old.get(key) for key in OUTPUTS} if old else {}


def create(op: Operation, inputs: Mapping[str, Any]) -> Created:
    """Adopt the drive that is there, else order it."""
    spec, backend = DriveSpec.of(inputs), op.backend()
    owner = Owner(op.stack, spec.mark)
    name = names.full(spec.name, owner, keep=spec.keep)
    body = {"name": name, "size": spec.size_gb, "region": spec.region, "networkId": spec.network_id}
    request = OrderRequest(
        KIND, owner, f"drive {spec.name} of {owner}", spec.name, body, key_ids=(), sold=str(spec.size_gb)
    )
    found = named_goods.create(op, backend, request, spec.model_dump(by_alias=True))
    named_goods.rename(backend.account, found, DRIVES, keep=spec.keep)
    return Created(found.id, _outputs(backend, found))


def read(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> Live | None:
    """Read the drive."""
    backend = op.backend(old.get("accountId"))
    found = named_goods.read(op, backend, KIND, resource_id, inputs)
    return found and named_goods.live(found, inputs, _outputs(backend, found))


def update(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Let its name say whether it is kept."""
    backend = op.backend(old.get("accountId"))
    found = named_goods.read(op, backend, KIND, resource_id, inputs)
    if found is not None:
        named_goods.rename(backend.account, found, DRIVES, keep=bool(inputs.get("keep")))
    return {key: old.get(key) for key in OUTPUTS}


def delete(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> None:
    """Delete the drive with what is on it, or leave it."""
    named_goods.delete(op, op.backend(old.get("accountId")), KIND, resource_id, inputs)


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


def _outputs(backend: Backend, found: Thing) -> dict[str, Any]:
    address, share = mount_point(found.row)
    username, account_id = str(found.row.get("username") or ""), backend.identity().account_id
    return {"address": address, "share": share, "username": username, "accountId": account_id}
