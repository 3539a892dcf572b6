"""Choose the checkpoint that a run goes on from: the newest whole one, of this node or of the replica on another."""

import os
import time

from agent import shared_folder
from agent.checkpoints import UNREADABLE
from agent.parallel import parallel
from agent.replica_store import MARK
from agent.replica_transfer import NONE, SPOILT
from agent.run_context import ASK_TRIES, TOO_SLOW

ASK_TIMEOUT_S = 30
BRING_TIMEOUT_S = 1800
READ_TIMEOUT_S = 600


class NotBroughtBack(Exception):
    """There may be a newer checkpoint on another machine and it cannot be had; the argument is a sentence."""


class NoAnswer(Exception):
    """A machine did not answer; the argument says what came instead."""


def bring_back(run):
    """Fetch the copy of another machine when it is newer than anything here, as on a launcher that was replaced.

    A run goes on only when every machine has said what it has: a silent one may hold the newest copy, which the next copy would
    replace. Refusing costs nothing, because without that machine the ranks cannot start either.
    """
    own = run.checkpoints.newest_whole()
    others = run.spec.addresses[1:]
    run.doing = "asking the other machines for their copies"
    steps = parallel(lambda address: asked(run, address), others)
    silent = [(address, step.args[0]) for step, address in zip(steps, others) if isinstance(step, NoAnswer)]
    if silent:
        raise NotBroughtBack("; ".join(unknown(run, *one) for one in silent))
    newer = [pair for pair in zip(steps, others) if pair[0] is not None and pair[0] > (own[0] if own else -1)]
    refused = []
    for step, address in sorted(newer, reverse=True):
        if brought(run, step, address, refused):
            return
    if refused and not own:
        raise NotBroughtBack(
            "fetching the copy of a checkpoint: {}. Remove {} there, and the run begins again".format(
                "; ".join(refused), run.path("copy")
            )
        )


def unknown(run, address, output):
    sentence = (
        "asking {} for the step of its copy: no answer in {} tries ({}). If it will never answer, remove {} there"
    )
    return sentence.format(run.name_of(address), ASK_TRIES, output, run.path("copy"))


def brought(run, step, address, refused):
    """Return whether the copy is here now; one that is spoilt there is added to ``refused``, anything else raises."""
    name = run.name_of(address)
    run.doing = "fetching the copy of step {} from {}".format(step, name)
    code, output = run.ask_again(run.spec.bring + [address], BRING_TIMEOUT_S, (0, SPOILT, TOO_SLOW))
    run.emit(
        {"event": "not_brought_back" if code else "brought_back", "step": step, "from": name, "text": output[-300:]}
    )
    if code not in (0, SPOILT):
        raise NotBroughtBack("fetching the copy of step {} from {}: {}".format(step, name, output[-300:]))
    if code:
        refused.append("that of step {} on {}: {}".format(step, name, output[-300:]))
    return not code


def asked(run, address):
    """Return the step of the checkpoint that a machine has the copy of, None when it says that it has none, or a NoAnswer."""
    code, output = run.ask_again(run.spec.copied + [address], ASK_TIMEOUT_S, (0,))
    word = (output.partition(MARK)[2].split() or [""])[0]
    if code == 0 and word == NONE:
        return None
    if code == 0 and word.isdigit():
        return int(word)
    return NoAnswer((output.splitlines() or ["exit code " + str(code)])[-1][-300:])


def latest_checkpoint(run):
    """Return the files that every node needs to go on; a log folder without a whole checkpoint is put aside."""
    logdir = run.path("logdir")
    if not os.path.isdir(logdir) or not [name for name in os.listdir(logdir) if name != shared_folder.WORD]:
        os.makedirs(logdir, exist_ok=True)
        return []
    chosen, passed = choose(run)
    if passed:  # A copy of what was put aside may be sound.
        bring_back(run)
        chosen, _ = choose(run)
    if not chosen:
        home = os.path.realpath(logdir)  # On a shared drive it is a link.
        os.rename(home, home + ".without-checkpoint-" + str(int(time.time())))
        os.makedirs(home)
        return []
    step, name = chosen
    removed = run.checkpoints.prune(name)
    if removed:
        run.emit({"event": "pruned", "names": removed})
    run.resumed, run.resumed_from = step, run.path("logdir", run.checkpoints.files_of(name)[0])
    needed = run.checkpoints.prepare(name)
    run.emit({"event": "resuming", "step": step, "from": name})
    return [] if run.spec.shared else ["logdir/" + file for file in needed]


def choose(run):
    """Return (step, name) of what the run goes on from or None, and what was put aside for it."""
    chosen, passed = run.checkpoints.choose(run.path("torn"), lambda name: is_readable(run, name))
    for why in passed:
        run.emit({"event": "passed_over", "text": why})
    return chosen, passed


def is_readable(run, name):
    """Return whether the framework can read the checkpoint; a failure of another kind is no verdict on it."""
    argv = run.spec.read + [run.path("logdir", name)]
    run.doing = "reading checkpoint " + name + " back"
    return run.ask(argv, READ_TIMEOUT_S)[0] != UNREADABLE
