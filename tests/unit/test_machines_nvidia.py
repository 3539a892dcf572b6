"""NVIDIA's tools on the machines: a runtime that becomes runc, a stub of nvidia-smi, and a way to writable control groups."""

import importlib.util
import json
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

MACHINE = Path(__file__).parents[2] / "images" / "machine"
ON_GPU = Path(__file__).parents[1] / "on_gpu" / "recorded"
"""Raw answers of nvidia-smi, as tests/on_gpu wrote them down on real cards."""


def loaded(name: str) -> ModuleType:
    """Load a program of the machine's image, which is no package."""
    spec = importlib.util.spec_from_file_location(name, MACHINE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def runtime(monkeypatch):
    """The runtime with what it becomes in ``became``."""
    module = loaded("nvidia_container_runtime")
    module.became = []
    monkeypatch.setattr(module.os, "execvp", lambda file, argv: module.became.append(argv))
    return module


def test_a_new_container_gets_the_tool_read_only_and_other_commands_pass(runtime, tmp_path):
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


def test_a_host_that_may_raise_a_limit_raises_it_as_asked(runtime, monkeypatch):
    raised = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (1 << 16, 8 << 20))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, both: raised.append((kind, both)))
    assert runtime.with_possible_limits(asked_for(UNLIMITED)) == asked_for(UNLIMITED)
    assert raised == [(resource.RLIMIT_MEMLOCK, (1 << 16, resource.RLIM_INFINITY))]


def test_limits_are_lowered_for_new_containers_and_for_commands_in_them(runtime, monkeypatch, tmp_path):
    bundle, process = tmp_path / "config.json", tmp_path / "process"
    bundle.write_text(json.dumps({"mounts": [], "process": asked_for(UNLIMITED)}))
    process.write_text(json.dumps(asked_for(UNLIMITED)))
    monkeypatch.setattr(runtime, "possible", lambda kind, wanted: 7)
    runtime.main(["--root", "r", "create", "--bundle", str(tmp_path), "name"])
    runtime.main(["--root", "r", "exec", "--process", str(process), "name"])
    for limits in (json.loads(bundle.read_text())["process"]["rlimits"], json.loads(process.read_text())["rlimits"]):
        assert {(one["hard"], one["soft"]) for one in limits} == {(7, 7)}
    assert [words[0] for words in runtime.became] == ["runc", "runc"]


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
        subprocess.run(["sh", MACHINE / "control-groups", groups], env=environment, check=True)
        return (tmp_path / "words").read_text().splitlines()

    return run


def test_cgroup_version_2_is_remounted_processes_move_down_and_controllers_are_delegated(tmp_path, made_writable):
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


KIND = {"name": "Tesla P100-PCIE-16GB", "memory.total": 16280, "driver_version": "440.118.02"}
GPUS = [{"index": index, "uuid": f"GPU-{index}", **KIND} for index in range(2)]


@pytest.fixture
def smi(tmp_path, capsys):
    """Run the stub on a machine with the given GPUs; returns its exit code and what it printed."""
    module = loaded("nvidia_smi")

    def run(*arguments: str, gpus=GPUS) -> tuple[int, str]:
        (tmp_path / "gpus.json").write_text(json.dumps(gpus))
        return module.main(list(arguments), str(tmp_path / "gpus.json")), capsys.readouterr().out

    return run


@pytest.mark.parametrize(
    ("words", "code", "first_lines"),
    [
        (("-L",), 0, [f"GPU {each}: Tesla P100-PCIE-16GB (UUID: GPU-{each})" for each in range(2)]),
        ((), 0, ["GPU 0: Tesla P100-PCIE-16GB (UUID: GPU-0)"]),
        (
            ("--query-gpu=name,memory.total,driver_version,index,uuid", "--format=csv,noheader"),
            0,
            [f"Tesla P100-PCIE-16GB, 16280 MiB, 440.118.02, {each}, GPU-{each}" for each in range(2)],
        ),
        (("--query-gpu=index,memory.total", "--format=csv,noheader,nounits"), 0, ["0, 16280"]),
        (("--query-gpu=colour", "--format=csv,noheader"), 2, []),
        (("--query-gpu=name", "--format=csv"), 2, []),
    ],
)
def test_lists_and_queries_are_answered_in_the_words_of_the_real_tool(smi, words, code, first_lines):
    exit_code, text = smi(*words)
    assert (exit_code, text.splitlines()[: len(first_lines)]) == (code, first_lines)


@pytest.mark.parametrize("card", ["h100", "h200"])
def test_the_stub_answers_as_the_real_tool_did_on_a_card(smi, card):
    asked = json.loads((ON_GPU / card / "nvidia_smi.json").read_text())
    name, memory, driver, _ = asked["the agent's"]["said"].split(", ")
    uuid = re.search(r"UUID: (\S+)\)", asked["list"]["said"])[1]
    gpu = {"index": 90, "name": name, "uuid": uuid, "driver_version": driver, "memory.total": memory}
    for question in ("the agent's", "the count", "list"):
        argv, said = asked[question]["argv"], asked[question]["said"]
        assert smi(*argv[1:], gpus=[gpu]) == (0, said.replace("GPU 0", "GPU 90"))


def test_a_machine_without_gpus_has_no_driver(smi):
    code, text = smi(gpus=[])
    assert code == 9
    assert "couldn't communicate with the NVIDIA driver" in text


UNPLAYED = [{**GPUS[0], "index": 90}, {**GPUS[1], "index": 91}]
"""No machine of containers on this computer has ranks with such numbers."""


def test_a_gpu_is_as_busy_as_its_rank_and_idle_without_one(smi):
    asked = ("--query-gpu=utilization.gpu", "--format=csv,noheader,nounits")
    assert smi(*asked, gpus=UNPLAYED) == (0, "0\n0\n")
    spin = "import time\nuntil = time.time() + 150\nwhile time.time() < until: pass"
    rank = subprocess.Popen([sys.executable, "-c", spin], env={**os.environ, "OMPI_COMM_WORLD_LOCAL_RANK": "91"})
    try:
        deadline = time.monotonic() + 120
        second = 0
        while second <= 5 and time.monotonic() < deadline:
            first, second = map(int, smi(*asked, gpus=UNPLAYED)[1].split())
    finally:
        rank.kill()
        rank.wait()
    assert first == 0 and second > 5
