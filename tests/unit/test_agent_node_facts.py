"""What a machine says of itself, with an nvidia-smi of ours."""

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from test_agent_preflight import WANTED, found

from agent.nodes import node_facts
from agent.supervise import preflight

SOUND = "Tesla P100-PCIE-16GB, 16280, 440.118.02, 97"
FAILED = "Tesla P100-PCIE-16GB, [Unknown Error], [Unknown Error], [Unknown Error]"


@pytest.fixture
def says(tmp_path, monkeypatch):
    """Return what lets nvidia-smi say something, or end with an exit code."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def let(*lines, code=0):
        program = tmp_path / "nvidia-smi"
        program.write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines) + f"exit {code}\n")
        program.chmod(0o755)

    return let


def test_a_gpu_is_reported_with_memory_driver_and_use_and_none_where_the_driver_fails(says):
    says(SOUND)
    (gpu,) = node_facts.gpus()
    assert list(gpu.values()) == ["Tesla P100-PCIE-16GB", 16280, "440.118.02", 97]
    says("Unable to determine the device handle for GPU 0000:00:05.0: GPU is lost.", code=15)
    assert node_facts.gpus() == []


def test_a_gpu_that_has_failed_stops_the_run_in_the_table_and_not_with_a_crash(says):
    says(SOUND, FAILED)
    said = preflight.sentence(preflight.judge(found(first={"gpus": node_facts.gpus()}), SimpleNamespace(**WANTED)))
    assert "GPUs of gpu-0: Tesla P100-PCIE-16GB 16280 MiB, Tesla P100-PCIE-16GB 0 MiB instead of 2x" in said
    says(FAILED, FAILED)
    said = preflight.sentence(preflight.judge(found(first={"gpus": node_facts.gpus()}), SimpleNamespace(**WANTED)))
    assert "driver of gpu-0: [Unknown Error] instead of 418 or newer" in said


def test_shared_memory_is_what_is_free(tmp_path, capsys):
    room = os.statvfs("/dev/shm")
    node_facts.main("lo", str(tmp_path), str(tmp_path), "0", "", "/dev/pts")
    facts = json.loads(capsys.readouterr().out)
    assert abs(facts["shm_free_bytes"] - room.f_bavail * room.f_frsize) < 1 << 28


@pytest.mark.parametrize(
    ("card", "answer"),
    [("h200", ["NVIDIA H200", 143771, "580.159.04", 0]), ("h100", ["NVIDIA H100 80GB HBM3", 81559, "580.159.04", 0])],
)
def test_the_answer_of_a_real_card_is_read(says, card, answer):
    recorded = json.loads((Path(__file__).parents[1] / "on_gpu" / "recorded" / card / "nvidia_smi.json").read_text())
    assert recorded["the agent's"]["argv"][1] == "--query-gpu=" + ",".join(node_facts.GPU_FIELDS)  # As asked today.
    says(*recorded["the agent's"]["said"].splitlines())
    (gpu,) = node_facts.gpus()
    assert list(gpu.values()) == answer
