"""What stands on the machines: an nvidia runtime that becomes runc, and a way to writable control groups."""

import importlib.util
import json
import os
import resource
import subprocess
from pathlib import Path

import pytest

from emulator.machines.container import isolation, may_raise_limits

STUB = Path(__file__).parents[2] / "images/machine/nvidia_container_runtime.py"


@pytest.fixture
def runtime(monkeypatch):
    """The runtime with what it becomes in ``became``."""
    loaded = importlib.util.spec_from_file_location("nvidia_container_runtime", STUB)
    module = importlib.util.module_from_spec(loaded)
    loaded.loader.exec_module(module)
    module.became = []
    monkeypatch.setattr(module.os, "execvp", lambda file, argv: module.became.append(argv))
    return module


def test_a_container_that_is_made_gets_the_tool_read_only_and_every_other_command_is_passed_on(runtime, tmp_path):
    given = {"mounts": [{"destination": "/proc"}], "hostname": "x", "process": {"args": ["sh"]}}
    (tmp_path / "config.json").write_text(json.dumps(given))
    arguments = ["--root", "/run", "create", "--bundle", str(tmp_path), "abc"]
    runtime.main(arguments)
    config = json.loads((tmp_path / "config.json").read_text())
    assert [mount["destination"] for mount in config["mounts"]] == ["/proc", *runtime.BROUGHT]
    assert all("ro" in mount["options"] for mount in config["mounts"][1:])
    assert config["hostname"] == "x"
    runtime.main(["state", "abc"])
    assert runtime.became == [["runc", *arguments], ["runc", "state", "abc"]]


UNLIMITED = 2**64 - 1


def asked_for(memlock):
    limits = [
        {"type": "RLIMIT_MEMLOCK", "hard": memlock, "soft": memlock},
        {"type": "RLIMIT_STACK", "hard": 1 << 20, "soft": 1 << 20},
    ]
    return {"args": ["sh"], "rlimits": limits}


def test_a_host_that_may_not_raise_a_limit_gives_what_it_has(runtime, monkeypatch):
    def refuse(*_):
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda kind: (1 << 16, 8 << 20))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    given = runtime.with_possible_limits(asked_for(UNLIMITED))
    assert [(one["hard"], one["soft"]) for one in given["rlimits"]] == [(8 << 20, 8 << 20), (1 << 20, 1 << 20)]
    assert given["args"] == ["sh"]
    assert runtime.with_possible_limits({"args": ["sh"]})["rlimits"] == []


def test_a_host_that_may_raise_a_limit_raises_its_own_and_gives_what_was_asked_for(runtime, monkeypatch):
    raised = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (1 << 16, 8 << 20))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, both: raised.append((kind, both)))
    assert runtime.with_possible_limits(asked_for(UNLIMITED)) == asked_for(UNLIMITED)
    assert raised == [(resource.RLIMIT_MEMLOCK, (1 << 16, resource.RLIM_INFINITY))]


def test_limits_are_lowered_for_a_new_container_and_for_what_is_started_in_one(runtime, monkeypatch, tmp_path):
    bundle, process = tmp_path / "config.json", tmp_path / "process"
    bundle.write_text(json.dumps({"mounts": [], "process": asked_for(UNLIMITED)}))
    process.write_text(json.dumps(asked_for(UNLIMITED)))
    monkeypatch.setattr(runtime, "possible", lambda kind, wanted: 7)
    runtime.main(["--root", "r", "create", "--bundle", str(tmp_path), "name"])
    runtime.main(["--root", "r", "exec", "--process", str(process), "name"])
    for limits in (json.loads(bundle.read_text())["process"]["rlimits"], json.loads(process.read_text())["rlimits"]):
        assert {(one["hard"], one["soft"]) for one in limits} == {(7, 7)}
    assert [words[0] for words in runtime.became] == ["runc", "runc"]


@pytest.mark.parametrize(("capabilities", "may"), [("000001ffffffffff", True), ("000001fffeffffff", False)])
def test_a_machine_gets_all_locked_memory_where_the_host_may_give_it(tmp_path, capabilities, may):
    (tmp_path / "status").write_text(f"Name:\tpython\nCapEff:\t{capabilities}\n")
    assert may_raise_limits(str(tmp_path / "status")) is may
    ulimits = [
        (one["Name"], one["Soft"], one["Hard"])
        for one in isolation(raises_limits=may, filters_packets=False)["ulimits"]
    ]
    assert ulimits == ([("memlock", -1, -1)] if may else [])


@pytest.mark.parametrize(("own_rules", "refused"), [(True, []), (False, ["socket", "setsockopt"])])
def test_a_machines_root_sets_rules_for_packets_only_where_no_security_group_guards_it(own_rules, refused):
    [seccomp, _] = isolation(raises_limits=False, filters_packets=own_rules)["security_opt"]
    profile = json.loads(seccomp.removeprefix("seccomp="))
    assert profile["defaultAction"] == "SCMP_ACT_ALLOW"
    assert [name for rule in profile["syscalls"] for name in rule["names"]] == refused


SCRIPT = Path(__file__).parents[2] / "images" / "machine" / "control-groups"


@pytest.fixture
def made_writable(tmp_path):
    """Return what runs the script on a folder, with mount and umount that only say what they were told."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("mount", "umount"):
        (programs / name).write_text(f'#!/bin/sh\necho "{name} $*" >> {tmp_path}/words\n')
        (programs / name).chmod(0o755)

    def run(groups: Path) -> list[str]:
        environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
        subprocess.run(["sh", SCRIPT, groups], env=environment, check=True)
        return (tmp_path / "words").read_text().splitlines()

    return run


def test_version_2_is_remounted_its_processes_move_down_and_its_controllers_are_handed_on(tmp_path, made_writable):
    groups = tmp_path / "groups"
    groups.mkdir()
    (groups / "cgroup.controllers").write_text("cpu\n")
    (groups / "cgroup.procs").write_text("41\n")
    assert made_writable(groups) == [f"mount -o remount,rw {groups}"]
    assert (groups / "init" / "cgroup.procs").read_text() == "41\n"
    assert (groups / "cgroup.subtree_control").read_text() == "+cpu\n"


def test_version_1_is_mounted_anew_with_a_folder_for_each_controller(tmp_path, made_writable):
    groups = tmp_path / "groups"
    groups.mkdir()
    words = made_writable(groups)
    assert words[:2] == [f"umount -l {groups}", f"mount -t tmpfs -o mode=755 cgroup {groups}"]
    assert all(line.startswith("mount -t cgroup -o ") for line in words[2:])
