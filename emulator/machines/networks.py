"""The account's networks: one bridge for each backend router and a public one; none has a way out.

Machines have to reach the API and the registry on this host, whose firewall may prevent it.
"""

import ipaddress
from collections.abc import Mapping, Sequence
from pathlib import Path

import docker
from docker.errors import APIError, ContainerError
from docker.models.containers import Container
from docker.models.networks import Network
from docker.types import IPAMConfig, IPAMPool

from emulator.machines.host_tools import LOCK_FILE, docker_doing, is_locked
from emulator.machines.spec import MachineError

# Bash opens the connection itself, so that every image with a shell will do; it names the first port that does not answer.
PROBE = (
    'for port in "$@"; do timeout 3 bash -c "exec 3<>/dev/tcp/$0/$port" 2>/dev/null || { echo "$port" >&2; exit 1; };'
    " done"
)
ACCOUNT_LABEL, STATE_LABEL = "microcluster.emulator", "microcluster.emulator.state"
OVERLAP = "overlap"


def gateway(subnet: str) -> str:
    """The host's own address on a network."""
    return str(next(ipaddress.ip_network(subnet).hosts()))


class Networks:
    """The networks of one account, by name."""

    def __init__(
        self, client: docker.DockerClient, account: str, state: Path, private: Mapping[int, str], public: str
    ) -> None:
        self._client, self._account, self._state = client, account, state
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
                subnets = [each.attrs["IPAM"]["Config"][0]["Subnet"] for each in found]
                if not subnets:
                    self._create_where_free(name, subnet)
                elif subnets[0] != subnet:
                    raise MachineError(
                        f"Creating network {name} ({subnet}): it exists with {subnets[0]}."
                        " Put that back into the settings, or run `python -m emulator reset`."
                    )

    def require_way_here(self, image: str, ports: Sequence[int]) -> None:
        """Fail if a container of ``image`` does not reach every port of the account's services on this host."""
        name, subnet = next(iter(self._subnets.items()))
        words, numbers = ["-c", PROBE, self.services, *map(str, ports)], ",".join(map(str, ports))
        with docker_doing(f"Connecting from network {name} to {self.services}"):
            try:
                self._client.containers.run(image, words, entrypoint="bash", network=name, remove=True)
            except ContainerError as failed:
                raise MachineError(
                    f"Connecting from network {name} to {self.services}, port {failed.stderr.decode().strip()}: no answer, so"
                    " that no machine would reach the account's API or registry. A firewall of this computer drops it. Let it"
                    f" in: with ufw `ufw allow proto tcp from {subnet} to {self.services} port {numbers}`, with firewalld"
                    f" `firewall-cmd --zone=trusted --add-source={subnet} && firewall-cmd --runtime-to-permanent`, else"
                    f" `iptables -I INPUT -p tcp -s {subnet} -d {self.services} -m multiport --dports {numbers} -j ACCEPT`;"
                    " then repeat."
                ) from failed

    def remove_all(self) -> None:
        """Remove every network with the account's label."""
        with docker_doing(f"Removing the networks of {self._account}"):
            for network in self._client.networks.list(filters={"label": f"{ACCOUNT_LABEL}={self._account}"}):
                network.remove()

    def _create_where_free(self, name: str, subnet: str) -> None:
        """Create a network, in the place of those that a killed emulator has left without any machine."""
        try:
            self._create(name, subnet)
        except APIError as refused:
            if OVERLAP not in str(refused):
                raise
            for network in overlapping(self._client, subnet):
                account = network.attrs["Labels"][ACCOUNT_LABEL]
                if is_served(network) or containers_of(self._client, network):
                    raise MachineError(
                        f"Creating network {name} ({subnet}): {network.name} of the emulated account {account} has these"
                        f" addresses, and is in use. Choose others in {self._state}/settings.toml, or remove that account:"
                        f" `python -m emulator reset --state {network.attrs['Labels'].get(STATE_LABEL, 'FOLDER')}`."
                    ) from refused
                network.remove()
            self._create(name, subnet)

    def _create(self, name: str, subnet: str) -> None:
        self._client.networks.create(
            name,
            driver="bridge",
            internal=True,
            check_duplicate=True,
            labels={ACCOUNT_LABEL: self._account, STATE_LABEL: str(self._state)},
            ipam=IPAMConfig(pool_configs=[IPAMPool(subnet=subnet, gateway=gateway(subnet))]),
        )


def overlapping(client: docker.DockerClient, subnet: str) -> list[Network]:
    """Return the networks of emulated accounts that share addresses with a subnet."""
    wanted = ipaddress.ip_network(subnet)
    found = client.networks.list(filters={"label": ACCOUNT_LABEL})
    return [each for each in found if wanted.overlaps(ipaddress.ip_network(each.attrs["IPAM"]["Config"][0]["Subnet"]))]


def is_served(network: Network) -> bool:
    """Whether the emulator that made a network lives."""
    state = network.attrs["Labels"].get(STATE_LABEL)
    return state is not None and is_locked(Path(state) / LOCK_FILE)


def containers_of(client: docker.DockerClient, network: Network) -> list[Container]:
    """Return the machines of a network's account, also those that do not run."""
    account = network.attrs["Labels"][ACCOUNT_LABEL]
    return client.containers.list(all=True, filters={"label": f"{ACCOUNT_LABEL}={account}"})
