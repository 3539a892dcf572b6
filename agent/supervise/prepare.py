"""Bring data, checkpoint, configuration and programs to every node before the ranks start, and end a step in which nothing moves any more.

Moving is what the run's processes read, write and compute: those of this machine, and those of the others where nothing moves here for
a while. So no step has a limit for the whole of it: 10 GB may take their time. A connection that only keeps itself alive moves too
little to count.
"""

import json
import threading
import time
from typing import Any, Dict, List, Optional, Tuple

from agent import kill_run
from agent.data.progress import SAY_EVERY_S
from agent.formats.checkpoints import rewritten
from agent.launch import script_imports
from agent.machine import parallel
from agent.nodes.run_usage import Process, Usage, answered, growth, usage
from agent.run.context import Run
from agent.supervise import ensure_data, health_rules, resume, shared_folder
from agent.supervise.checkpoint_watch import copy_state
from agent.supervise.guard import RunLimits
from agent.supervise.health_rules import SETUP, Failed, Verdict, step_failed

IMPORTS_TIMEOUT_S = 300
IDLE_S = 900
"""Longer than the download of an archive goes on trying without one more byte."""
LOOK_EVERY_S = 15
MOVED_BYTES, MOVED_TICKS = 1 << 20, 100
"""Least work that counts as moving: a megabyte, or a second of a processor."""
SHOWN = 100
"""Most characters of a line of job.setup in a sentence."""
PROBE_TIMEOUT_S = 30
PROBE = 'mkdir -p "$0" && dd if=/dev/zero of="$0/probe" bs=512 count=1 conv=fsync 2>/dev/null && rm "$0/probe"'
USAGE_TIMEOUT_S = 20


def prepare(run: Run) -> bool:
    """Have data, checkpoint and configuration where the ranks look for them; return whether there is a checkpoint."""
    if run.spec.program.sent_program:
        bring_program(run)
    if run.spec.program.make_environment:
        make_environment(run)
    if run.spec.checkpoints.shared:
        shared_folder.use(run)
    ensure_data.ensure(run)
    ensure_data.measure(run)
    copy_state(run, {}, rewritten.OVER)  # Without a copy the program's own files have to do.
    if not run.spec.checkpoints.shared:
        resume.bring_back(run)
        resume.gather(run)
    checkpoint = resume.latest_checkpoint(run)
    run.keep_ballast()
    place(run)
    if run.spec.checkpoints.shared:
        shared_folder.compare(run, checkpoint)
    for number, (line, script) in enumerate(run.spec.program.setup, 1):
        set_up(run, "line {} of job.setup ({})".format(number, line[:SHOWN]), script)
    if run.spec.program.imports:
        look_for_imports(run)
    return run.resumed is not None


def bring_program(run: Run) -> None:
    """Bring the folder of the program from the launcher to the other machines; it goes from each to the next."""
    others = [] if run.is_shared else run.spec.machines.addresses[1:]
    if others:
        run.doing = "bringing the program to " + " and ".join(run.name_of(address) for address in others)
        words = ("spread", run.folder, run.spec.program.folder, json.dumps(run.spec.machines.ssh))
        must(run, run.program("data.program_folder", *(words + tuple(others))))


def make_environment(run: Run) -> None:
    """Make the programs that the run brings on every node at once, or once where all nodes see the same folder."""
    run.doing = "making the environment of the program"

    def make(address: str) -> Tuple[int, List[str]]:
        lines = []
        return run.do_outside(run.outside(address, run.spec.program.make_environment), lines.append), lines

    addresses = run.spec.machines.addresses[:1] if run.is_shared else run.spec.machines.addresses
    for address, (code, lines) in zip(addresses, parallel(make, addresses)):
        if code:
            raise step_failed("environment", run.doing + " on " + run.name_of(address), code, lines)


def set_up(run: Run, what: str, script: str) -> None:
    """Run a line on every node at once, or once where all nodes see the same folder; show meanwhile on which of them it still runs."""
    addresses = run.spec.machines.addresses[:1] if run.is_shared else run.spec.machines.addresses
    began, left, over = time.monotonic(), list(addresses), threading.Event()

    def show() -> None:
        run.doing = what + " on " + " and ".join(map(run.name_of, left))
        run.emit({"event": "staging", "text": "{}: {:.0f} s so far".format(run.doing, time.monotonic() - began)})

    def go_on() -> None:
        while not over.wait(SAY_EVERY_S):
            show()

    def act(address: str) -> Tuple[int, List[str]]:
        lines = []
        code = run.do_outside(run.on_node(address, ["sh", "-c", script]), lines.append)
        if not code:
            left.remove(address)
            if left:
                show()
        return code, lines

    show()
    threading.Thread(target=go_on, daemon=True).start()
    answers = parallel(act, addresses)
    over.set()
    for address, (code, lines) in zip(addresses, answers):
        if code:
            raise step_failed(SETUP, what + " on " + run.name_of(address), code, lines)


