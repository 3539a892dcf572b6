"""The PrivateNetwork resource: machines and drives of one region that reach each other."""

import ipaddress
from collections.abc import Mapping
from typing import Any

from core.catalog import paperspace as catalog
from providers.paperspace import named_goods, names
from providers.paperspace.account import NETWORKS
from providers.paperspace.machine_spec import InRegion, Name
from providers.rental.backend import OrderRequest, Thing
from providers.rental.owner_mark import Owner

KIND = "network"
PRICE = f"at most {catalog.NETWORK.per_month} USD a month by the price list of {catalog.AS_OF}"


class NetworkSpec(InRegion):
    """A network."""

    name: Name
    keep: bool = False


class PrivateNetwork(named_goods.NamedGood):
    """A network as a resource."""

    KIND, PATH, SPEC = KIND, NETWORKS, NetworkSpec
    OUTPUTS = ("subnet", "accountId")
    REPLACE_ON = frozenset({"mark", "name", "region"})

    def request(self, owner: Owner, spec: NetworkSpec) -> OrderRequest:
        """Write the order of a network."""
        body = {"name": names.full(spec.name, owner, keep=spec.keep), "region": spec.region}
        return OrderRequest(KIND, owner, f"network {spec.name} of {owner}", spec.name, body, key_ids=())

    def shown(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Read its addresses."""
        return {"subnet": subnet(row)}


def thing(row: Mapping[str, Any]) -> Thing:
    """Read a network."""
    return named_goods.thing(KIND, row, PRICE, {})


def subnet(row: Mapping[str, Any]) -> str | None:
    """Write address and mask as one, for example ``10.64.21.0/24``."""
    try:
        return str(ipaddress.ip_network(f"{row.get('network')}/{row.get('netmask')}"))
    except ValueError:
        return None
