"""The names of the agent's programs, by which products of any version call agents of any version."""

import ast
import importlib
import re
from pathlib import Path

import pytest

from agent.__main__ import PROGRAMS

ROOT = Path(__file__).parents[2]
EARLIER = {
    *("batch.job", "batch.login", "batch.step", "kill_run", "nodes.links", "nodes.node_facts"),
    *("checkpoints.listing", "checkpoints.parts", "checkpoints.replica", "checkpoints.resume", "checkpoints.rewritten"),
    *("checkpoints.tensorflow", "readers.scalars", "records.inventory", "records.run_snapshot"),
    *("data.distribute_data", "data.program_folder", "data.staging", "data.text_cleaning"),
    *("launch.probe", "launch.rank_wrapper", "launch.torchrun"),
    *("supervise.guard", "supervise.idle_watch", "supervise.supervisor"),
}
"""Paths of the modules that an agent without a table had, each with a `main`."""
FOLDERS = "batch|checkpoints|data|formats|launch|nodes|readers|records|run|supervise"
CALL = re.compile(rf"(?<![\w.])(?:{FOLDERS})(?:\.(?!py$|log$)[a-z_]+)+|kill_run")
IN_A_LINE = re.compile(r"/agent[\"']? ([a-z_.]+)")


def called(file: Path) -> set[str]:
    """Return what a file calls by a name: strings of the form of one, and the word behind the agent in a line of a shell."""
    text = file.read_text()
    nodes = ast.walk(ast.parse(text)) if file.suffix == ".py" else [ast.Constant(text)]
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return {text for text in texts if CALL.fullmatch(text)} | {
        name for text in texts for name in IN_A_LINE.findall(text)
    }


def names_called(side: str) -> set[str]:
    files = [
        file for file in (ROOT / side).rglob("*.*") if file.suffix in (".py", ".j2") and file.name != "__main__.py"
    ]
    return {name for file in files for name in called(file)}


@pytest.mark.parametrize("side", ["microcluster", "templates"])
def test_an_older_agent_understands_every_name_that_it_is_called_by(side: str) -> None:
    assert names_called(side) - EARLIER == set()
    assert set(PROGRAMS) > EARLIER, "an agent calls programs of its own version by newer names too"


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_a_name_leads_to_a_module_with_a_main(name: str) -> None:
    assert callable(importlib.import_module(f"agent.{PROGRAMS[name]}").main)


@pytest.mark.parametrize("side", ["agent", "microcluster", "templates"])
def test_programs_are_called_only_by_names_of_the_table(side: str) -> None:
    assert names_called(side) - set(PROGRAMS) == set()
