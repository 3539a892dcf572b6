"""Machines of containers with ports of a chosen speed, in an account of their own, of which nothing is left afterwards."""

import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from emulator.machines.container_machines import ContainerMachines
from emulator.machines.publishing import publish
from emulator.machines.registry import key_of
from emulator.machines.spec import Access, Disk, MachineSpec
from microcluster.core.files import write_whole
from microcluster.jobs import cluster_facts
from microcluster.jobs.openseq2seq import STAND_IN_RELEASE
from microcluster.remote import steps
from microcluster.remote.host import Host
from microcluster.remote.parallel import on_all

ACCOUNT, SUBNET, PUBLIC, PORT = "acct-bench", "10.113.30.0/26", "198.51.100.128/26", 5602
REGISTRY, IMAGE, NAME = "ngc.microcluster.internal", "microcluster/training:current", "microcluster/training:bench"
DISK_GB = 20


Cluster = tuple[cluster_facts.ClusterFacts, list[Host]]
"""Machines with their disks in place, as the steps know them."""


@contextmanager
def cluster(count: int, port_mbps: int, *, offering: bool = False) -> Iterator[Cluster]:
    """Yield ``count`` machines; ``offering`` says that the registry has the training image for them."""
    with tempfile.TemporaryDirectory(prefix="microcluster-bench-") as name:
        folder = Path(name)
        account = ContainerMachines(ACCOUNT, folder / "state", {1: SUBNET}, PUBLIC, REGISTRY, PORT)
        account.reset()
        account.open()
        try:
            facts = tuple(_boot(account, folder, number, port_mbps) for number in range(count))
            known = _facts(folder, facts, port_mbps)
            hosts = steps.open_hosts(known)
            on_all(hosts, lambda host: steps.prepare_node(host, known) + steps.mount_volume(host, known))
            if offering:
                publish(folder / "state", IMAGE, NAME)
            yield known, hosts
        finally:
            account.reset()


def shell(host: Host, line: str, timeout_s: float = 600.0) -> str:
    """Return what a line of shell prints on a machine."""
    return host.run(("sh", "-c", line), timeout_s=timeout_s).stdout


def _boot(account: ContainerMachines, folder: Path, number: int, port_mbps: int) -> cluster_facts.HostFacts:
    login, host = _new_key(folder / "id_ed25519"), _new_key(folder / f"host_{number}")
    given = {"ed25519_private": (folder / f"host_{number}").read_text(), "ed25519_public": host}
    spec = MachineSpec(
        *(700 + number, f"gpu-{number}", "bench.test", 1, f"10.113.30.{10 + number}"),
        *(f"198.51.100.{140 + number}", "Tesla P100-PCIE-16GB", 2, (Disk(2, DISK_GB),), (login,)),
        user_data="#cloud-config\n" + json.dumps({"ssh_keys": given}),
    )
    account.restrict(spec.guest_id, Access(private_mbps=port_mbps, public_mbps=port_mbps))
    account.boot(spec)
    address = spec.public_address or ""
    return cluster_facts.HostFacts(spec.hostname, str(spec.guest_id), address, spec.private_address, host.strip())


def _facts(folder: Path, facts: tuple[cluster_facts.HostFacts, ...], port_mbps: int) -> cluster_facts.ClusterFacts:
    write_whole(folder / "ngc_key", key_of(folder / "state"), 0o600)
    _new_key(folder / "rank_ed25519")
    base = f"{REGISTRY}:{PORT}/{NAME}"
    return cluster_facts.ClusterFacts(
        *("bench", "1f3a9c42", facts),
        key_file=str(folder / "id_ed25519"),
        rank_key_file=str(folder / "rank_ed25519"),
        slots=2,
        gpu="P100",
        port_speed_mbps=port_mbps,
        data_disk_gb=DISK_GB,
        container=cluster_facts.Container(
            "openseq2seq",
            base,
            registry_key_file=str(folder / "ngc_key"),
            trainer=STAND_IN_RELEASE,
            tag="microcluster/bench:layer",
        ),
    )


def _new_key(path: Path) -> str:
    """Make a key pair unless it is there; return its public line."""
    if not path.exists():
        subprocess.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)), check=True)
    return path.with_name(f"{path.name}.pub").read_text()