def look_for_imports(run: Run) -> None:
    """Look on the launcher for what the script imports; what is not found may be there in the training, and is noted in the preflight's table."""
    run.doing = "looking for what the program imports"
    _, output = run.ask(run.spec.program.imports, IMPORTS_TIMEOUT_S)
    said = [line[len(script_imports.MARK) :] for line in output.splitlines() if line.startswith(script_imports.MARK)]
    if said:
        run.notes.append(
            ("imports of the program", run.spec.machines.names[0], said[-1], "see job.requirements and job.python")
        )


def place(run: Run) -> None:
    """Bring configuration, programs, checkpoint and data to the other machines; the data go from each to the next."""
    others = [] if run.is_shared else run.spec.machines.addresses[1:]
    for address in others:
        run.doing = "bringing the configuration to " + run.name_of(address)
        must(run, ["sh", run.path("send_run_folder.sh"), address])
    if others and run.spec.data.folder:
        run.doing = "bringing the data to " + " and ".join(run.name_of(address) for address in others)
        must(run, run.program("data.distribute_data", run.spec.data.folder, json.dumps(run.spec.machines.ssh), *others))


def must(run: Run, argv: List[str]) -> None:
    """Run a step; what it printed last goes with its failure, with the names of the machines."""
    lines = []
    code = run.do(argv, lines.append)
    if code:
        named = [" ".join(run.name_of(word) for word in line.split(" ")) for line in lines]
        raise step_failed("placing", run.doing, code, named)


class IdleWatch:
    """Watches the preparation from a thread of its own, and says of what it has ended why it did so."""

    def __init__(self, run: Run) -> None:
        self.run, self.over = run, threading.Event()
        self.guard, self.guarded = RunLimits(run), None

    def __enter__(self) -> None:
        threading.Thread(target=self._look_on, daemon=True).start()

    def __exit__(self, kind: Any, error: Optional[BaseException], trace: Any) -> None:
        self.over.set()
        verdict = self._verdict(error.cause) if isinstance(error, Failed) else None
        if verdict:
            raise Failed(verdict.cause, verdict.sentence, error.code, error.lines) from error

    def _verdict(self, failed: str) -> Optional[Verdict]:
        """Return the verdict when the step that the run is in has been ended, else None; ``failed`` is the cause that the step names."""
        if self.guarded:
            return self.guarded
        if self.run.stuck != self.run.doing:
            return None
        text = "{}: nothing was read, written or computed for {} s".format(self.run.doing, IDLE_S)
        hanging = [
            self.run.name_of(address) for address in self.run.spec.machines.addresses if address in self._hanging()
        ]
        cause = failed if failed == SETUP else health_rules.PREPARING_STALLED
        return Verdict(cause, text + ("; no write ends on " + " and ".join(hanging) if hanging else ""), [])

    def _hanging(self) -> List[str]:
        """Return the machines on whose disk a few bytes cannot be written."""
        addresses, probe = self.run.spec.machines.addresses, ["sh", "-c", PROBE, self.run.folder]
        codes = parallel(lambda address: self.run.ask(probe, PROBE_TIMEOUT_S, address, marked=False)[0], addresses)
        return [address for address, code in zip(addresses, codes) if code]

    def _look_on(self) -> None:
        moved, before, moved_at = Usage(0, 0), {}, time.monotonic()
        while not self.over.wait(LOOK_EVERY_S):
            now = usage(self.run.spec.run, self.run.spec.machines.addresses[0])
            if time.monotonic() - moved_at >= IDLE_S / 3:  # For the whole of it a set-up line may only go on elsewhere.
                now.update(self._elsewhere())
            moved = Usage(*map(sum, zip(moved, growth(before, now))))
            before.update(now)
            if moved.bytes >= MOVED_BYTES or moved.ticks >= MOVED_TICKS:
                moved, moved_at = Usage(0, 0), time.monotonic()
            self.guarded = self.guard.verdict()
            if self.guarded or time.monotonic() - moved_at >= IDLE_S:
                self.run.stuck = self.run.doing
                kill_run.end("only", self.run.spec.run)
                moved_at = time.monotonic()

    def _elsewhere(self) -> Dict[Process, Usage]:
        """Return {process: usage} of the run's processes on the other machines that answer; before they have the agent none does."""
        others = [] if self.run.is_shared else self.run.spec.machines.addresses[1:]
        argv, found = self.run.program("nodes.run_usage", self.run.spec.run), {}
        answers = parallel(lambda address: self.run.ask(argv, USAGE_TIMEOUT_S, address, marked=False), others)
        for address, (code, output) in zip(others, answers):
            found.update(answered(address, code, output))
        return found
