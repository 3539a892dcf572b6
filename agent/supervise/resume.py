"""Choose the checkpoint that a run goes on from: the newest whole one, of this node or of the replica on another.

What moves or removes files of the program runs where the program does: ``main`` with the run's folder, and as JSON what must not be used, and
whether to settle for what is here.
"""

import json
import os
import re
from typing import Any, Dict, List, Optional, Sequence, Tuple

from agent import inside, kill_run, program
from agent.formats.checkpoints.log_folder import (
    TORN,
    UNREADABLE,
    WITHOUT,
    Checkpoints,
    Choice,
    checkpoints_in,
    checkpoints_of_run,
    home_of,
)
from agent.formats.checkpoints.parts import NEEDED, OVER
from agent.formats.checkpoints.replica import BROUGHT, MARK, NONE, RECORDS, SPOILT, go_on
from agent.kill_run import TOO_SLOW, last_line
from agent.machine import parallel, read_json, write_whole
from agent.run import document
from agent.run.context import ASK_TRIES, Run
from agent.run.event_summary import value_of
from agent.supervise import shared_folder
from agent.supervise.health_rules import Failed, step_failed

ASK_TIMEOUT_S = 30
BRING_TIMEOUT_S = 1800
READ_TIMEOUT_S, CHOOSE_TIMEOUT_S = 600, 3600
RECORD_BYTES = 1 << 28
LOADS_S = 300
"""An attempt that went on for longer has loaded its checkpoint."""
TRACEBACK, LOADING = (
    "Traceback (most recent call last)",
    re.compile(r"(?i)checkpoint|restor|resum|\bload|pickl|state_dict|zip ?file|zip archive|corrupt|truncat"),
)
"""The first words of Python's last message, and words one of which is in it when a checkpoint could not be loaded."""
NOT_BROUGHT_BACK = "not-brought-back"
"""Cause of a failure: another machine may have a newer checkpoint, and it cannot be fetched."""
NOT_LOADED = "not_loaded.json"
"""{checkpoint from which an attempt went on that ended without a step: its files' number, bytes and newest time}: written again it is another."""


def bring_back(run: Run) -> None:
    """Fetch the copy of another machine when it is newer than anything here, as on a launcher that was replaced.

    A run goes on only when every machine has said what it has: a silent one may hold the newest copy, which the next copy would
    replace. Refusing costs nothing, because without that machine the ranks cannot start either.
    """
    # After a fetch that was killed, what is here may be half of a checkpoint.
    own = None if os.path.isdir(run.inside(BROUGHT)) else checkpoints_of_run(run).newest_whole()
    others = run.spec.machines.addresses[1:]
    run.doing = "asking the other machines for their copies"
    found = parallel(lambda address: asked(run, address), others)
    silent = "; ".join(why for _, why in found if why)
    if silent:
        raise Failed(NOT_BROUGHT_BACK, silent)
    newest = own.step if own else -1
    newer = [(step, address) for (step, _), address in zip(found, others) if step is not None and step > newest]
    refused = []
    for step, address in sorted(newer, reverse=True):
        if brought(run, step, address, refused):
            return
    if refused and not own:
        sentence = "fetching the copy of a checkpoint: {}. Remove {} there, and the run begins again"
        raise Failed(NOT_BROUGHT_BACK, sentence.format("; ".join(refused), run.inside("copy")))


def gather(run: Run) -> None:
    """Bring the parts of checkpoints that other machines have written; the same holds for a silent one."""
    others = run.spec.machines.addresses[1:]
    if others and checkpoints_of_run(run).any_node_writes:
        run.doing = "asking the other machines for their parts of the checkpoints"
        argv = run.program("checkpoints.parts", run.folder, "gather", OVER, *others)
        code, output = run.ask_again(argv, BRING_TIMEOUT_S, (0, TOO_SLOW))
        if code:
            raise Failed(NOT_BROUGHT_BACK, "{}: {}".format(run.doing, output[-300:]))


def brought(run: Run, step: int, address: str, refused: List[str]) -> bool:
    """Return whether the copy is here now; one that is spoilt there is added to ``refused``, anything else raises."""
    name = run.name_of(address)
    run.doing = "fetching the copy of step {} from {}".format(step, name)
    argv = run.program("checkpoints.replica", run.folder, "fetch", address)
    code, output = run.ask_again(argv, BRING_TIMEOUT_S, (0, SPOILT, TOO_SLOW))
    event = {"event": "not_brought_back" if code else "brought_back", "step": step, "from": name}
    run.emit(dict(event, text=output[-300:]))
    if code == SPOILT:
        refused.append("that of step {} on {}: {}".format(step, name, output[-300:]))
    elif code:
        raise Failed(NOT_BROUGHT_BACK, "{}: {}".format(run.doing, output[-300:]))
    if not code and run.inside() != run.path():
        take_records(run)
    return not code


def take_records(run: Run) -> None:
    """Go on with the records that came with a replica: the program may have written them, so only lines of events are taken."""
    for name in RECORDS:
        _, output = run.ask(["tail", "-c", str(RECORD_BYTES), run.path(name)], BRING_TIMEOUT_S)
        lines = [line.encode() + b"\n" for line in output.split("\n")]
        go_on([line for line in lines if isinstance(value_of(line), dict)], run.path(name))


def asked(run: Run, address: str) -> Tuple[Optional[int], str]:
    """Return the step of the checkpoint that a machine has the copy of, None where it has none; and why that is not known, or an empty text."""
    code, output = run.ask_again(run.program("checkpoints.replica", run.folder, "copied", address), ASK_TIMEOUT_S, (0,))
    word = (output.partition(MARK)[2].split() or [""])[0]
    if code == 0 and (word == NONE or word.isdigit()):
        return None if word == NONE else int(word), ""
    sentence = (
        "asking {} for the step of its copy: no answer in {} tries ({}). If it will never answer, remove {} there"
    )
    last = last_line(code, output)
    return None, sentence.format(run.name_of(address), ASK_TRIES, last[-300:], run.inside("copy"))


