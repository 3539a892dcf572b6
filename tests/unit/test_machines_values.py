"""Plain texts that the machines read and write, their packet filter among them."""

import errno
import hashlib
import json
import shutil
from pathlib import Path
from unittest.mock import Mock

import pytest
import yaml

from emulator.machines import host_tools, registry
from emulator.machines.disks import device_name, parse_loops
from emulator.machines.emulated_gpus import gpus_json
from emulator.machines.host_tools import connect, wait_until
from emulator.machines.machine_mount import files, host_key, write
from emulator.machines.network_access import firewall_text, shaping_argv
from emulator.machines.publishing import Repository
from emulator.machines.registry import KeptProcess
from emulator.machines.spec import Disk, MachineError, MachineSpec, Rule


def spec(**changes) -> MachineSpec:
    values = {
        "guest_id": 101,
        "hostname": "gpu-0",
        "domain": "local-1f3a9c42.microcluster",
        "router_id": 1,
        "private_address": "10.113.7.10",
        "public_address": "198.51.100.10",
        "gpu_model": "Tesla P100-PCIE-16GB",
        "gpu_count": 2,
        "disks": (Disk(2, 2000),),
        "ssh_keys": ("ssh-ed25519 AAAA one", "ssh-ed25519 BBBB two\n"),
        "user_data": "",
    }
    return MachineSpec(**(values | changes))


KEY = "#cloud-config\n" + yaml.safe_dump({"ssh_keys": {"ed25519_private": "-----BEGIN\nkey\n-----END\n\n"}})


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (KEY, "-----BEGIN\nkey\n-----END\n"),
        *[(text, None) for text in ("", "ssh_keys: {ed25519_private: x}", "#cloud-config")],
        *[(f"#cloud-config\n{text}", None) for text in ("[1, 2", "ssh_keys: 3")],
    ],
)
def test_the_host_key_comes_from_cloud_init_user_data_only(text, key):
    assert host_key(text) == key


def test_disks_are_named_from_xvdc_and_loop_devices_known_by_their_file():
    assert [device_name(Disk(number, 25)) for number in (2, 3, 4, 5)] == ["xvdc", "xvdd", "xvde", "xvdf"]
    listing = {"loopdevices": [{"name": "/dev/loop0", "back-file": "/s/disks/101-xvdc.img (deleted)"}]}
    assert parse_loops(json.dumps(listing)) == [("/dev/loop0", Path("/s/disks/101-xvdc.img"))]


def test_gpus_keep_their_identity_differ_between_machines_and_say_emulated():
    assert gpus_json(spec()) == gpus_json(spec())
    gpus = [gpu for guest in (101, 102) for gpu in json.loads(gpus_json(spec(guest_id=guest)))]
    assert len({gpu["uuid"] for gpu in gpus}) == 4
    assert {gpu["name"] for gpu in gpus} == {"Tesla P100-PCIE-16GB (emulated)"}


def test_an_unknown_gpu_is_refused_with_the_known_ones():
    with pytest.raises(MachineError, match=r"machine 101: no GPU 'Voodoo'.*Tesla V100-PCIE-16GB"):
        gpus_json(spec(gpu_model="Voodoo"))


def test_files_handed_in_are_roots_alone_with_one_ordered_key_a_line(tmp_path):
    given = files(spec(), "", "ngc:5000", "authority")
    assert given["authorized_keys"] == "ssh-ed25519 AAAA one\nssh-ed25519 BBBB two\n"
    write(tmp_path / "given", {"ssh_host_ed25519_key": "secret"})
    assert (tmp_path / "given").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "given/ssh_host_ed25519_key").stat().st_mode & 0o777 == 0o600


def test_a_slow_port_still_lets_a_whole_segment_through():
    argv = shaping_argv("eth1", 10)
    assert argv[argv.index("rate") + 1] == "10mbit"
    assert int(argv[argv.index("burst") + 1]) >= 64 * 1024


@pytest.mark.parametrize("is_one_disk", [True, False])
def test_an_image_lies_in_the_registrys_files_with_each_part_by_digest(tmp_path, monkeypatch, is_one_disk):
    if not is_one_disk:
        monkeypatch.setattr(Path, "hardlink_to", Mock(side_effect=OSError(errno.EXDEV, "")))
    saved, root = tmp_path / "saved", tmp_path / "storage"
    (saved / "one").mkdir(parents=True)
    (saved / "two").mkdir()
    (saved / "one/layer.tar").write_bytes(b"a layer")
    (saved / "two/layer.tar").symlink_to("../one/layer.tar")
    (saved / "config.json").write_bytes(b"{}")
    image = {"Config": "config.json", "Layers": ["one/layer.tar", "two/layer.tar"]}
    (saved / "manifest.json").write_text(json.dumps([image]))
    Repository(root, "microcluster/training").take(saved, "standin")
    shutil.rmtree(saved)
    of = root / "repositories/microcluster/training"

    def content(digest: str) -> bytes:
        found = (root / "blobs/sha256" / digest[7:9] / digest[7:] / "data").read_bytes()
        assert f"sha256:{hashlib.sha256(found).hexdigest()}" == digest
        return found

    digest = (of / "_manifests/tags/standin/current/link").read_text()
    assert (of / "_manifests/revisions" / digest.replace(":", "/") / "link").read_text() == digest
    manifest = json.loads(content(digest))
    parts = [manifest["config"], *manifest["layers"]]
    assert [content(part["digest"]) for part in parts] == [b"{}", b"a layer", b"a layer"]
    assert [part["size"] for part in parts] == [2, 7, 7]
    assert all((of / "_layers" / part["digest"].replace(":", "/") / "link").exists() for part in parts)


