"""Bring data, checkpoint, configuration and programs to every node before the ranks start."""

import errno
import json
import os

from agent import distribute_data, ensure_data, health_rules, resume, script_imports, shared_folder
from agent.failure import Failed
from agent.parallel import parallel

SSH_FAILED = 255
"""What ssh ends with when it could not reach or log in to the other machine; its last line says why."""
IMPORTS_TIMEOUT_S = 300


def prepare(run):
    """Have data, checkpoint and configuration where the ranks look for them; return whether there is a checkpoint."""
    if run.spec.make_environment:
        make_environment(run)
    if run.spec.imports:
        try_imports(run)
    if run.spec.shared:
        shared_folder.use(run)
    wrong = ensure_data.ensure(run)
    if wrong:
        what, code, lines = wrong
        raise Failed(
            cause_of(lines, "preparing"), what + " ended with exit code " + str(code) + last_reason(lines), code, lines
        )
    try:
        if not run.spec.shared:
            resume.bring_back(run)
            resume.gather(run)
        checkpoint = resume.latest_checkpoint(run)
    except resume.NotBroughtBack as failed:
        raise Failed("not-brought-back", failed.args[0], 1, []) from failed
    run.keep_ballast()
    place(run, [] if run.spec.shared else checkpoint)
    if run.spec.shared:
        shared_folder.compare(run, checkpoint)
    return run.resumed is not None


def make_environment(run):
    """Make the programs that the run brings on every node at once, or once where all nodes see the same folder."""
    run.doing = "making the environment of the program"

    def make(address):
        lines = []
        return run.do_outside(run.outside(address, run.spec.make_environment), lines.append), lines

    addresses = run.spec.addresses[:1] if run.is_shared else run.spec.addresses
    for address, (code, lines) in zip(addresses, parallel(make, addresses)):
        if code:
            what = "{} on {} ended with exit code {}".format(run.doing, run.name_of(address), code)
            what += ": " + lines[-1] if lines else ""
            raise Failed(cause_of(lines, "environment"), what, code, lines[-20:])


def try_imports(run):
    """Import on the launcher what the script imports; what is slow, or ends otherwise, says nothing about the training."""
    run.doing = "importing what the program imports"
    code, output = run.ask(run.spec.imports, IMPORTS_TIMEOUT_S)
    said = [line for line in output.splitlines() if line.startswith(script_imports.MARK)]
    if code == script_imports.REFUSED and said:
        sentence = said[-1][len(script_imports.MARK) :] + "; mend job.requirements or job.python"
        raise Failed("environment", sentence, 1, output.splitlines()[-20:])


def place(run, checkpoint):
    """Bring configuration, programs and data to the other machines; the data go from each to the next."""
    others = [] if run.is_shared else run.spec.addresses[1:]
    for address in others:
        run.doing = "bringing the configuration to " + run.name_of(address)
        must(run, "placing", run.doing, ["sh", run.path("place.sh"), address] + checkpoint)
    lines = []
    run.doing = "bringing the data to " + " and ".join(run.name_of(address) for address in others)
    words = [run.spec.data, json.dumps(run.spec.ssh)] + others
    code = run.do(run.program("distribute_data", *words), lines.append) if others and run.spec.data else 0
    for event in (
        json.loads(line[len(distribute_data.MARK) :]) for line in lines if line.startswith(distribute_data.MARK)
    ):
        run.emit(dict(event, to=[run.name_of(address) for address in event["to"]]))
    if code:
        output = " ".join(run.name_of(word) for word in (lines or ["no word"])[-1].split())
        raise Failed(
            cause_of(lines, "placing"), "bringing the data to the other machines: " + output, code, lines[-20:]
        )


def cause_of(lines, usual):
    """Return the cause of a step that failed: a full disk where anybody says so."""
    return health_rules.DISK_FULL if os.strerror(errno.ENOSPC) in " ".join(lines) else usual


def last_reason(lines):
    """Return what a staging refused with, which is the reason and not only a sign of it."""
    output = [line[len(ensure_data.MARK) :] for line in lines[-1:] if line.startswith(ensure_data.MARK)]
    return ": " + output[0] if output else ""


def must(run, cause, what, argv):
    """Run a step; what it printed last goes with its failure."""
    lines = []
    code = run.do(argv, lines.append)
    if code:
        how = ": " + lines[-1] if code == SSH_FAILED and lines else " ended with exit code " + str(code)
        raise Failed(cause, what + how, code, lines[-20:])
