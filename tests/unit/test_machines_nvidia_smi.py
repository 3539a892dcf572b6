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
KIND = {"name": "Tesla P100-PCIE-16GB", "memory.total": 16280, "driver_version": "440.118.02"}
GPUS = [{"index": index, "uuid": f"GPU-{index}", **KIND} for index in range(2)]


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
