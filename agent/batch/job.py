"""Carry a run on the nodes that the queue granted, as the queue's job on the first of them.

Arguments: the run's folder, and the file in which the job's script has written down when it began.

The supervisor is a child; this process bears no mark of the run, so that it can end whatever does, on every node, and write down
that nothing is left. It ends the run when the person asks for it (a file), when the queue does (TERM), and before the walltime ends.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import OrderedDict
from typing import Any, Dict, List, Optional, Tuple

from agent import kill_run, program
from agent.batch import records
from agent.formats.checkpoints.log_folder import Checkpoints, checkpoints_in
from agent.kill_run import STOP_FILE
from agent.machine import parallel, write_json, write_whole
from agent.run.queue_nodes import ENDED, GRANTED, SECRETS, STOP, granted
from agent.run.records import text_of

LOOK_EVERY_S = 2
RESERVE_S = 45
"""Seconds of the walltime for ending every process on every node, and for the notes of it."""
STEP_TIMEOUT_S = 40
"""Limit of one step on another node; ending what does not obey takes 20 s there."""
ADDRESS_TIMEOUT_S = 60
REFUSED = 3
CHOSEN = "chosen_job"
"""A link in the run's folder that names the one job that may carry out the run."""
QUEUE, WALLTIME = "queue", "walltime"
"""Causes of a failed run."""
NOTHING_SAVED = "the walltime ends, and nothing was saved in it"
WINDOW_SHARE, WINDOW_MOST_S = 0.2, 900
"""From so long before the end on, the first new checkpoint ends the run."""
UNKNOWN = object()


class Ended(Exception):
    """The job ends the run, which has failed by this cause and sentence; without them the queue or a person wants it."""


class Walltime:
    """The time that is left: the moment at which the run has to have ended, and the newest checkpoints as training and window began."""

    def __init__(self, ends_at: float, now: float) -> None:
        self.ends_at = ends_at
        self.begins_at = ends_at - min(WINDOW_MOST_S, WINDOW_SHARE * (ends_at - now))
        self.first = self.before = UNKNOWN

    def verdict(self, now: float, newest: Optional[int]) -> str:
        """Return why the training ends now, or an empty text; ``newest`` is the step of the newest whole checkpoint, or None."""
        if self.first is UNKNOWN:
            self.first = self.before = newest
        if now < self.begins_at:
            self.before = newest
        if now < self.ends_at and newest == self.before:
            return ""
        if newest == self.first:
            return NOTHING_SAVED + ": let the program save more often, or ask for more time"
        return "the walltime ends; the next submission goes on from step {}".format(newest)


def main(folder: str, life_path: str) -> int:
    os.environ.pop(kill_run.RUN_VARIABLE, None)
    life = records.Life(life_path)
    request = dict(life.facts)
    # Also of what the login shell has taken, which a step of the clock would falsify by that much only.
    ends_at = time.monotonic() + request["walltime"] - RESERVE_S - max(0.0, time.time() - request["started"])
    if not may_begin(folder, request["id"]):
        life.note(ended=time.time())
        return REFUSED
    code, names, failure = 1, [], ()
    try:
        signal.signal(signal.SIGTERM, on_term)
        if os.path.exists(os.path.join(folder, STOP)):
            raise Ended()
        with open(os.environ["PBS_NODEFILE"]) as file:
            names = list(OrderedDict.fromkeys(file.read().split()))  # There is a line for each processor.
        life.note(nodes=len(names), seen=time.time())
        write_json(os.path.join(folder, GRANTED), with_addresses(folder, request, names))
        code = carry_out(folder, request["run"], Walltime(ends_at, time.monotonic()), life)
    except Ended as ended:
        write_whole(os.path.join(folder, STOP_FILE), "")
        failure = ended.args
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        left = end_everywhere(folder, request["run"], names)
        if failure:
            fail(folder, *failure)
        write_json(os.path.join(folder, ENDED), left)
        remove_secrets(folder)
        life.note(ended=time.time())
    return code


def may_begin(folder: str, number: str) -> bool:
    """Return whether this job is the run's, and begins for the first time: what it began may live on where the queue lost a node."""
    if choose(folder, number) != number:
        print("job {} is not the one that carries out this run".format(number))
        return False
    if not granted(folder):
        return True
    if not os.path.exists(os.path.join(folder, "exit_code")):
        sentence = "the queue began job {} again, which it was asked not to do; the next submission goes on from the last checkpoint"
        fail(folder, QUEUE, sentence.format(number))
    return False


