"""The launchers of other people, started by `kind: command`: the words of the page on own programs, as each node gets them."""

import re
import subprocess
from pathlib import Path

import pytest
from test_jobs_command import launched

from agent.run import document

ROOT = Path(__file__).parents[2]
LAUNCHERS = (ROOT / "docs" / "own-program.md").read_text().partition("\n## With a launcher\n")[2].partition("\n## ")[0]
LINES = dict(re.findall(r"^\| ([^|]+?) \| `([^`]*{[^`]+)` \|$", LAUNCHERS, re.MULTILINE))
TORCHRUN = "torchrun --nnodes 3 --node-rank NODE --nproc-per-node 2 --master-addr 10.0.0.9 --master-port PORT"
RIGHT = {
    "PyTorch, by hand": f"{TORCHRUN} train.py --folder LOGDIR",
    "Accelerate 1.15": "accelerate launch --multi_gpu --num_machines 3 --num_processes 6 --machine_rank NODE "
    "--main_process_ip 10.0.0.9 --main_process_port PORT train.py --folder LOGDIR",
    "DeepSpeed 0.17": "deepspeed --hostfile HOSTFILE.NODE --no_ssh --node_rank NODE --master_addr 10.0.0.9 --master_port PORT "
    "train.py --folder LOGDIR",
    "Composer 0.32": "composer --nproc 2 --world_size 6 --node_rank NODE --master_addr 10.0.0.9 --master_port PORT "
    "train.py --folder LOGDIR",
    "fairseq 0.12": f"{TORCHRUN} --no-python fairseq-hydra-train --config-dir conf --config-name base",
}


def test_the_page_names_exactly_these_launchers() -> None:
    assert LINES.keys() == RIGHT.keys()


@pytest.mark.parametrize("name", RIGHT)
def test_each_node_gets_a_launchers_words_with_its_own_number(name: str) -> None:
    folder = launched(nodes=3, command=LINES[name], resume="--resume {checkpoint}")
    filled = {"PORT": document.PORT, "LOGDIR": f"{folder.path}/logdir", "HOSTFILE": f"{folder.path}/hostfile"}
    for node, (first, again) in enumerate(
        zip(folder.document.program.processes, folder.document.program.resume_processes, strict=True)
    ):
        right = RIGHT[name]
        for word, value in {**filled, "NODE": str(node)}.items():
            right = right.replace(word, value)
        words = right.split()
        assert list(first.argv[-len(words) :]) == words
        assert list(again.argv[-len(words) - 2 :]) == [*words, "--resume", document.CHECKPOINT]


def test_the_hosts_file_is_written_on_its_node_before_the_launcher_starts(tmp_path: Path) -> None:
    folder = launched(nodes=3, command="cat {hostfile}")
    shell, flag, line, _, hosts, slots, file, *rest = folder.document.program.processes[2].argv
    assert (file, rest[-2:]) == (f"{folder.path}/hostfile.2", ["cat", file])
    here = tmp_path / "hostfile.2"
    said = subprocess.check_output([shell, flag, line, tmp_path, hosts, slots, here, "cat", here], text=True)
    assert said == "10.0.0.9 slots=2\n10.0.0.10 slots=2\n10.0.0.11 slots=2\n"