def test_a_docker_that_does_not_answer_is_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    with pytest.raises(MachineError, match=r"Connecting to Docker: the Docker daemon does not answer\. Start it"):
        connect()


def test_a_failed_host_program_is_quoted_and_a_missing_ones_package_named(monkeypatch, tmp_path):
    with pytest.raises(MachineError, match=r"Detaching disk x: `losetup --detach /dev/null` ended with exit code 1: "):
        host_tools.run("Detaching disk x", ("losetup", "--detach", "/dev/null"))
    monkeypatch.setattr(host_tools, "SYSTEM_PATH", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineError, match="`nsenter` is not installed. Run `apt-get install util-linux`"):
        host_tools.find("nsenter")


def test_a_kept_process_is_known_by_its_lock_and_runs_until_stopped(tmp_path, monkeypatch):
    kept = KeptProcess(tmp_path / "pid", tmp_path / "log")
    (tmp_path / "pid").write_text("1\n")
    assert not kept.runs
    kept.stop()
    assert not (tmp_path / "pid").exists()
    monkeypatch.setattr(registry, "find", shutil.which)
    kept.start(("sleep", "600"))
    later = KeptProcess(tmp_path / "pid", tmp_path / "log")
    assert later.runs
    later.stop()
    assert not later.runs


def test_waiting_returns_what_came_and_raises_when_nothing_comes():
    answers = iter((None, None, "there"))
    assert wait_until("it", lambda: next(answers), timeout_s=5) == "there"
    with pytest.raises(MachineError, match="Waiting for it: not there after 0 s"):
        wait_until("it", lambda: None, timeout_s=0)


SSH = Rule("ingress", "tcp", 22, 22, ("203.0.113.1/32",))


def rules(private, public) -> list[str]:
    lines = firewall_text(private, public).splitlines()
    assert lines[0] == "*filter"
    assert lines[-1] == "COMMIT"
    return [line for line in lines if line.startswith("-A") and "ESTABLISHED" not in line]


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        (SSH, "-A INPUT -i eth0 -s 203.0.113.1/32 -p tcp --dport 22:22 -j ACCEPT"),
        (
            Rule("egress", "udp", 1000, 2000, ("10.0.0.0/8",)),
            "-A OUTPUT -o eth0 -d 10.0.0.0/8 -p udp --dport 1000:2000 -j ACCEPT",
        ),
        (Rule("ingress", None, None, None, ()), "-A INPUT -i eth0 -s 0.0.0.0/0 -j ACCEPT"),
        (Rule("ingress", "icmp", 8, 0, ()), "-A INPUT -i eth0 -s 0.0.0.0/0 -p icmp --icmp-type 8/0 -j ACCEPT"),
        (Rule("ingress", None, None, None, ("::/0",)), "-A INPUT -i eth0 -j DROP"),
    ],
)
def test_a_rule_becomes_a_line_of_the_filter_except_for_ipv6(rule, line):
    assert rules((rule,), None)[0] == line


def test_no_group_leaves_an_interface_open_and_an_empty_group_closes_it():
    assert rules(None, ()) == ["-A INPUT -i eth1 -j DROP", "-A OUTPUT -o eth1 -j DROP"]
    assert [line.split()[-1] for line in rules((SSH,), (SSH,))] == ["ACCEPT", "DROP", "DROP"] * 2


def test_established_connections_pass_in_both_directions_before_anything_is_dropped():
    lines = firewall_text((), ()).splitlines()
    for chain in ("INPUT", "OUTPUT"):
        established = lines.index(f"-A {chain} -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT")
        assert established < min(
            i for i, line in enumerate(lines) if line.startswith(f"-A {chain} ") and "DROP" in line
        )


def test_every_remote_gets_a_line_and_ranges_lose_their_host_bits():
    members = Rule("ingress", None, None, None, ("10.112.7.10/32", "10.112.7.11/26"))
    assert [line.split()[5] for line in rules((members,), None)[:2]] == ["10.112.7.10/32", "10.112.7.0/26"]