def latest_checkpoint(run: Run) -> List[str]:
    """Return the files that every node needs to go on."""
    refused = not_loaded(run)
    chosen, needed = choose(run, refused)
    if needed is None:  # A copy of what was put aside, or is suspected, may be sound.
        bring_back(run)
        chosen, needed = choose(run, refused, final=True)
    if chosen:
        step, name, suspicion = chosen
        run.resumed, run.checkpoint = int(step), name
        run.resumed_from = run.path("logdir", checkpoints_of_run(run).within(name))
        run.emit({"event": "resuming", "step": run.resumed, "from": name})
        if suspicion:
            run.emit({"event": "suspected", "step": run.resumed, "text": suspicion})
    return ["logdir/" + file for file in needed]


def choose(run: Run, refused: Dict[str, str], final: bool = False) -> Tuple[Any, Any]:
    """Return (step, name, suspicion) of what the run goes on from or None, and the needed files, None where others may have a better one."""
    run.doing = "choosing the checkpoint to go on from"
    argv = run.program("checkpoints.resume", run.folder, json.dumps([refused, final]))
    code, output = run.ask(argv, CHOOSE_TIMEOUT_S)
    if code:
        raise step_failed("preparing", run.doing, code, output.splitlines())
    chosen, needed, passed, aside = json.loads(last_line(code, output))
    for why in passed:
        run.emit({"event": "passed_over", "text": why + "; it lies in " + os.path.join(run.inside(), aside)})
    return chosen, needed


def blame(run: Run, lines: List[str]) -> str:
    """Write down that an attempt went on from a checkpoint and ended without a step; return what that means for the next one.

    A program that says why it ended, and nothing of loading, has loaded it; while a file of its own names another one, it never tried this.
    """
    name, checkpoints, said = run.checkpoint, checkpoints_of_run(run), "\n".join(lines)
    others = checkpoints.pointers_elsewhere(name)
    if others:
        return "; it was to go on from {}, but {} names another checkpoint".format(
            run.resumed_from, " and ".join(others)
        )
    if TRACEBACK in said and not LOADING.search(said):
        return ""
    run.write(NOT_LOADED, json.dumps(dict(read_json(run.path(NOT_LOADED)), **{name: identity(checkpoints, name)})))
    text = "; it had gone on from {} and made no step: ".format(run.resumed_from)
    if name in not_loaded(run):
        return text + "the next attempt puts that aside and goes on from the one before"
    return text + "without another one the next attempt uses it again; remove it to begin at step 0"


def identity(checkpoints: Checkpoints, name: str) -> List[int]:
    """Return what is another value once a checkpoint is written again, by the clock of the disk that it lies on."""
    stats = checkpoints.stats_of(name).values()
    return [len(stats), sum(one.st_size for one in stats), int(max([one.st_mtime for one in stats] or [0]))]


def not_loaded(run: Run) -> Dict[str, str]:
    """Return {name: sentence} of the checkpoints from which an attempt went on in vain.

    The last one that could be gone on from is never among them: its program may fail for another reason, and would begin again at step 0.
    """
    blamed, checkpoints = read_json(run.path(NOT_LOADED)), checkpoints_of_run(run)
    names = [name for _, name, _ in checkpoints.by_preference()[:-1]] if blamed else []
    text = ": the program went on from it and ended before its first step"
    return dict((name, name + text) for name in names if blamed.get(name) == identity(checkpoints, name))


def is_readable(folder: str, checkpoints: Checkpoints, name: str) -> bool:
    """Return whether the framework can read the checkpoint; a failure of another kind is no verdict on it."""
    if not checkpoints.is_read_back:
        return True
    argv = program(folder, "checkpoints." + type(checkpoints).__module__.rpartition(".")[2], checkpoints.path(name))
    return kill_run.ask(argv, READ_TIMEOUT_S)[0] != UNREADABLE


def settle(checkpoints: Checkpoints, chosen: Optional[Choice], keep: Sequence[str]) -> List[str]:
    """Return the files that the program goes on with, all that is older removed; without a checkpoint what lies there is put aside."""
    if chosen:
        checkpoints.prune(chosen.name, keep)
        return checkpoints.prepare(chosen.name)
    checkpoints.put_aside([name for name in os.listdir(checkpoints.logdir) if name != shared_folder.WORD], WITHOUT)
    return []


def main(folder: str, given: str) -> None:
    """Put aside what is not gone on from, and print what :func:`choose` reads."""
    refused, final = json.loads(given)
    checkpoints = checkpoints_in(folder)
    checkpoints.at_work = False
    os.makedirs(checkpoints.logdir, exist_ok=True)
    chosen, passed = checkpoints.choose(lambda name: is_readable(folder, checkpoints, name), refused)
    here = sorted(checkpoints.entries.parts())
    aside = checkpoints.put_aside([file for name in passed for file in checkpoints.files_of(name)], TORN)
    aside = os.path.relpath(aside, inside(folder)) if home_of(checkpoints.logdir) == checkpoints.logdir else aside
    is_settled = final or not ((chosen and chosen.suspicion) or set(passed).difference(refused))
    keep = document.read(os.path.join(folder, document.FILE)).checkpoints.keep
    needed = settle(checkpoints, chosen, keep) if is_settled else None
    write_whole(os.path.join(inside(folder), NEEDED), json.dumps([needed, here]))
    print(json.dumps([chosen, needed, sorted(passed.values()), aside]))
