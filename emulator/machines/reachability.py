"""Whether machines reach the API and the registry: the host's firewall may prevent it."""

import shutil
import subprocess
from collections.abc import Iterable, Sequence

import docker
from docker.errors import ContainerError

from emulator.machines.docker_errors import docker_doing
from emulator.machines.spec import MachineError

# Bash opens the connection itself, so that every image with a shell will do; the exit code has one bit for each port.
PROBE = (
    'left=0 bit=1; for port in "$@"; do timeout 3 bash -c "exec 3<>/dev/tcp/$0/$port" || left=$((left | bit));'
    " bit=$((bit * 2)); done; exit $left"
)
STATUS_S = 10


def require(client: docker.DockerClient, image: str, network: str, address: str, ports: Sequence[int]) -> None:
    """Fail if a container on ``network`` does not reach every port of this host's ``address``."""
    closed = unreachable(client, image, network, address, ports)
    if closed:
        subnets = [each["Subnet"] for each in client.networks.get(network).attrs["IPAM"]["Config"]]
        raise MachineError(
            f"Connecting from network {network} to {address}, port {' and '.join(map(str, closed))}: no answer, so that no"
            f" machine would reach the account's API or registry. A firewall of this computer drops it. Let it in:"
            f" `{remedy(subnets[0], address, ports, active())}`; then repeat."
        )


def unreachable(
    client: docker.DockerClient, image: str, network: str, address: str, ports: Sequence[int]
) -> tuple[int, ...]:
    """Return those of the ports that do not answer."""
    words = ["-c", PROBE, address, *map(str, ports)]
    with docker_doing(f"Connecting from network {network} to {address}"):
        try:
            client.containers.run(image, words, entrypoint="bash", network=network, remove=True)
        except ContainerError as failed:
            return tuple(port for number, port in enumerate(ports) if failed.exit_status >> number & 1) or tuple(ports)
    return ()


def remedy(subnet: str, address: str, ports: Iterable[int], firewall: str) -> str:
    """Return the command that lets the machines in, in the words of the firewall that is active."""
    numbers = ",".join(map(str, ports))
    return {
        "ufw": f"ufw allow proto tcp from {subnet} to {address} port {numbers}",
        "firewalld": f"firewall-cmd --zone=trusted --add-source={subnet} && firewall-cmd --runtime-to-permanent",
    }.get(firewall, f"iptables -I INPUT -p tcp -s {subnet} -d {address} -m multiport --dports {numbers} -j ACCEPT")


def active() -> str:
    """Return the name of the firewall program that is in charge here, or an empty text."""
    asking = (("ufw", ("ufw", "status"), "Status: active"), ("firewalld", ("firewall-cmd", "--state"), "running"))
    return next((name for name, argv, sign in asking if _is_active(argv, sign)), "")


def _is_active(argv: Sequence[str], sign: str) -> bool:
    program = shutil.which(argv[0])
    if program is None:
        return False
    try:
        asked = subprocess.run(
            (program, *argv[1:]), capture_output=True, text=True, timeout=STATUS_S, check=False, env={"LC_ALL": "C"}
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0 and asked.stdout.startswith(sign)
