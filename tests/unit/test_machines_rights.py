"""The rights of an emulated machine: those of an ordinary container, and of each more no more than it needs."""

import json
from dataclasses import replace
from typing import Any

import pytest

from emulator.machines import container
from emulator.machines.container import isolation, may_raise_limits
from emulator.machines.spec import MachineSpec, Share

GUEST = MachineSpec(guest_id=1, hostname="gpu-0", domain="test", router_id=1, private_address="10.113.7.10")
BOX = replace(GUEST, filters_packets=True)
SITE, DRIVE = replace(GUEST, shares_home=True), replace(GUEST, share=Share("data", "user", "password"))


def rights(spec: MachineSpec, disk_lines: str = "") -> dict[str, Any]:
    """Rights of a machine beyond those of an ordinary container."""
    every = isolation(spec, disk_lines, raises_limits=False)
    return {name: every[name] for name in ("cap_add", "security_opt", "device_cgroup_rules") if name in every}


def refused(spec: MachineSpec) -> set[str]:
    [seccomp, _] = rights(spec)["security_opt"]
    profile = json.loads(seccomp.removeprefix("seccomp="))
    assert profile["defaultAction"] == "SCMP_ACT_ALLOW"
    return {name for rule in profile["syscalls"] for name in rule["names"]}


@pytest.mark.parametrize("spec", [SITE, DRIVE])
def test_a_machine_that_mounts_nothing_is_an_ordinary_container(spec):
    assert rights(spec) == {}


def test_a_guest_opens_its_own_disks_and_no_other_device():
    assert rights(GUEST, "xvdc 7 1030\nxvdd 7 1031\n")["device_cgroup_rules"] == ["b 7:1030 rwm", "b 7:1031 rwm"]
    assert rights(GUEST)["cap_add"] == ["SYS_ADMIN", "NET_ADMIN", "SYS_PTRACE"]


def test_only_a_machine_with_drives_has_what_their_mounts_need():
    assert rights(BOX)["device_cgroup_rules"] == ["c 10:229 rwm"]
    assert set(rights(BOX)["cap_add"]) - set(rights(GUEST)["cap_add"]) == {"DAC_READ_SEARCH"}
    assert "open_by_handle_at" in refused(BOX), "with it that right would reach files of this computer"


@pytest.mark.parametrize("spec", [GUEST, BOX])
def test_calls_that_reach_this_computers_kernel_are_refused(spec):
    assert {"init_module", "kexec_load", "keyctl", "perf_event_open", "reboot", "swapon", "syslog"} <= refused(spec)


@pytest.mark.parametrize("is_version_2", [True, False])
def test_bpf_is_left_only_where_nested_containers_need_it(monkeypatch, tmp_path, is_version_2):
    monkeypatch.setattr(container, "CGROUPS_2", tmp_path if is_version_2 else tmp_path / "none")
    assert ("bpf" in refused(GUEST)) is not is_version_2


@pytest.mark.parametrize(("spec", "own_rules"), [(BOX, True), (GUEST, False)])
def test_a_machines_root_sets_packet_rules_only_without_a_security_group(spec, own_rules):
    assert ({"socket", "setsockopt"} <= refused(spec)) is not own_rules


@pytest.mark.parametrize(("capabilities", "may"), [("000001ffffffffff", True), ("000001fffeffffff", False)])
def test_a_machine_gets_all_locked_memory_where_the_host_may_give_it(tmp_path, capabilities, may):
    (tmp_path / "status").write_text(f"Name:\tpython\nCapEff:\t{capabilities}\n")
    assert may_raise_limits(str(tmp_path / "status")) is may
    ulimits = [(one["Name"], one["Soft"], one["Hard"]) for one in isolation(GUEST, "", raises_limits=may)["ulimits"]]
    assert ulimits == ([("memlock", -1, -1)] if may else [])
