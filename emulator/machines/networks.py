"""The account's networks: one bridge for each backend router and a public one; none has a way out."""

import ipaddress
from collections.abc import Mapping

import docker
from docker.models.networks import Network
from docker.types import IPAMConfig, IPAMPool

from emulator.machines.docker_errors import docker_doing
from emulator.machines.spec import MachineError


def gateway(subnet: str) -> str:
    """The host's own address on a network."""
    return str(next(ipaddress.ip_network(subnet).hosts()))


class Networks:
    """The networks of one account, by name."""

    def __init__(self, client: docker.DockerClient, account: str, private: Mapping[int, str], public: str) -> None:
        self._client, self._account = client, account
        self._subnets = {self.private_name(router): subnet for router, subnet in private.items()}
        self._subnets[self.public_name] = public
        self.services = gateway(next(iter(private.values())))
        """The address of the API and the registry: the host's on the first private network."""

    @property
    def public_name(self) -> str:
        return f"{self._account}-public"

    def private_name(self, router_id: int) -> str:
        """Sorts before the public name: by these names older Docker daemons number the interfaces."""
        return f"{self._account}-private-{router_id}"

    def gateway_of(self, name: str) -> str:
        return gateway(self._subnets[name])

    def ensure(self) -> None:
        """Create the networks that are missing."""
        for name, subnet in self._subnets.items():
            with docker_doing(f"Creating network {name} ({subnet})"):
                found = self._client.networks.list(filters={"name": f"^{name}$"})
                if found:
                    _check(found[0], subnet)
                else:
                    self._create(name, subnet)

    def remove_all(self) -> None:
        """Remove every network with the account's label."""
        with docker_doing(f"Removing the networks of {self._account}"):
            for network in self._client.networks.list(filters={"label": f"microcluster.emulator={self._account}"}):
                network.remove()

    def _create(self, name: str, subnet: str) -> None:
        self._client.networks.create(
            name,
            driver="bridge",
            internal=True,
            check_duplicate=True,
            labels={"microcluster.emulator": self._account},
            ipam=IPAMConfig(pool_configs=[IPAMPool(subnet=subnet, gateway=gateway(subnet))]),
        )


def _check(network: Network, subnet: str) -> None:
    is_now = network.attrs["IPAM"]["Config"][0]["Subnet"]
    if is_now != subnet:
        raise MachineError(
            f"Creating network {network.name} ({subnet}): it exists with {is_now}."
            " Put that back into the settings, or run `python -m emulator reset`."
        )
