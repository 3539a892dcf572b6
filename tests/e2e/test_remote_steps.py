"""The remote steps on machines of containers: repeated steps change nothing, and what must be refused is refused untouched."""

import dataclasses

import pytest
from remote_cluster import NAME, PLAIN, PORT, REGISTRY, machine, shell

from microcluster.jobs.run_spec import decided
from microcluster.remote import steps
from microcluster.remote.errors import RemoteError
from microcluster.remote.host import Host
from microcluster.remote.parallel import on_all
from microcluster.remote.training_image import distribute, ensure_built

pytestmark = [pytest.mark.containers, pytest.mark.timeout(420)]

CUT_OFF = 'until grep -qs "^wchar: [0-9]\\{9\\}" /proc/$(pgrep -nx ssh)/io; do sleep 0.1; done; pkill -x ssh'
"""End the transfer when a third of the image is on its way."""


def test_a_disk_that_holds_a_file_system_is_refused_untouched(cluster, hosts):
    shell(
        hosts[1],
        "mkfs.ext4 -q -L somebody /dev/xvdc && mount /dev/xvdc /mnt && echo precious > /mnt/file && umount /mnt",
    )
    before = shell(hosts[1], "head -c 268435456 /dev/xvdc | sha256sum")
    with pytest.raises(RemoteError, match="It was not changed"):
        steps.mount_volume(hosts[1], cluster)
    assert shell(hosts[1], "head -c 268435456 /dev/xvdc | sha256sum") == before
    assert shell(hosts[1], "mount -r /dev/xvdc /mnt && cat /mnt/file && umount /mnt") == "precious\n"
    shell(hosts[1], "wipefs -qa /dev/xvdc; dd if=/dev/zero of=/dev/xvdc bs=1M count=300 conv=fsync 2>/dev/null")


def test_a_file_system_outside_the_usual_places_is_found_by_its_bytes(cluster, hosts):
    shell(hosts[1], "printf x | dd of=/dev/xvdc bs=1 seek=33554432 conv=notrunc,fsync 2>/dev/null")
    with pytest.raises(RemoteError, match="first 64 MiB are not all zero"):
        steps.mount_volume(hosts[1], cluster)
    shell(hosts[1], "dd if=/dev/zero of=/dev/xvdc bs=1M count=64 conv=notrunc,fsync 2>/dev/null")


def test_the_data_disk_holds_dockers_storage_and_is_mounted_as_by_hand(mounted, hosts):
    for host in hosts:
        assert shell(host, "findmnt -no LABEL,FSTYPE /data").split() == [f"mc-{mounted.mark}", "ext4"]
        assert "noatime" in shell(host, "findmnt -no OPTIONS /data")
        assert shell(host, "stat -c %a /data").strip() == "755"
        assert shell(host, "docker info --format '{{.DockerRootDir}}'").strip() == "/data/docker"
        assert "nvidia" in shell(host, "docker info --format '{{json .Runtimes}}'")


def test_preparing_again_changes_nothing(mounted, hosts):
    assert on_all(hosts, lambda host: steps.prepare_node(host, mounted) + steps.mount_volume(host, mounted)) == [[], []]


def test_a_wrong_registry_key_is_a_sentence_and_leaves_no_trace(mounted, hosts, keys):
    publish_needed = dataclasses.replace(mounted.container, registry_key_file=str(keys / "wrong_key"))
    with pytest.raises(RemoteError) as refused:
        steps.bring_image(hosts, dataclasses.replace(mounted, container=publish_needed), keys / "digests")
    said = str(refused.value)
    for named in (
        f"registry {REGISTRY}:{PORT}",
        "gpu-0",
        "$oauthtoken",
        f"valid key into {keys / 'wrong_key'}",
        "again",
    ):
        assert named in said
    assert "not-the-key-that-was-given" not in said
    assert traces(hosts[0], "not-the-key-that-was-given") == ""


def test_a_failed_build_shows_its_step_and_output_and_leaves_no_image(offered, hosts, keys):
    base = dataclasses.replace(offered.container, image=f"{REGISTRY}:{PORT}/{PLAIN}", trainer=None)
    plain = decided(dataclasses.replace(offered, container=base)).container
    with pytest.raises(RemoteError, match=r"(?s)Step \d+/\d+ : RUN python .*pinned for Python 3.5, not 3.11"):
        ensure_built(hosts[0], plain, keys / "digests")
    assert shell(hosts[0], "docker image ls -q microcluster/openseq2seq") == ""


