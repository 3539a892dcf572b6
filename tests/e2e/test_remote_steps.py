"""The remote steps on machines of containers: repeated steps change nothing, and what must be refused is refused untouched."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from emulator.machines import ContainerMachines, Disk, MachineSpec, key_of, publish
from launchers import image, openseq2seq, payload
from launchers.payload import Payload
from remote import job, steps
from remote.data_disk import DiskRefusedError
from remote.hand_over import hand_over
from remote.host import Host, HostKeyError, RemoteError
from remote.image_build import ensure_built
from remote.on_all import on_all
from remote.waiting import wait_until

pytestmark = [pytest.mark.containers, pytest.mark.timeout(420)]

ACCOUNT, STATE = "acct-test-remote", Path(tempfile.gettempdir()) / "microcluster-test-remote"
SUBNET, PUBLIC = "10.113.20.0/26", "198.51.100.192/26"
REGISTRY, PORT = "ngc.microcluster.internal", 5601
LOCAL_IMAGE, NAME = "microcluster/training:current", "microcluster/training:test"
PLAIN = "nvidia/tensorflow:19.05-py3"
DISK_GB = 20


@pytest.fixture(scope="module")
def machines() -> Iterator[ContainerMachines]:
    account = ContainerMachines(ACCOUNT, STATE, {1: SUBNET}, PUBLIC, REGISTRY, PORT)
    account.reset()
    account.open()
    yield account
    account.reset()


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    for name in ("id_ed25519", "rank_ed25519", "host_0", "host_1", "stranger"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", folder / name], check=True)
    (folder / "ngc_key").write_text(key_of(STATE))
    (folder / "wrong_key").write_text("not-the-key-that-was-given")
    return folder


@pytest.fixture(scope="module")
def cluster(machines: ContainerMachines, keys: Path) -> Payload:
    """Two fresh machines with two slots each, as the steps get to know them."""
    for number in (0, 1):
        machines.boot(machine(number, keys))
    hosts = tuple(facts(number, keys) for number in (0, 1))
    base = f"{REGISTRY}:{PORT}/{NAME}"
    known = Payload(
        *("test", "1f3a9c42", hosts),
        key_file=str(keys / "id_ed25519"),
        rank_key_file=str(keys / "rank_ed25519"),
        slots=2,
        data_disk_gb=DISK_GB,
        container=payload.Container("openseq2seq", base, registry_key_file=str(keys / "ngc_key")),
        job=payload.Job("openseq2seq", "transformer-tiny", 100_000, "fp32", 16, 50, 50, "debian-en-de"),
    )
    return dataclasses.replace(known, run=openseq2seq.run_id(known))


@pytest.fixture(scope="module")
def hosts(cluster: Payload) -> list[Host]:
    return steps.open_hosts(cluster)


@pytest.fixture(scope="module")
def mounted(cluster: Payload, hosts: list[Host]) -> Payload:
    """The cluster with its machines prepared and their disks in place."""
    on_all(hosts, lambda host: steps.prepare_node(host, cluster) + steps.mount_volume(host, cluster))
    return cluster


@pytest.fixture(scope="module")
def offered(mounted: Payload) -> Payload:
    """The cluster with the image of its stack in the registry, and a plain one on which nothing can be built."""
    try:
        docker.from_env().images.get(LOCAL_IMAGE)
    except docker.errors.ImageNotFound:
        pytest.skip(f"needs the image {LOCAL_IMAGE}: run `make images`")
    for name in (NAME, PLAIN):
        publish(STATE, LOCAL_IMAGE, name)
    return mounted


@pytest.fixture(scope="module")
def built(offered: Payload, hosts: list[Host]) -> Payload:
    """The cluster with the training image on its launcher alone."""
    assert ensure_built(hosts[0], offered.container)
    return offered


@pytest.fixture(scope="module")
def running(offered: Payload, hosts: list[Host]) -> Payload:
    """The cluster with its containers."""
    steps.bring_image(hosts, offered)
    on_all(hosts, lambda host: steps.start_container(host, offered))
    return offered


def machine(number: int, keys: Path) -> MachineSpec:
    given = {
        "ed25519_private": (keys / f"host_{number}").read_text(),
        "ed25519_public": (keys / f"host_{number}.pub").read_text(),
    }
    return MachineSpec(
        *(900 + number, f"gpu-{number}", "remote.test", 1, f"10.113.20.{10 + number}", f"198.51.100.{200 + number}"),
        *(16, 120, "Tesla P100-PCIE-16GB", 2, (Disk(2, DISK_GB),), ((keys / "id_ed25519.pub").read_text(),)),
        user_data="#cloud-config\n" + json.dumps({"ssh_keys": given}),
        port_speed_mbps=1000,
    )


def facts(number: int, keys: Path) -> payload.Host:
    spec, key = machine(number, keys), (keys / f"host_{number}.pub").read_text().strip()
    return payload.Host(spec.hostname, str(spec.guest_id), spec.public_address or "", spec.private_address, key)


def shell(host: Host, line: str) -> str:
    return host.run(("sh", "-c", line)).stdout


def processes_of(run: str) -> list[str]:
    """Return the processes with the run's mark on this computer, those of its machines among them."""
    mark, found = f"MICROCLUSTER_RUN={run}".encode(), []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in environ.read_bytes().split(b"\0"):
                found.append((environ.parent / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def test_a_machine_that_shows_another_host_key_is_refused(cluster, keys):
    wrong = dataclasses.replace(facts(0, keys), host_key=(keys / "stranger.pub").read_text().strip())
    with pytest.raises(HostKeyError, match="Nothing was sent to it"):
        steps.prepare_node(Host(wrong, "root", str(keys / "id_ed25519")), cluster)


def test_a_disk_that_holds_a_file_system_is_refused_untouched(cluster, hosts):
    shell(
        hosts[1],
        "mkfs.ext4 -q -L somebody /dev/xvdc && mount /dev/xvdc /mnt && echo precious > /mnt/file && umount /mnt",
    )
    before = shell(hosts[1], "head -c 268435456 /dev/xvdc | sha256sum")
    with pytest.raises(DiskRefusedError, match="It was not touched"):
        steps.mount_volume(hosts[1], cluster)
    assert shell(hosts[1], "head -c 268435456 /dev/xvdc | sha256sum") == before
    assert shell(hosts[1], "mount -r /dev/xvdc /mnt && cat /mnt/file && umount /mnt") == "precious\n"
    shell(hosts[1], "wipefs -qa /dev/xvdc; dd if=/dev/zero of=/dev/xvdc bs=1M count=300 conv=fsync 2>/dev/null")


def test_a_file_system_outside_the_usual_places_is_found_by_its_bytes(cluster, hosts):
    shell(hosts[1], "printf x | dd of=/dev/xvdc bs=1 seek=33554432 conv=notrunc,fsync 2>/dev/null")
    with pytest.raises(DiskRefusedError, match="first 64 MiB are not all zero"):
        steps.mount_volume(hosts[1], cluster)
    shell(hosts[1], "dd if=/dev/zero of=/dev/xvdc bs=1M count=64 conv=notrunc,fsync 2>/dev/null")


def test_the_data_disk_holds_dockers_storage_and_is_mounted_as_by_hand(mounted, hosts):
    for host in hosts:
        assert shell(host, "findmnt -no LABEL,FSTYPE /data").split() == [f"mc-{mounted.mark}", "ext4"]
        assert "noatime" in shell(host, "findmnt -no OPTIONS /data")
        assert shell(host, "stat -c %a /data").strip() == "777"
        assert shell(host, "docker info --format '{{.DockerRootDir}}'").strip() == "/data/docker"
        assert "nvidia" in shell(host, "docker info --format '{{json .Runtimes}}'")


def test_preparing_again_changes_nothing(mounted, hosts):
    assert on_all(hosts, lambda host: steps.prepare_node(host, mounted) + steps.mount_volume(host, mounted)) == [[], []]


def test_a_wrong_registry_key_is_a_sentence_and_leaves_no_trace(mounted, hosts, keys):
    publish_needed = dataclasses.replace(mounted.container, registry_key_file=str(keys / "wrong_key"))
    with pytest.raises(RemoteError, match="logging in to the registry .* refused"):
        steps.bring_image(hosts, dataclasses.replace(mounted, container=publish_needed))
    assert traces(hosts[0], "not-the-key-that-was-given") == ""


def test_a_build_that_fails_shows_the_step_and_what_it_said_and_leaves_no_image(offered, hosts):
    plain = dataclasses.replace(offered.container, image=f"{REGISTRY}:{PORT}/{PLAIN}")
    with pytest.raises(RemoteError, match=r"(?s)Step \d+/\d+ : RUN python .*pinned for Python 3.5, not 3.11"):
        ensure_built(hosts[0], plain)
    assert shell(hosts[0], f"docker image ls -q {image.REPOSITORY}") == ""


def test_a_hand_over_onto_a_full_disk_says_so_and_leaves_no_image(built, hosts):
    shell(hosts[1], "fallocate -l $(($(df --output=avail -B1 /data | tail -1) - 200000000)) /data/filler")
    try:
        with pytest.raises(RemoteError, match="data disk is full: `fab ssh gpu-1 -- df -h /data`"):
            hand_over(hosts[:1], hosts[1:], built.container, built.rank_key_file)
    finally:
        shell(hosts[1], "rm -f /data/filler")
    assert shell(hosts[1], "docker image ls -q; ls /root/.ssh").split() == ["authorized_keys"]


def test_a_hand_over_that_is_cut_off_leaves_no_image_and_the_next_one_brings_it(built, hosts):
    shell(hosts[0], "setsid -f sh -c 'sleep 3; pkill -x ssh' >/dev/null 2>&1 </dev/null")
    with pytest.raises(RemoteError, match="gpu-1 uses nothing of what arrived"):
        hand_over(hosts[:1], hosts[1:], built.container, built.rank_key_file)
    assert shell(hosts[1], "docker image ls -q; ls /root/.ssh").split() == ["authorized_keys"]
    assert steps.bring_image(hosts, built) == ["handed to gpu-1"]


def test_the_registry_key_leaves_no_trace_either(running, hosts):
    for host in hosts:
        assert traces(host, key_of(STATE)) == ""


def traces(host: Host, secret: str) -> str:
    """Return the files and processes of a host in which a secret stands; it is looked for by what is read on stdin."""
    search = 'read -r s; grep -rlsF -- "$s" /root /etc /run /tmp /var/tmp /data/runs /home; ls -d /run/microcluster-login.* 2>/dev/null; true'
    return host.run(("sh", "-c", search), stdin=secret + "\n").stdout


def test_one_host_asks_the_registry_and_the_other_gets_the_very_same_image_from_it(running, hosts):
    launcher, other = (
        shell(host, "docker image ls -f dangling=false --no-trunc --format '{{.Repository}} {{.ID}}'") for host in hosts
    )
    built = dict(line.split() for line in launcher.splitlines())
    assert set(built) == {image.REPOSITORY, *(f"{REGISTRY}:{PORT}/{name.partition(':')[0]}" for name in (NAME, PLAIN))}
    assert other.split() == [image.REPOSITORY, built[image.REPOSITORY]]


def test_the_image_is_brought_once_and_the_way_in_is_closed_again(running, hosts):
    assert steps.bring_image(hosts, running) == []
    assert [shell(host, "ls /root/.ssh").split() for host in hosts] == [["authorized_keys"], ["authorized_keys"]]


def test_starting_the_container_again_changes_nothing(running, hosts):
    assert on_all(hosts, lambda host: steps.start_container(host, running)) == [[], []]


def test_the_containers_sshd_listens_on_the_private_address_only(running, hosts):
    for host in hosts:
        listeners = shell(host, "ss -Hltn 'sport = :4444'").split()
        assert [word for word in listeners if word.endswith(":4444")] == [f"{host.facts.private_address}:4444"]


def test_the_job_runs_on_all_ranks_and_stopping_leaves_no_process(running, hosts):
    assert job.start_job(hosts, running) == "started"
    assert job.start_job(hosts, running) == "running"

    def trains():
        seen = job.observe(hosts[0], running)
        assert seen.state in ("preparing", "running"), seen.reason
        return seen if seen.step is not None else None

    seen = wait_until("the first step", trains, timeout_s=180)
    assert [(rank["rank"], rank["host"]) for rank in seen.preflight] == [
        (0, "gpu-0"),
        (1, "gpu-0"),
        (2, "gpu-1"),
        (3, "gpu-1"),
    ]
    assert any("orted" in line for line in processes_of(running.run))
    assert job.stop_job(hosts, running) == {}
    assert processes_of(running.run) == []
    assert job.observe(hosts[0], running).state == "stopped"


def test_after_a_reboot_the_container_is_brought_back_and_the_disk_is_there(running, hosts, machines, keys):
    hosts[1].close()
    machines.power_off(901)
    machines.boot(machine(1, keys))
    changed = steps.prepare_node(hosts[1], running) + steps.mount_volume(hosts[1], running)
    assert changed == []
    assert "training container" in steps.start_container(hosts[1], running)
