"""Every command against machines that lie: seeded cases, of which `python -m tests.hostile` plays as many as wanted."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.commands import COMMANDS, case_of
from tests.hostile.stage import CLOSING_S

pytestmark = pytest.mark.timeout(840)  # The first test waits for all cases, which takes minutes.
ROOT = Path(__file__).parents[2]
LOOK = """
import subprocess, sys, time
from tests.hostile import stage
subprocess.Popen(["ssh", "-c", f"import time; time.sleep({sys.argv[1]})", "-M", "-N"], executable=sys.executable)
time.sleep(0.5)
stage._wait_for_masters()
print(stage._kill_children(but=0))
"""
"""Program that starts what looks like a connection of OpenSSH's, and prints what a case would say is left."""
SEED, CASES = 17, 200
PROMISES = {
    "place": "nothing is made, changed or removed outside the run's folder",
    "memory": "it needs at most 200 MB",
    "time": "it is over within its limit",
    "words": "it says one sentence with a next command",
    "bill": "the guard cancels on time whatever the machines answer",
    "processes": "it leaves no process behind",
    "the case itself failed": "the test itself works",
}
KNOWN: dict[str, str] = {
    r"fab fetch.* count.* time: ": "as many files as it names come one by one, and each is as it was listed",
}
"""What is known to fail, by a pattern of the case and what is seen, with the reason."""


def played(folder: Path, *words: str) -> list[dict[str, Any]]:
    """Play cases in a process of their own, and return what each has shown."""
    file = folder / "facts.json"
    argv = (sys.executable, "-m", "tests.hostile", "--seed", str(SEED), "--facts", str(file), *words)
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert file.exists(), done.stdout[-3000:] + done.stderr[-3000:]
    return json.loads(file.read_text())


@pytest.fixture(scope="module")
def shown(tmp_path_factory) -> list[dict[str, Any]]:
    """What the cases of this suite have shown."""
    return played(tmp_path_factory.mktemp("hostile"), "--cases", str(CASES))


@pytest.mark.parametrize("promise", PROMISES)
def test_a_command_keeps_its_promise_whatever_machines_answer(shown, promise):
    broken = [
        f"{one['case']}: {failure}"
        for one in shown
        for failure in one["failures"]
        if failure.startswith(f"{promise}: ")
        and not any(re.search(pattern, f"{one['case']}: {failure}") for pattern in KNOWN)
    ]
    assert broken == [], PROMISES[promise]


def test_most_cases_attack_and_every_kind_of_attack_is_there(shown):
    attacked = [one for one in shown if one["touched"]]
    assert len(attacked) > 0.85 * len(shown)
    groups = {re.search(r"; (\w+): ", one["case"])[1] for one in attacked}
    assert groups == {"answer", "manner", "login", "files", "uploads"}


def test_every_command_is_content_with_machines_that_attack_nobody(tmp_path):
    found = played(tmp_path, "--honest", "--at-once", "2")
    assert len(found) == len(COMMANDS)
    assert {one["case"]: one["failures"] for one in found if one["failures"]} == {}
    assert {re.search("fab (.*);", one["case"])[1] for one in found if one["code"]} == {"down"}, "what is not fetched"


def test_a_case_is_the_same_again_by_its_seed_and_number():
    assert [case_of(3, number) for number in range(50)] == [case_of(3, number) for number in range(50)]
    assert len({str(case_of(seed, 1).attack) for seed in range(50)}) > 25


@pytest.mark.parametrize(("lives_s", "left"), [(CLOSING_S / 2, "[]"), (60, "-M -N")])
def test_a_connection_that_is_closing_is_not_one_left_behind(lives_s, left):
    argv = (sys.executable, "-c", LOOK, str(lives_s))
    assert left in subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout
