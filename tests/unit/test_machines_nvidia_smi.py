"""The stub of nvidia-smi answers in the words of the real tool."""

import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

STUB = Path(__file__).parents[2] / "images/machine/nvidia_smi.py"
KIND = {"name": "Tesla P100-PCIE-16GB", "memory_mib": 16280, "bus_id": "00000000:AF:00.0"}
DRIVER = {"driver_version": "440.118.02", "cuda_version": "10.2"}
GPUS = [{"index": index, "uuid": f"GPU-{index}", **KIND, **DRIVER} for index in range(2)]


@pytest.fixture
def smi(tmp_path, capsys):
    """Run the stub on a machine with the given GPUs; returns its exit code and what it printed."""
    loaded = importlib.util.spec_from_file_location("nvidia_smi", STUB)
    module = importlib.util.module_from_spec(loaded)
    loaded.loader.exec_module(module)

    def run(*arguments: str, gpus=GPUS) -> tuple[int, str]:
        (tmp_path / "gpus.json").write_text(json.dumps(gpus))
        return module.main(list(arguments), str(tmp_path / "gpus.json")), capsys.readouterr().out

    return run


@pytest.mark.parametrize(
    ("words", "code", "first_lines"),
    [
        (("-L",), 0, [f"GPU {each}: Tesla P100-PCIE-16GB (UUID: GPU-{each})" for each in range(2)]),
        (
            ("--query-gpu=name,memory.total,driver_version,count,index,uuid", "--format=csv,noheader"),
            0,
            [f"Tesla P100-PCIE-16GB, 16280 MiB, 440.118.02, 2, {each}, GPU-{each}" for each in range(2)],
        ),
        (("--query-gpu=index,memory.total", "--format=csv,nounits"), 0, ["index, memory.total [MiB]", "0, 16280"]),
        (("--query-gpu=colour", "--format=csv"), 2, ['Field "colour" is not a valid field to query.']),
    ],
)
def test_lists_and_queries_are_answered_in_the_words_of_the_real_tool(smi, words, code, first_lines):
    exit_code, text = smi(*words)
    assert (exit_code, text.splitlines()[: len(first_lines)]) == (code, first_lines)


def test_the_table_shows_every_gpu_and_keeps_its_width(smi):
    lines = smi()[1].splitlines()
    assert sum("Tesla P100-PCIE" in line for line in lines) == 2
    assert {len(line) for line in lines[1:] if line} == {79}


def test_a_machine_without_gpus_has_no_driver(smi):
    code, text = smi(gpus=[])
    assert code == 9
    assert "couldn't communicate with the NVIDIA driver" in text


UNPLAYED = [{**GPUS[0], "index": 90}, {**GPUS[1], "index": 91}]
"""No machine of containers on this computer has ranks with such numbers."""


def test_a_gpu_is_as_busy_as_the_rank_that_plays_it_and_without_one_at_rest(smi):
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
