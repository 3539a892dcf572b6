"""Run the processes of the training under the monitor, which reads their lines, raises alarms, and ends a run that is lost."""

import errno
import importlib
import json
import threading
import time
from collections import deque
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from agent import kill_run
from agent.formats.checkpoints.log_folder import checkpoints_of_run
from agent.formats.logs.failure_lines import LAUNCHER_LOST
from agent.formats.logs.ranks import RankReader, Speaker
from agent.machine import read_json
from agent.run import event_summary
from agent.run.context import Run
from agent.run.document import Process, RunDocument
from agent.run.records import ACTIVITY
from agent.step_time_model import expected_step
from agent.supervise import guard, health_rules, resume
from agent.supervise.checkpoint_watch import CheckpointWatch
from agent.supervise.health_rules import Failed, Verdict
from agent.supervise.idle import Idleness
from agent.supervise.node_samples import ask_all, pace_s, sampled, words_in
from agent.supervise.processes import end_all, run_all

LAST_LINES, LINE_SHOWN = 20, 1000
PASSES_S = 120
PASSING = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
"""Errors of a new process while the launcher is short of memory or processes for a moment."""
DRIVE_ANSWERS_S = 300
"""Another machine may take a minute to see the last checkpoint there, and is asked more than once."""
Noted = NamedTuple("Noted", [("at", float), ("error_s", float), ("note", Dict[str, Any])])
"""The note of a rank's end, its time by the launcher's clock, and how far that may be off."""


def train(run: Run, processes: Sequence[Process]) -> None:
    """Run the ranks under the monitor, and leave none of them behind."""
    with Monitor(run) as monitor:
        try:
            code, last = run_all(run, processes, monitor.observe)
        except Exception:  # The log could not be written, or what nobody thought of: the ranks would go on unseen.
            end_all(run)
            raise
    is_named = bool(monitor.verdict or monitor.rules.died)
    if code and not is_named:
        monitor.read_exit_notes()
    verdict = monitor.judgement(ended=True) if code else monitor.verdict or monitor.told_to_end()
    if code and run.spec.checkpoints.shared:
        verdict = monitor.drive_lost() or verdict
    # Where a rank has died, the launchers of other nodes may say that they lost its own, as torchrun's do.
    if code and not is_named and (not verdict or verdict.cause in (health_rules.RANK_DIED, LAUNCHER_LOST)):
        verdict = monitor.silent() or verdict
    if code or verdict:
        end_all(run)
    if verdict and verdict.cause == health_rules.RANK_DIED and monitor.ended_before_a_step():
        verdict = verdict._replace(sentence=verdict.sentence + resume.blame(run, verdict.lines))
    if verdict:
        raise Failed(verdict.cause, verdict.sentence, code or 1, verdict.lines)
    if code:
        who = last.name or last.role
        what = "training" if len(processes) == 1 else who + " on " + run.spec.machines.names[last.node]
        raise Failed("training", what + " ended with exit code " + str(code), code, monitor.lines())
    monitor.finish_copies()
    if run.spec.checkpoints.shared and monitor.rules.not_copied:
        raise Failed(health_rules.NOT_COPIED, monitor.rules.not_copied)


