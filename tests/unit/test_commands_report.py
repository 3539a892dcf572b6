"""The report of a run: eleven numbered answers from its records, and the same ones when its machines are gone."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import sample_spec
from command_samples import CLUSTER, COST
from fake_machine import FakeMachine
from frozen import compare, with_names
from sampled_run import SampledRun

from microcluster.accounts.shared.errors import ProviderError
from microcluster.command_line import parts
from microcluster.commands import status as shown
from microcluster.commands.report import report
from microcluster.jobs.run_spec import RunFolder
from microcluster.remote.errors import Completed
from microcluster.remote.inventory import Inventory
from microcluster.remote.job import AGENT
from microcluster.run import fetch
from microcluster.run import report as module
from microcluster.run import status as run_status
from microcluster.setup import environment
from tests.tiny_checkpoint import save

QUESTIONS = (
    *("How long does the run take?", "Is the model fully trained, and how can one tell?", "Was there overfitting?"),
    *("Were the GPUs fully used?", "Was the network the bottleneck?", "How does the learning rate move, and why?"),
    *(
        "How large is the training set, in MB and lines?",
        "Which files make a checkpoint?",
        "How large is a checkpoint?",
    ),
    *("How long is an average step?", "How does a step relate to the network between the nodes?"),
)
DATA = RunFolder(CLUSTER).data
MEASURED = f"13351\t.\n 4524868 1005591234 {DATA.files[0]}\n      1        9 ID\n 4524869 1005591243 total"


class Launcher(FakeMachine):
    """Runs the agent's programs here, in a folder instead of the run's."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def read(self, path):
        file = self.folder / path.rpartition("/")[2]
        return file.read_text() if file.exists() else None

    def run(self, argv, *, stdin="", timeout_s=None, accept=(0,), answer_bytes=0):
        words = [word.replace(RunFolder(CLUSTER).path, str(self.folder)) for word in argv]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        return Completed(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Return the folder of a finished run of a stack that is up; where it is no more, nothing is rented."""
    folder = tmp_path / "machine"
    shutil.copytree(AGENT, folder / "agent")
    sample_spec.write(folder, max_steps=5000)
    events = [*SampledRun().events(), {"event": "data", "text": MEASURED, "t": 900.0}]
    (folder / "progress.jsonl").write_text("".join(f"{json.dumps(event)}\n" for event in events))
    (folder / "exit_code").write_text("0\n")
    save(folder / "logdir", "model.ckpt-5000")
    (folder / "logdir/events.out.tfevents.15.gpu-0").touch()
    monkeypatch.setattr(module, "find_cluster", lambda stack: CLUSTER if folder.exists() else None)
    monkeypatch.setattr(module, "launcher_of", lambda cluster: Launcher(folder))
    monkeypatch.setattr(module, "cost_of", lambda cluster: COST)
    monkeypatch.setattr(module, "_bill", lambda cluster: [])
    monkeypatch.setattr(environment, "ARTIFACTS", tmp_path / "artifacts")
    return folder


def answers(capsys) -> dict[str, str]:
    report.code(stack="local", as_json=True)
    return {one["question"]: one["answer"] for one in json.loads(capsys.readouterr().out)["answers"]}


def test_the_eleven_questions_are_headings_of_the_page_in_their_order(machine, tmp_path):
    assert report.code(stack="local") == 0
    [page] = (tmp_path / "artifacts").rglob("report.html")
    expected = [f"{number}. {question}" for number, question in enumerate(QUESTIONS, start=1)]
    assert re.findall("<h3>(.*?)</h3>", page.read_text()) == expected
    assert "nohup.out" in page.read_text()


def test_the_screen_shows_the_numbered_answers(machine, capsys):
    report.code(stack="local")
    shown = capsys.readouterr().out
    assert " 4. Were the GPUs fully used? Yes: gpu-0 98 %, gpu-1 98 % on average" in shown
    assert "11. How does a step relate to the network" in shown


def test_every_question_of_a_whole_run_has_an_answer(machine, capsys):
    found = answers(capsys)
    assert tuple(found) == QUESTIONS
    assert not [question for question, answer in found.items() if "Unknown" in answer]


def test_what_report_and_status_print_of_a_recorded_run_is_frozen(machine, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(shown, "cost_of", module.cost_of)
    for name in ("find_cluster", "launcher_of"):
        monkeypatch.setattr(run_status, name, getattr(module, name))
    for command, verb in (("report", report), ("status", shown.status)):
        for as_json, kind in ((False, "txt"), (True, "json")):
            code = verb.code(stack="local", as_json=as_json)
            said = capsys.readouterr()
            text = with_names(f"{said.out}{said.err}", [("TIME", r"\d{4}-\d\d-\d\d \d\d:\d\d( UTC)?")])
            text = re.sub(r'"(written|phase_s)": [0-9.]+', r'"\1": "TIME"', text)
            text = text.replace(os.path.relpath(tmp_path), "FOLDER").replace(str(tmp_path), "FOLDER")
            compare(f"texts/{command}.recorded.{kind}", text + ("" if as_json else f"exit code {code}\n"))


def test_the_data_are_as_large_as_the_run_has_recorded(machine, capsys):
    answer = answers(capsys)[QUESTIONS[6]]
    assert answer.startswith(f"13,351 MB in {DATA.folder}, by du -sm. {DATA.files[0]}: 4,524,868 lines, 1.0 GB")
    assert "ID" not in answer and "total" not in answer


@pytest.mark.parametrize("odd", ["9" * 6000, "\n" * 10**6, "x\t.", "٣\t.", ""])
def test_what_is_no_measurement_of_the_data_ends_no_report(machine, capsys, odd):
    with (machine / "progress.jsonl").open("a") as file:
        file.write(json.dumps({"event": "data", "text": odd}) + "\n")
    assert answers(capsys)[QUESTIONS[6]]


def test_when_the_machines_are_gone_the_same_answers_come_from_what_was_fetched(machine, capsys):
    there = answers(capsys)
    shutil.rmtree(machine)
    assert answers(capsys) == there
    assert report.code(stack="local") == 0
    said = capsys.readouterr()
    assert "nothing of stack local is rented; read from its machines at 20" in said.err
    assert "11. How does a step" in said.out


@pytest.fixture
def fetched(machine, monkeypatch):
    """Return what fetches the run, whose files come."""
    monkeypatch.setattr(fetch, "cluster_of", lambda stack: CLUSTER)
    monkeypatch.setattr(fetch, "open_hosts", lambda cluster: [Launcher(machine)])
    monkeypatch.setattr(fetch, "_inventories", lambda *hosts, **asked: [Inventory(CLUSTER.run, "0a1b2c")])
    monkeypatch.setattr(fetch, "_fetch", lambda *run, **asked: {"failed": {}})
    return lambda: parts.run_part(fetch.fetch_runs, stack="local")


def test_a_fetch_leaves_the_report_for_when_the_machines_are_gone(machine, fetched, capsys):
    assert fetched() == 0
    shutil.rmtree(machine)
    assert tuple(answers(capsys)) == QUESTIONS


@pytest.mark.parametrize("error", [ProviderError("the account is silent."), ValueError("odd")])
def test_a_report_that_fails_fails_no_fetch(machine, fetched, monkeypatch, capsys, error):
    def fails(cluster):
        raise error

    monkeypatch.setattr(module, "cost_of", fails)
    assert fetched() == 0, "a guard cancels nothing where a fetch has failed"
    assert f"The report was not written: {str(error).capitalize()}" in capsys.readouterr().err


def test_without_machines_and_a_fetched_run_the_next_command_is_said(machine, capsys):
    shutil.rmtree(machine)
    assert report.code(stack="local") == 2
    assert "Stack local is not up" in (said := capsys.readouterr().err) and "make up STACK=local" in said


def test_a_report_of_an_earlier_version_is_shown_as_far_as_it_goes(machine, tmp_path, capsys):
    shutil.rmtree(machine)
    folder = tmp_path / "artifacts/local/abcdef012345-0a1b2c"
    folder.mkdir(parents=True)
    old = {"run": "abcdef012345", "state": "finished", "reason": None, "checkpoint_files": []}
    (folder / "report.json").write_text(json.dumps({**old, "answers": [{"question": "Why?", "answer": "So."}]}))
    assert report.code(stack="local") == 0
    assert "1. Why? So." in capsys.readouterr().out


def test_the_page_of_a_run_at_weights_and_biases_is_a_link(machine, tmp_path, capsys):
    url = "https://wandb.ai/me/project/runs/abc"
    with (machine / "progress.jsonl").open("a") as file:
        file.write(json.dumps({"event": "wandb", "text": url}) + "\n")
    report.code(stack="local")
    assert f"W&B run:         {url}" in capsys.readouterr().out
    [page] = (tmp_path / "artifacts").rglob("report.html")
    assert f'<a href="{url}" rel="noreferrer">{url}</a>' in page.read_text()