def choose(folder: str, number: str) -> str:
    """Let a job carry out the run unless another one may; return the number of the one that may, whoever of several came first."""
    path = os.path.join(folder, CHOSEN)
    with contextlib.suppress(FileExistsError):
        os.symlink(number, path)  # Unlike a file, it is never seen empty.
    return os.readlink(path)


def with_addresses(folder: str, request: Dict[str, Any], names: List[str]) -> List[List[str]]:
    """Return [name, address] of every node, or end a run whose nodes are not what was asked for, or do not say their address."""
    if len(names) != request["nodes"]:
        raise Ended(QUEUE, "the queue granted {} and not {} nodes".format(len(names), request["nodes"]))
    words = "python3 '{}/agent' nodes.node_facts '{}'".format(folder, request["interface"])
    answers = parallel(lambda name: on_node(folder, name, words, ADDRESS_TIMEOUT_S), names)
    silent = [name + ": " + output[-300:] for name, (code, output) in zip(names, answers) if code]
    if silent:
        raise Ended(QUEUE, "asking the granted nodes for their address failed on " + "; ".join(silent))
    return [[name, output.split()[-1]] for name, (_, output) in zip(names, answers)]


def carry_out(folder: str, run: str, walltime: Walltime, life: records.Life) -> int:
    """Let the supervisor carry out the run, until it ends or has to end; return its exit code."""
    argv = [sys.executable, os.path.join(folder, "agent"), "supervise.supervisor", "run", folder]
    environment = dict(os.environ, **{kill_run.RUN_VARIABLE: run})
    checkpoints = checkpoints_in(folder)
    child = subprocess.Popen(argv, env=environment, stdin=subprocess.DEVNULL, cwd="/")
    while child.poll() is None:
        if os.path.exists(os.path.join(folder, STOP)):
            raise Ended()
        check_time(folder, walltime, checkpoints)
        life.seen()
        time.sleep(LOOK_EVERY_S)
    return child.returncode


def check_time(folder: str, walltime: Walltime, checkpoints: Checkpoints) -> None:
    """End the run by what is left of the walltime."""
    phase = text_of(os.path.join(folder, "phase")) or "beginning"
    if phase == "training":
        try:
            newest = checkpoints.newest_whole()
            step = newest.step if newest else None
        except OSError:  # The program may just remove the one that is looked at; the walltime ends all the same.
            step = walltime.before
        sentence = walltime.verdict(time.monotonic(), step)
        if sentence:
            raise Ended(WALLTIME, sentence)
    elif time.monotonic() >= walltime.ends_at:
        raise Ended(WALLTIME, "the walltime ended while the run was in this phase: " + phase + "; ask for more time")


def fail(folder: str, cause: str, sentence: str) -> None:
    """Say why the run has failed, instead of the supervisor, which takes its own end for a wish to stop."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(os.path.join(folder, STOP_FILE))
    write_json(os.path.join(folder, "failure.json"), {"cause": cause, "sentence": sentence, "lines": []})
    write_whole(os.path.join(folder, "exit_code"), str(REFUSED) + "\n")


def end_everywhere(folder: str, run: str, names: List[str]) -> Dict[str, str]:
    """End what is left of the run on every node; return {node: why that is not proved, or an empty text}."""
    # Without a folder of runs: this job itself knows whether the run was stopped or ended otherwise, and all nodes see one folder.
    words = "python3 '{}/agent' kill_run {} only '{}'".format(folder, kill_run.NO_RUNS, run)

    def end(name: str) -> str:
        if name == names[0]:
            return kill_run.end_here(run)
        return kill_run.unproved(*on_node(folder, name, words, STEP_TIMEOUT_S))

    return dict(zip(names, parallel(end, names)))


def remove_secrets(folder: str) -> None:
    """Remove the program's secrets from the site's disk; the next submission brings them again."""
    shutil.rmtree(os.path.join(folder, SECRETS), ignore_errors=True)


def on_node(folder: str, name: str, line: str, timeout_s: float) -> Tuple[int, str]:
    """Run a line on a node as a step; return its exit code and what it printed."""
    return kill_run.asked(program(folder, "batch.step", folder, name, line), timeout_s)


def on_term(number: int, frame: Any) -> None:
    raise Ended()
