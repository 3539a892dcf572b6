"""Carry a run on the nodes that the queue granted, as the queue's job on the first of them.

Arguments: the run's folder, and the file in which the job's script has written down when it began.

The supervisor is a child; this process bears no mark of the run, so that it can end whatever does, on every node, and write down
that nothing is left. It ends the run when the person asks for it (a file), when the queue does (TERM), and before the walltime ends.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time

from agent import kill_run, program
from agent.batch import CHOSEN, ENDED, SECRETS, STOP, commands, grant, records
from agent.kill_run import STOP_FILE
from agent.machine import parallel, write_whole
from agent.records import run_snapshot

LOOK_EVERY_S = 1
RESERVE_S = 45
"""Of the walltime: for ending every process on every node, and for the notes of it."""
STEP_TIMEOUT_S = 40
"""Of one step on another node; ending what does not obey takes 20 s there."""
ADDRESS_TIMEOUT_S = 60
REFUSED = 3


class Ended(Exception):
    """The queue or a person ends the job."""


class TimeOver(Exception):
    """The walltime ends, and the supervisor has not ended the run in time: it was not training yet, or hangs."""


def main(folder, life_path):
    os.environ.pop(kill_run.RUN_VARIABLE, None)
    life = records.Life(life_path)
    request = dict(life.facts)
    # Also of what the login shell has taken, which a step of the clock would falsify by that much only.
    ends_at = time.monotonic() + request["walltime"] - RESERVE_S - max(0.0, time.time() - request["started"])
    if not may_begin(folder, request["id"]):
        life.note(ended=time.time())
        return REFUSED
    code, names, is_over = 1, [], False
    try:
        signal.signal(signal.SIGTERM, on_term)
        if os.path.exists(os.path.join(folder, STOP)):
            raise Ended()
        with open(os.environ["PBS_NODEFILE"]) as file:
            names = commands.granted(file.read())
        life.note(nodes=len(names), seen=time.time())
        found = granted(folder, request, names, ends_at)
        if found is None:
            return REFUSED
        grant.write(folder, found)
        code = carry_out(folder, request["run"], found, life)
    except Ended:
        write_whole(os.path.join(folder, STOP_FILE), "")
    except TimeOver:
        is_over = True
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        left = end_everywhere(folder, request["run"], names)
        if is_over:
            out_of_time(folder)
        write_whole(os.path.join(folder, ENDED), json.dumps(left))
        remove_secrets(folder)
        life.note(ended=time.time())
    return code


def may_begin(folder, number):
    """Return whether this job is the run's, and begins for the first time: what it began may live on where the queue lost a node."""
    if records.first(os.path.join(folder, CHOSEN), number) != number:
        print("job {} is not the one that carries out this run".format(number))
        return False
    if grant.read(folder) is None:
        return True
    if not os.path.exists(os.path.join(folder, "exit_code")):
        sentence = "the queue began job {} again, which it was asked not to do; the next submission goes on from the last checkpoint"
        refuse(folder, sentence.format(number))
    return False


def remove_secrets(folder):
    """Remove the program's secrets from the site's disk; the next submission brings them again."""
    shutil.rmtree(os.path.join(folder, SECRETS), ignore_errors=True)


def granted(folder, request, names, ends_at):
    """Return the grant with every node's address, or None, with the reason in the run's folder, where it is not what was asked for."""
    if len(names) != request["nodes"]:
        return refuse(folder, "the queue granted {} and not {} nodes".format(len(names), request["nodes"]))
    words = "python3 '{}/agent' nodes.node_facts '{}'".format(folder, request["interface"])
    answers = parallel(lambda name: on_node(folder, name, words, ADDRESS_TIMEOUT_S), names)
    silent = [name + ": " + output[-300:] for name, (code, output) in zip(names, answers) if code]
    if silent:
        return refuse(folder, "asking the granted nodes for their address failed on " + "; ".join(silent))
    return grant.Grant(request["id"], names, [output.split()[-1] for _, output in answers], ends_at)


def out_of_time(folder):
    """Say why the run has ended, instead of the supervisor, which has just been ended and takes that for a wish to stop."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(os.path.join(folder, STOP_FILE))
    doing = run_snapshot.text_of(os.path.join(folder, "phase")) or "beginning"
    sentence = "the walltime ended while the run was in this phase: {}; ask for more time".format(doing)
    refuse(folder, sentence, grant.CAUSE)


def refuse(folder, sentence, cause="queue"):
    write_whole(os.path.join(folder, "failure.json"), json.dumps({"cause": cause, "sentence": sentence, "lines": []}))
    write_whole(os.path.join(folder, "exit_code"), str(REFUSED) + "\n")


def carry_out(folder, run, found, life):
    """Let the supervisor carry out the run, until it ends or has to end; return its exit code."""
    argv = [sys.executable, os.path.join(folder, "agent"), "supervise.supervisor", "run", folder]
    environment = dict(os.environ, **{kill_run.RUN_VARIABLE: run})
    child = subprocess.Popen(argv, env=environment, stdin=subprocess.DEVNULL, cwd="/")
    while child.poll() is None:
        if os.path.exists(os.path.join(folder, STOP)):
            raise Ended()
        if time.monotonic() > found.ends_at + RESERVE_S / 2:
            raise TimeOver()
        life.seen()
        time.sleep(LOOK_EVERY_S)
    return child.returncode


def end_everywhere(folder, run, names):
    """End what is left of the run on every node; return {node: why that is not proved, or an empty text}."""
    # Without a folder of runs: this job itself knows whether the run was stopped or ended otherwise, and all nodes see one folder.
    words = "python3 '{}/agent' kill_run {} only '{}'".format(folder, kill_run.NO_RUNS, run)

    def end(name):
        if name == names[0]:
            return kill_run.end_here(run)
        return kill_run.unproved(*on_node(folder, name, words, STEP_TIMEOUT_S))

    return dict(zip(names, parallel(end, names)))


def on_node(folder, name, line, timeout_s):
    """Run a line on a node as a step; return its exit code and what it printed."""
    return kill_run.asked(program(folder, "batch.step", folder, name, line), timeout_s)


def on_term(number, frame):
    raise Ended()
