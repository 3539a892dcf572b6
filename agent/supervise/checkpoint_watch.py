"""Announce every new checkpoint and best model, and keep a replica of the newest on another node.

It runs in a thread of its own and never holds up the ranks. The first node that takes the replica keeps it for as long as it can;
when it cannot, the next node does. On a drive that all nodes mount there is nothing to copy: another node proves that the drive has the
checkpoint, since a mount may take a file and write it to the drive later, or never when the drive is full.
"""

import os
import threading
import time
from typing import Any, Dict, Iterable, List, NamedTuple, Optional

from agent.formats.checkpoints import parts, rewritten
from agent.formats.checkpoints.entries import Checkpoint, stat_of
from agent.formats.checkpoints.log_folder import Checkpoints, checkpoints_of_run
from agent.formats.checkpoints.replica import RECORDS, CopyFailed
from agent.run import event_summary
from agent.run.context import Run
from agent.supervise import shared_folder
from agent.supervise.health_rules import HealthRules

COPY_TIMEOUT_S = 1800
KILL_AFTER_S = 10
LIMITED = ["timeout", "--kill-after=" + str(KILL_AFTER_S), str(COPY_TIMEOUT_S)]
"""Inside the container: a copy that was only given up outside of it would write beside the next one."""
RETRY_S = 60
GATHER_S = 30
"""Pause between two looks at the other nodes while the launcher has no new step."""
TAKEN_S = 60.0
"""A mount of a drive may write what was closed five seconds ago, and a checkpoint of a gigabyte takes a while."""
State = NamedTuple("State", [("newest", Checkpoint), ("best", List[str]), ("files", List[str])])
"""State that is copied: the newest checkpoint, the names of the best models, and the files of the newest one."""


class CheckpointWatch:
    """Keeps the copy of one training phase; ``keep`` returns after the look that follows the end."""

    def __init__(self, run: Run, rules: HealthRules, over: threading.Event) -> None:
        self.run, self.rules, self.over, self.checkpoints = run, rules, over, checkpoints_of_run(run)
        self.keepers = [] if run.spec.checkpoints.shared else list(run.spec.machines.addresses[1:])
        self.announced = self.kept = None
        self.failed_at = None
        self.gathered_at, self.not_gathered = float("-inf"), ""
        self.late, self.no_copy = {}, ""

    def keep(self) -> None:
        last = False
        while not last:
            last = self.over.is_set()
            self.look(last)
            self.over.wait(self.run.spec.limits.watch_every_s)

    def look(self, last: bool = False) -> None:
        """Announce a new checkpoint, and copy it and the best models where anything of that is new."""
        if last:  # With nothing known from before: the time of a folder may not show its last change.
            self.checkpoints = checkpoints_of_run(self.run)
            self.checkpoints.at_work = False
        try:
            self.no_copy = copy_state(self.run, self.late, rewritten.OVER if last else "", self.checkpoints)
            self._gather(last)
            newest, best = self.checkpoints.newest(), self.checkpoints.best_whole()
            if newest:
                self._announce_and_copy(newest, best, last)
            if last:
                self._name_suspected()
            if (
                self.not_gathered or self.no_copy
            ):  # What is here is copied all the same, and copied again once all of it is.
                self.kept = None
                raise CopyFailed(self.no_copy or self.not_gathered)
        except Exception as error:  # noqa: BLE001 - it may pass, and the next checkpoints are to be copied all the same
            self.failed_at = time.monotonic()
            self.rules.not_copied = "the newest checkpoint could not be copied: {}".format(error)

    def _gather(self, last: bool) -> None:
        """Let the launcher have the parts that other nodes have written, at once where it has a step that is not copied yet."""
        kept, found = self.kept.newest.step if self.kept else 0, self.checkpoints.found()
        is_new = found and found[0].step > kept
        is_due = last or is_new or time.monotonic() - self.gathered_at >= GATHER_S
        if self.keepers and self.checkpoints.any_node_writes and is_due:
            self.gathered_at = time.monotonic()
            others = self.run.spec.machines.addresses[1:]
            self.not_gathered = self._ask("checkpoints.parts", "gather", parts.OVER if last else str(kept), *others)

    def _name_suspected(self) -> None:
        """Say at once that the newest checkpoint of a run that ends may be of no use."""
        for step, name in self.checkpoints.regular()[:1]:
            if self.checkpoints.suspicion_of(name):
                self.run.emit({"event": "suspected", "step": step, "text": self.checkpoints.suspicion_of(name)})

    def _ask(self, module: str, *words: str, given: bytes = b"") -> str:
        """Return why a program on the launcher has failed, or an empty text."""
        argv = LIMITED + self.run.program(module, self.run.folder, *words)
        code, output = self.run.ask(argv, COPY_TIMEOUT_S + 2 * KILL_AFTER_S, marked=False, given=given)
        return (output or "exit code " + str(code))[-300:] if code else ""

    def _announce_and_copy(self, newest: Checkpoint, best: List[str], last: bool) -> None:
        if newest != self.announced:
            self._announce(*newest)
        self.announced = newest
        state = State(newest, best, self.checkpoints.files_of(newest.name))
        pausing = self.failed_at is not None and time.monotonic() - self.failed_at < RETRY_S and not last
        if state == self.kept or pausing:
            return
        if self.run.spec.checkpoints.shared:
            self._prove_taken(state, last)
        elif self.keepers:
            self._copy(state)

    def _announce(self, step: int, name: str) -> None:
        size = sum(one.st_size for one in self.checkpoints.stats_of(name).values())
        self.rules.see_checkpoint((step, name), size, time.monotonic())
        suspicion = self.checkpoints.suspicion_of(name)
        self.run.emit(dict({"suspicion": suspicion} if suspicion else {}, event="checkpoint", step=step, bytes=size))

    def _prove_taken(self, state: State, last: bool) -> None:
        """Let another node look for the checkpoint on the drive; at the end of a run wait until it is there."""
        (step, _), best, names = state
        files = [os.path.join(self.run.spec.checkpoints.shared, file) for file in names + self._files_of_all(best)]
        sizes, written = [shared_folder.length(file) for file in files], last_write(files)
        found = shared_folder.lengths_elsewhere(self.run, files)
        began = time.monotonic()
        while last and found != sizes and time.monotonic() - began < TAKEN_S:
            time.sleep(1)
            found = shared_folder.lengths_elsewhere(self.run, files)
        if found == sizes:
            self._taken(state, "the drive", [], written)
        elif last or time.time() - written > TAKEN_S:
            self.rules.not_copied = not_taken(step, sizes, found)

    def _copy(self, state: State) -> None:
        """Copy to the first machine that takes it, so that the launcher's loss costs one interval at most."""
        (step, name), best, names = state
        files = names + self.checkpoints.shared_files(name) + self._files_of_all(best)
        written = last_write([self.run.inside("logdir", file) for file in names])
        files = [os.path.join(folder, file) for folder in parts.folders(self.run.inside()) for file in files]
        files = [file for file in files if os.path.lexists(self.run.inside(file))]
        before, refused = self._as_they_are(files), []
        for record in RECORDS:
            self.run.hand_in(record)
        for address in list(self.keepers):
            why = self._ask("checkpoints.replica", "copy", address, str(step), given=shared_folder.named(files))
            if not why:
                self.keepers.remove(address)
                self.keepers.insert(0, address)
                self._taken(state, self.run.name_of(address), best, written)
                return
            if self._as_they_are(files) != before:
                return  # The framework has written meanwhile; the next look takes what is there then.
            refused.append("to " + self.run.name_of(address) + ": " + why)
        self.failed_at = time.monotonic()
        self.rules.not_copied = "checkpoint {} could not be copied {}".format(step, "; ".join(refused))

    def _taken(self, state: State, to: str, best: List[str], written: float) -> None:
        """Note that a checkpoint is safe, and how long after its last byte."""
        self.kept, self.failed_at, self.rules.not_copied = state, None, ""
        event = {
            "event": "copied",
            "step": state.newest.step,
            "to": to,
            "best": [os.path.basename(one) for one in best],
        }
        self.run.emit(dict(event, lag_s=round(time.time() - written, 1)))

    def _files_of_all(self, names: Iterable[str]) -> List[str]:
        return [file for name in names for file in self.checkpoints.files_of(name)]

    def _as_they_are(self, files: Iterable[str]) -> List[Any]:
        """Return what changes when a file is written again or removed."""
        found = [stat_of(self.run.inside(file)) for file in files]
        return [one and (one.st_size, one.st_mtime) for one in found]