class Monitor:
    """Watches one training phase from a thread of its own."""

    def __init__(self, run: Run) -> None:
        self.run, self.reader = run, reader_of(run.spec)
        self.reader.earlier = [event for event in event_summary.read(run.folder).events if isinstance(event, dict)]
        self.last_lines, self.names = {}, set(process.name for process in run.spec.program.processes)
        self.verdict = None
        self.over, self.call = threading.Event(), threading.Event()
        self.lock = threading.Lock()
        self.raised, self.sampled_at, self.began = {}, float("-inf"), time.monotonic()
        spec = run.spec
        expected = expected_step(spec, read_json(run.path("preflight.json")))
        if expected:
            run.emit(dict(expected, event="prediction"))
        self.rules = health_rules.HealthRules(time.monotonic(), spec, expected)
        self.idleness = Idleness(spec)
        self.guard = guard.RunLimits(run)
        self.looking = threading.Thread(target=self._look_on, daemon=True)
        self.copying = threading.Thread(target=CheckpointWatch(run, self.rules, self.over).keep, daemon=True)

    def __enter__(self) -> "Monitor":
        self.looking.start()
        self.copying.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.over.set()
        self.call.set()
        self.looking.join()

    def finish_copies(self) -> None:
        """Wait until the last checkpoint is on two machines; after a bad end the way to the other one may be cut.

        Copies have limits of their own; a look at a mount whose drive is gone has none.
        """
        self.copying.join(DRIVE_ANSWERS_S if self.run.spec.checkpoints.shared else None)
        if self.copying.is_alive():
            self.rules.not_copied = (
                "the drive did not answer for {} s after the end, so whether it has the newest checkpoint is not known"
            ).format(DRIVE_ANSWERS_S)

    def observe(self, line: str) -> None:
        """Record one line of the log, and write down its events."""
        events = self.reader.read(line)
        speaker = self.reader.speaker
        if speaker not in self.names and not isinstance(speaker, int):
            speaker = None  # A program may begin each line with a word and a number of its own.
        with self.lock:
            if self.reader.shows_life(line):
                self.rules.show_life(time.monotonic(), None if speaker is None else self._node_with(speaker))
                self.idleness.hear(line, events)
            if not line.endswith("\r") and self.reader.explains(line):
                self.last_lines.setdefault(speaker, deque(maxlen=LAST_LINES)).append(line[:LINE_SHOWN])
            events = [self._explained(event) for event in events]
            if self.reader.is_another_error:
                self.rules.observe_error(speaker)
            for event in events:
                self.rules.observe(event, time.monotonic(), speaker)
            ends = self.rules.final
        if ends:
            self.call.set()
        for event in events:
            self.run.emit(event)

    def judgement(self, ended: bool = False) -> Optional[Verdict]:
        """Return the verdict once something is wrong that ends the run, or has ended the ranks, else None."""
        if self.verdict is None:
            with self.lock:
                found = self.rules.active(time.monotonic(), ended)
                cause = health_rules.ending(found)
                if cause:
                    self.verdict = Verdict(cause, found[cause], self.lines(cause))
        return self.verdict

    def ended_before_a_step(self) -> bool:
        """Whether a program went on from a checkpoint that only it can check, and gave up by itself before its first step."""
        early = self.rules.step is None and time.monotonic() - self.began < resume.LOADS_S
        return (
            early
            and "signal" not in self.rules.died
            and self.run.resumed is not None
            and not checkpoints_of_run(self.run).is_read_back
        )

    def silent(self) -> Optional[Verdict]:
        """Return the verdict when the ranks have ended and a machine does not answer any more, else None.

        A broken connection may end the ranks before the machine has been missed for long enough.
        """
        lost = " and ".join(sorted(name for name, facts in sampled(self.run) if facts is None))
        return (
            Verdict(health_rules.NODE_LOST, lost + " does not answer, and the ranks have ended", self.lines())
            if lost
            else None
        )

    def drive_lost(self) -> Optional[Verdict]:
        """Return the verdict when a machine cannot use the drive with the checkpoints, else None: ranks end over it."""
        reasons = dict((name, facts["drive"]) for name, facts in sampled(self.run) if facts and facts.get("drive"))
        return Verdict(health_rules.DRIVE_LOST, health_rules.drive_lost(reasons), self.lines()) if reasons else None

    def read_exit_notes(self) -> None:
        """Record the rank whose end its machine has noted first: mpirun does not name it when it crashes over the death itself."""
        events = [
            self._explained(dict(note, event=health_rules.RANK_DIED), name)
            for name, note in self._first_notes(told=False)
        ]
        if events:
            first = dict(events[0], text="; at about the same time ".join(event["text"] for event in events))
            self.rules.observe(first, time.monotonic())
            self.run.emit(first)

    def told_to_end(self) -> Optional[Verdict]:
        """Return the verdict when a rank that ended well was told to end, which was not us, else None.

        Some programs end with exit code 0 on TERM, done or not.
        """
        name, note = next(iter(self._first_notes(told=True)), (None, None))
        if not note:
            return None
        text = "{} on {} was told to end (signal {}), not by this run, and ended with exit code 0"
        return Verdict(health_rules.TOLD_TO_END, text.format(who_is(note), name, note["told"]), self.lines())

    def _first_notes(self, told: bool) -> List[Tuple[str, Dict[str, Any]]]:
        """Return [(machine, note)] of the rank that ended first, of those that were told to end or of the others.

        Where the clocks of two machines are not known well enough, the first rank of each is among them.
        """
        clocks, first = read_json(self.run.path("preflight.json")).get("nodes") or {}, {}
        for address, (_, out) in ask_all(self.run, ["cat", self.run.path("ranks_ended.jsonl")]):
            for note in words_in(out):
                # In one folder for all nodes each of them shows the notes of all.
                name = (
                    self._node_with(note.get("process", note.get("rank")))
                    if self.run.is_shared
                    else self.run.name_of(address)
                )
                clock = clocks.get(name) or {"clock_off_s": 0.0, "clock_error_s": float("inf")}
                at = note["t"] - clock["clock_off_s"]
                if ("told" in note) == told and (name not in first or at <= first[name].at):
                    first[name] = Noted(at, clock["clock_error_s"], note)
        surely = min([one.at + one.error_s for one in first.values()] or [0])
        ordered = sorted(first, key=lambda name: first[name].at)
        return [(name, first[name].note) for name in ordered if first[name].at - first[name].error_s <= surely]

    def _explained(self, event: Dict[str, Any], node: Optional[str] = None) -> Dict[str, Any]:
        """Add to what is said of a rank or machine where that is, in names that a person knows; ``node`` is who says it itself."""
        if event["event"] == health_rules.WAITED_FOR:
            return dict(event, text="rank {} on {}".format(event["rank"], self._node_with(event["rank"])))
        if event["event"] == "restored" and self.run.resumed is not None:
            return dict(event, step=self.run.resumed)  # The log has it from the file's name.
        if event["event"] == health_rules.RANK_DIED:
            node = node or self._node_with(event.get("process", event.get("rank")))
            how = "signal " + str(event["signal"]) if "signal" in event else "exit code " + str(event["exit_code"])
            return dict(event, node=node, text="{} on {} ended with {}".format(who_is(event), node, how))
        if event["event"] == health_rules.NODE_LOST:
            node = self.run.name_of(event["node"])
            return dict(event, node=node, text=node + " is lost to the other machines")
        return event

    def _node_with(self, speaker: Speaker) -> str:
        """Return the name of the machine that a rank or a process is on; what a log says of them need not be true."""
        addresses = dict(enumerate(self.run.spec.machines.ranks))
        addresses.update(
            (one.name, self.run.spec.machines.addresses[one.node]) for one in self.run.spec.program.processes
        )
        return self.run.name_of(addresses[speaker]) if speaker in addresses else "no machine of this run"

    def lines(self, cause: Optional[str] = None) -> List[str]:
        """Return the lines that matter: those of the rank that died where its end is explained, else the last ones of the first speaker."""
        of_dead = self.rules.died and cause in health_rules.SAID + [health_rules.RANK_DIED]
        found = self.last_lines.get(self.rules.dead if of_dead else 0) or self.last_lines.get(None)
        return list(found or next(iter(self.last_lines.values()), []))

    def _look_on(self) -> None:
        seen_at = time.monotonic()
        while not self.over.is_set():
            guarded = False
            try:
                self._look()
                guarded = self._is_guarded()
                seen_at = time.monotonic()
            except Exception as error:  # noqa: BLE001 - ranks that nobody watches cost money unseen
                self._could_not_look(error, time.monotonic() - seen_at)
            if guarded:
                self._let_end()
            if guarded or self.judgement():
                end_all(self.run)
                return
            self.call.wait(self.run.spec.limits.watch_every_s)
            self.call.clear()

    def _is_guarded(self) -> bool:
        """Whether the stack's guard has the program stopped now, which the verdict then says."""
        with self.lock:
            found = self.guard.verdict(self.idleness.idle_s(), self.rules.step is not None)
        if found:
            self.verdict = found
        return found is not None

    def _let_end(self) -> None:
        """Leave the word on every node that the run is to end, and wait for a program that looks for it, as `fab stop` does."""
        if self.run.spec.limits.stop_grace_s:
            ask_all(self.run, ["sh", "-c", kill_run.STOPPED, self.run.folder])
            self.over.wait(self.run.spec.limits.stop_grace_s)

    def _could_not_look(self, error: Exception, for_s: float) -> None:
        """End the run for what will not pass: a full disk, a mistake of ours, or no memory for a process for minutes."""
        if passes(error) and for_s < PASSES_S:
            with self.lock:
                self.rules.pause(time.monotonic())
        else:
            failed = health_rules.explained(error)
            self.verdict = Verdict(failed.cause, failed.sentence, [])

    def _look(self) -> None:
        now = time.monotonic()
        if now - self.sampled_at >= pace_s(self.run.spec, now - self.began):
            self.sampled_at = now
            self._sample()
        with self.lock:
            found = self.rules.active(time.monotonic())
        self._raise(found)

    def _raise(self, found: Dict[str, str]) -> None:
        """Write down what has begun to be wrong and what no longer is."""
        for cause in sorted(set(found) - set(self.raised)):
            self.run.emit({"event": "alarm", "cause": cause, "text": found[cause]})
        for cause in sorted(set(self.raised) - set(found)):
            self.run.emit({"event": "cleared", "cause": cause})
        self.raised = found

    def _sample(self) -> None:
        answers = sampled(self.run)
        for name, facts in answers:
            with self.lock:
                self.rules.observe_sample(name, facts, time.monotonic())
            if facts is not None:
                kept = dict((key, facts[key]) for key in ("free_bytes", "rx_bytes", "tx_bytes") if key in facts)
                used = [gpu["utilisation"] for gpu in facts["gpus"] if gpu["utilisation"] is not None]
                self.run.sample(dict(kept, event="sample", node=name, gpus=used))
        with self.lock:
            self.idleness.observe(answers, guard.boottime(), health_rules.HUNG in self.raised)
            self.idleness.see(self.rules.newest)
            known = {"idle_s": self.idleness.idle_s(), "armed": self.rules.step is not None}
        self.run.write(ACTIVITY, json.dumps(known))


def reader_of(spec: RunDocument) -> RankReader:
    """Return the reader that a run document names: a module of `agent.formats.logs`."""
    return importlib.import_module("agent.formats.logs." + spec.logs.reader).Reader(**spec.logs.options)


def who_is(event: Dict[str, Any]) -> str:
    return event.get("process") or "rank {}".format(event["rank"])


def passes(error: Exception) -> bool:
    """Return whether an error may be over soon; a thread that cannot be started is a RuntimeError."""
    return isinstance(error, (RuntimeError, MemoryError)) or (isinstance(error, OSError) and error.errno in PASSING)
