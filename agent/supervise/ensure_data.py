"""Have a run's data on the launcher: its own, else those of a node that has them whole, else made anew."""

import shutil
from typing import List, Union

from agent import kill_run
from agent.data.progress import MARK
from agent.machine import parallel, read_json
from agent.run import event_summary
from agent.run.context import Run
from agent.supervise.health_rules import Failed, step_failed

ASK_TIMEOUT_S = 900
"""Comparing 2 GB with their sums takes seconds, 100 GB ten minutes."""
REMOVE_TIMEOUT_S = 60
MEASURE, MEASURE_TIMEOUT_S = (
    'cd "$0" && test -f SHA256SUMS && du -sm . && { test "$(wc -l <SHA256SUMS)" -gt 99 || '
    'cut -c 67- SHA256SUMS | tr "\\n" "\\0" | wc -lc --files0-from=-; }',
    300,
)
"""A person's own folder may have a million files, whose lines nobody asks for."""
TRIES = 2
WHOLE, LACKING = 0, 1
"""Exit codes of the question after whole data; any other one is no answer."""


def ensure(run: Run) -> None:
    """Have whole data on the launcher, where the run's are not the program's own business."""
    if run.spec.data.folder is None or is_whole(run) or brought(run):
        return
    run.emit({"event": "staging", "text": "no machine has the data; making them"})
    lines = []
    code = stage(run, lines)
    if code:
        raise step_failed("preparing", "preparing the data set", code, lines)
    if not is_whole(run):
        raise step_failed("preparing", "comparing the data that were made with their sums", LACKING, lines)
    shutil.rmtree(read_json(run.path("staging.json")).get("arrived", ""), ignore_errors=True)


def measure(run: Run) -> None:
    """Record once how large the data are: what `du -sm` says of the folder, and `wc` of each file of the data set."""
    if run.spec.data.folder is None or any(
        one and one.get("event") == "data" for one in event_summary.read(run.folder).events
    ):
        return
    run.doing = "measuring the data"
    code, output = run.ask(["sh", "-c", MEASURE, run.spec.data.folder], MEASURE_TIMEOUT_S)
    if code == 0:
        run.emit({"event": "data", "text": output})


def is_whole(run: Run) -> bool:
    return answer(
        run, ["whole"], "comparing the data of " + run.name_of(run.spec.machines.addresses[0]) + " with their sums"
    )


def answer(run: Run, words: List[str], what: str) -> bool:
    """Return whether the data are whole where ``words`` look for them; raise when that cannot be told."""
    run.doing = what
    code, output = run.ask_again(["sh", run.path("bring_data.sh")] + words, ASK_TIMEOUT_S, (WHOLE, LACKING))
    if code not in (WHOLE, LACKING):
        raise step_failed("preparing", what, code, output.splitlines())
    return code == WHOLE


def brought(run: Run) -> bool:
    """Return whether another machine had the data whole and they are here now, as on a launcher that was replaced.

    Data are made anew, for hours of every machine, only when each of the others has said that it lacks them.
    """
    others = [] if run.is_shared else run.spec.machines.addresses[1:]
    having = parallel(lambda address: has(run, address), others)
    unknown = [one for one in having if isinstance(one, Failed)]
    for address in [one for one, there in zip(others, having) if there is True]:
        try:
            if arrived(run, address):
                return True
        except Failed as broken:
            unknown.append(broken)
    if unknown:
        raise unknown[0]
    return False


def has(run: Run, address: str) -> Union[bool, Failed]:
    """Return whether another machine has the data whole, or why nobody can tell."""
    try:
        return answer(run, ["has", address], "asking " + run.name_of(address) + " for the data")
    except Failed as unknown:
        return unknown


def arrived(run: Run, address: str) -> bool:
    """Bring the data of a machine and return whether they are here now; raise where the way broke."""
    name, code, lines = run.name_of(address), 0, []
    for _ in range(TRIES):
        note(run, "bringing the data from " + name + ", which has them whole")
        run.doing = "bringing the data from " + name
        code = run.do(["sh", run.path("bring_data.sh"), "bring", address], lines.append)
        if code == 0 and is_whole(run):
            note(run, "the data of " + name + " are here")
            return True
        note(run, "the data of " + name + (" did not arrive" if code else " arrived with other bytes"))
    if code:
        raise step_failed("preparing", run.doing, code, lines)
    return False


def stage(run: Run, lines: List[str]) -> int:
    """Make the data, in a container of their own where there are any, which is gone afterwards; return the exit code."""

    def show(line: str) -> None:
        if line.startswith(MARK):
            line = line[len(MARK) :]
            run.emit({"event": "staging", "text": line})
        lines.append(line)

    run.doing = "preparing the data set"
    kill_run.remove_staging(timeout_s=REMOVE_TIMEOUT_S)  # A killed launcher may have left one.
    try:
        return run.do_outside(run.spec.data.stage, show)
    finally:
        kill_run.remove_staging(timeout_s=REMOVE_TIMEOUT_S)


def note(run: Run, text: str) -> None:
    """Say it in the log and where the run's progress is shown."""
    run.log.write((MARK + text + "\n").encode("utf-8"))
    run.emit({"event": "staging", "text": text})
