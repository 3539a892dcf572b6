"""The PrivateNetwork resource: machines and drives of one region that reach each other."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from microcluster.catalog import paperspace as catalog
from providers.grpc.properties import Problem, problems
from providers.grpc.resource_protocol import Created, Live
from providers.paperspace import named_goods, names
from providers.paperspace.account import NETWORKS
from providers.paperspace.machine_spec import InRegion, Name
from providers.rental.backend import Backend, OrderRequest, Thing
from providers.rental.operation import Operation
from providers.rental.owner_mark import Owner

KIND = "network"
REPLACE_ON = frozenset({"mark", "name", "region"})
TIMEOUT_S = 30 * 60.0
PRICE = f"at most {catalog.NETWORK.per_month} USD a month by the price list of {catalog.AS_OF}"


class NetworkSpec(InRegion):
    """A network."""

    name: Name
    keep: bool = False


def check(inputs: Mapping[str, Any], old_inputs: Mapping[str, Any]) -> list[Problem]:
    """Say what is wrong with the inputs."""
    return problems(NetworkSpec, inputs)


def known_outputs(inputs: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Tell what stays."""
    return {key: old.get(key) for key in ("subnet", "accountId")} if old else {}


def create(op: Operation, inputs: Mapping[str, Any]) -> Created:
    """Adopt the network that is there, else order it."""
    spec, backend = NetworkSpec.of(inputs), op.backend()
    owner = Owner(op.stack, spec.mark)
    body = {"name": names.full(spec.name, owner, keep=spec.keep), "region": spec.region}
    request = OrderRequest(KIND, owner, f"network {spec.name} of {owner}", spec.name, body, key_ids=())
    found = named_goods.create(op, backend, request, spec.model_dump(by_alias=True))
    named_goods.rename(backend.account, found, NETWORKS, keep=spec.keep)
    return Created(found.id, _outputs(backend, found))


def read(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> Live | None:
    """Read the network."""
    backend = op.backend(old.get("accountId"))
    found = named_goods.read(op, backend, KIND, resource_id, inputs)
    return found and named_goods.live(found, inputs, _outputs(backend, found))


def update(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Let its name say whether it is kept."""
    backend = op.backend(old.get("accountId"))
    found = named_goods.read(op, backend, KIND, resource_id, inputs)
    if found is not None:
        named_goods.rename(backend.account, found, NETWORKS, keep=bool(inputs.get("keep")))
    return {key: old.get(key) for key in ("subnet", "accountId")}


def delete(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> None:
    """Delete the network once nothing stands in it."""
    named_goods.delete(op, op.backend(old.get("accountId")), KIND, resource_id, inputs)


def thing(row: Mapping[str, Any]) -> Thing:
    """Read a network."""
    return named_goods.thing(KIND, row, PRICE, {})


def _outputs(backend: Backend, found: Thing) -> dict[str, Any]:
    return {"subnet": subnet(found.row), "accountId": backend.identity().account_id}


def subnet(row: Mapping[str, Any]) -> str | None:
    """Write address and mask as one, for example ``10.64.21.0/24``."""
    try:
        return str(ipaddress.ip_network(f"{row.get('network')}/{row.get('netmask')}"))
    except ValueError:
        return None
