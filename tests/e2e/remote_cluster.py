"""Two machines of containers, brought up step by step; the tests of the steps and of what can happen to a run share them."""

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from image_containers import TRAINING, need

from emulator.machines.container_machines import ContainerMachines
from emulator.machines.publishing import publish
from emulator.machines.registry import key_of
from emulator.machines.spec import Access, Disk, MachineSpec
from microcluster.core.files import write_whole
from microcluster.core.home import Home
from microcluster.jobs import cluster_facts
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.openseq2seq import STAND_IN_RELEASE
from microcluster.jobs.run_spec import decided
from microcluster.remote import steps
from microcluster.remote.host import Host
from microcluster.remote.parallel import on_all
from tests.unit.launching import transformer

ACCOUNT, STATE = "acct-test-remote", Path(tempfile.gettempdir()) / "microcluster-test-remote"
SUBNET, PUBLIC = "10.113.20.0/26", "198.51.100.192/26"
REGISTRY, PORT = "ngc.microcluster.internal", 5601
NAME = "microcluster/training:test"
PLAIN = "nvidia/tensorflow:19.05-py3"
DISK_GB = 20


@pytest.fixture(scope="session")
def machines() -> Iterator[ContainerMachines]:
    account = ContainerMachines(ACCOUNT, STATE, {1: SUBNET}, PUBLIC, REGISTRY, PORT)
    account.reset()
    account.open()
    yield account
    account.reset()


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    for name in ("id_ed25519", "rank_ed25519", "host_0", "host_1", "host_2", "stranger"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", folder / name], check=True)
    write_whole(folder / "ngc_key", key_of(STATE), 0o600)
    wrong = f"[{REGISTRY}:{PORT}]\napi_key = not-the-key-that-was-given\n"
    write_whole(folder / "wrong_key", wrong, 0o600)
    return folder


@pytest.fixture(scope="session")
def cluster(machines: ContainerMachines, keys: Path) -> ClusterFacts:
    """Two fresh machines with two slots each, as the steps get to know them."""
    for number in (0, 1):
        machines.restrict(machine(number, keys).guest_id, Access(private_mbps=1000, public_mbps=1000))
        machines.boot(machine(number, keys))
    hosts = tuple(facts(number, keys) for number in (0, 1))
    base = f"{REGISTRY}:{PORT}/{NAME}"
    known = ClusterFacts(
        *("test", "1f3a9c42", hosts),
        key_file=str(keys / "id_ed25519"),
        rank_key_file=str(keys / "rank_ed25519"),
        slots=2,
        gpu="P100",
        port_speed_mbps=1000,
        data_disk_gb=DISK_GB,
        container=cluster_facts.Container(
            "openseq2seq", base, registry_key_file=str(keys / "ngc_key"), trainer=STAND_IN_RELEASE
        ),
        job=transformer(maxSteps=100_000, evalSteps=50, checkpointSteps=50),
    )
    return decided(known)


@pytest.fixture(scope="session")
def hosts(cluster: ClusterFacts) -> list[Host]:
    return steps.open_hosts(cluster)


@pytest.fixture(scope="session")
def mounted(cluster: ClusterFacts, hosts: list[Host]) -> ClusterFacts:
    """The cluster with its machines prepared and their disks in place."""
    on_all(hosts, lambda host: steps.prepare_node(host, cluster) + steps.mount_volume(host, cluster))
    on_all(hosts, lambda host: shell(host, "echo 127.0.1.1 $(uname -n) >> /etc/hosts"))  # As Debian's installer does.
    return cluster


@pytest.fixture(scope="session")
def offered(mounted: ClusterFacts) -> ClusterFacts:
    """The cluster with the image of its stack in the registry, and a plain one on which nothing can be built."""
    need(TRAINING)
    for name in (NAME, PLAIN):
        publish(STATE, TRAINING, name, Home.of().cache / "saved")
    return mounted


@pytest.fixture(scope="session")
def imported(offered: ClusterFacts, hosts: list[Host]) -> ClusterFacts:
    """The cluster with an image of 350 MB under the training image's name, on its launcher alone."""
    shell(hosts[0], f"tar -cC / usr | docker import - {offered.container.tag}")
    return offered


@pytest.fixture(scope="session")
def running(offered: ClusterFacts, hosts: list[Host], keys: Path) -> ClusterFacts:
    """The cluster with its containers."""
    steps.bring_image(hosts, offered, keys / "digests")
    on_all(hosts, lambda host: steps.start_container(host, offered))
    return offered


def machine(number: int, keys: Path) -> MachineSpec:
    given = {
        "ed25519_private": (keys / f"host_{number}").read_text(),
        "ed25519_public": (keys / f"host_{number}.pub").read_text(),
    }
    return MachineSpec(
        *(900 + number, f"gpu-{number}", "remote.test", 1, f"10.113.20.{10 + number}"),
        *(f"198.51.100.{200 + number}", "Tesla P100-PCIE-16GB", 2, (Disk(2, DISK_GB),)),
        ssh_keys=((keys / "id_ed25519.pub").read_text(),),
        user_data="#cloud-config\n" + json.dumps({"ssh_keys": given}),
    )


def facts(number: int, keys: Path) -> cluster_facts.HostFacts:
    spec, key = machine(number, keys), (keys / f"host_{number}.pub").read_text().strip()
    return cluster_facts.HostFacts(
        spec.hostname, str(spec.guest_id), spec.public_address or "", spec.private_address, key
    )


def shell(host: Host, line: str) -> str:
    return host.run(("sh", "-c", line)).stdout