def test_a_hand_over_onto_a_full_disk_fails_and_leaves_no_image(imported, hosts):
    shell(hosts[1], "fallocate -l $(($(stat -f -c '%f * %S' /data) - 200000000)) /data/filler")
    try:
        with pytest.raises(RemoteError, match="data disk is full: `fab ssh gpu-1 -- df -h /data`"):
            distribute(hosts[0], hosts[1:], imported.container, imported.rank_key_file)
    finally:
        shell(hosts[1], "rm -f /data/filler")
    assert shell(hosts[1], "docker image ls -q; ls /root/.ssh").split() == ["authorized_keys"]


def test_an_interrupted_hand_over_leaves_no_image_and_the_next_brings_it(imported, hosts):
    shell(hosts[0], f"setsid -f timeout 120 sh -c '{CUT_OFF}' >/dev/null 2>&1 </dev/null")
    with pytest.raises(RemoteError, match="gpu-1 has no partial image"):
        distribute(hosts[0], hosts[1:], imported.container, imported.rank_key_file)
    assert shell(hosts[1], "docker image ls -q; ls /root/.ssh").split() == ["authorized_keys"]
    distribute(hosts[0], hosts[1:], imported.container, imported.rank_key_file)
    assert shell(hosts[1], "docker image ls -q").split() != []


def traces(host: Host, secret: str) -> str:
    """Return the files and processes of a host in which a secret stands; it is looked for by what is read on stdin."""
    search = 'read -r s; grep -rlsF -- "$s" /root /etc /run /tmp /var/tmp /data/runs /data/container /home; ls -d /run/microcluster-login.* 2>/dev/null; true'
    return host.run(("sh", "-c", search), stdin=secret + "\n").stdout


def test_one_host_asks_the_registry_and_hands_the_other_its_image(running, hosts):
    launcher, other = (
        shell(host, "docker image ls -f dangling=false --no-trunc --format '{{.Repository}} {{.ID}}'") for host in hosts
    )
    built = dict(line.split() for line in launcher.splitlines())
    assert set(built) == {
        "microcluster/openseq2seq",
        *(f"{REGISTRY}:{PORT}/{name.partition(':')[0]}" for name in (NAME, PLAIN)),
    }
    assert other.split() == ["microcluster/openseq2seq", built["microcluster/openseq2seq"]]


def test_the_image_is_brought_once_and_the_way_in_is_closed_again(running, hosts, keys):
    assert steps.bring_image(hosts, running, keys / "digests") == []
    assert [shell(host, "ls /root/.ssh").split() for host in hosts] == [["authorized_keys"], ["authorized_keys"]]


def test_starting_the_container_again_changes_nothing(running, hosts):
    assert on_all(hosts, lambda host: steps.start_container(host, running)) == [[], []]


def test_the_container_has_the_shared_memory_and_the_limits_that_nccl_needs(running, hosts):
    for host in hosts:
        inside = "ulimit -s; df --output=size -B1 /dev/shm | tail -1"
        assert shell(host, f"docker exec openseq2seq sh -c '{inside}'").split() == ["65536", str(1 << 30)]


def test_the_containers_sshd_listens_on_the_private_address_only(running, hosts):
    for host in hosts:
        listeners = shell(host, "ss -Hltn 'sport = :4444'").split()
        assert [word for word in listeners if word.endswith(":4444")] == [f"{host.facts.private_address}:4444"]


def test_in_the_container_the_machines_name_leads_to_its_private_address(running, hosts):
    for host in hosts:
        found = shell(host, "docker exec openseq2seq getent ahosts $(uname -n)").splitlines()
        assert {line.split()[0] for line in found} == {host.facts.private_address}


def test_after_a_reboot_the_container_and_the_disk_are_back(running, hosts, machines, keys):
    hosts[1].close()
    machines.power_off(901)
    machines.boot(machine(1, keys))
    changed = steps.prepare_node(hosts[1], running) + steps.mount_volume(hosts[1], running)
    assert changed == []
    assert "training container" in steps.start_container(hosts[1], running)