def copy_state(run: Run, late: Dict[str, str], over: str, checkpoints: Optional[Checkpoints] = None) -> str:
    """Let every node copy what its program will write over, once the first one does; return why one has not, or an empty text.

    Args:
        late: {address: the folder of the state of which another node has no copy yet}, which is kept up to date.
    """
    checkpoints, others, failed = (
        checkpoints or checkpoints_of_run(run),
        [] if run.spec.checkpoints.shared else run.spec.machines.addresses[1:],
        [],
    )
    checkpoints.at_work = not over
    due = run.spec.machines.addresses[:1] if checkpoints.is_due() else []
    if due:
        run.hand_in(event_summary.EVENTS)
    for address in due + others:
        if address in due or address in late:
            argv = LIMITED + run.program("checkpoints.rewritten", run.folder, over, late.get(address, ""))
            code, output = run.ask(argv, COPY_TIMEOUT_S + 2 * KILL_AFTER_S, address, marked=False)
            if code:
                failed.append("{}: {}".format(run.name_of(address), output[-300:]))
            elif address in due:
                late.update(dict.fromkeys(others, output.rpartition(rewritten.MARK)[2].strip()))
            else:
                del late[address]
    return "; ".join(failed)


def last_write(paths: Iterable[str]) -> float:
    return max([found.st_mtime for found in map(stat_of, paths) if found], default=time.time())


def not_taken(step: int, sizes: List[int], found: Optional[List[int]]) -> str:
    """Return the sentence on a checkpoint that another machine does not see on the drive; ``found`` is None where it did not say."""
    if found is None:
        return "whether the drive has taken checkpoint {} is not known: the other machine does not answer".format(step)
    text = "the drive has not taken checkpoint {}: another machine sees {} of its {} bytes there; is it full?"
    return text.format(step, sum(found), sum(sizes))
