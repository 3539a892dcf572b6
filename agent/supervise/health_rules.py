"""Decide from a run's events and samples whether something is wrong with it (pure).

What cannot get better ends the run, because its machines cost money: a loss that stays no number, a rank or a machine that is
gone, no sign of life. What may be on purpose or may pass only raises an alarm: slow steps, GPUs at rest, a disk that fills up.
Every line of the log is a sign of life, also of the machine whose rank has printed it.
"""

import errno
import os
import signal
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from agent.formats.logs.failure_lines import (
    DISK_FULL,
    HOST_UNKNOWN,
    LAUNCHER_LOST,
    PORT_TAKEN,
    SENTENCES,
    cause_in,
    sentence,
)
from agent.formats.logs.ranks import Speaker
from agent.run.document import RunDocument

NOT_FINITE, RANK_DIED, NODE_LOST, STALLED = "nan", "rank-died", "node-lost", "stalled"
DRIVE_LOST, TOLD_TO_END = "drive-lost", "told-to-end"
PREPARING_STALLED, SETUP = "preparing-stalled", "setup"
DISK_LOW, GPUS_AT_REST, SLOW, NOT_COPIED = "disk-low", "gpus-at-rest", "slow", "not-copied"
HUNG, GPUS_UNREAD, NOT_SAVED = "hung", "gpus-unread", "not-saved"
WAITED_FOR = "waited-for"
"""A rank that keeps the others waiting; no cause by itself, but it names the culprit of a stall."""
SAID = [cause for cause in SENTENCES if cause != LAUNCHER_LOST]
"""Causes that a line of a rank names; where a machine or a rank is lost, its launcher's process is too."""
ENDING = [NOT_FINITE] + SAID + [NODE_LOST, DRIVE_LOST, RANK_DIED, LAUNCHER_LOST, STALLED]
"""Causes that end a run; one explains those behind it."""

STALL_GAPS = 5.0
"""A run has stalled when nothing showed life for its limit or for five times the longest of the last gaps between steps."""
LAST_GAPS = 20
NAN_STEPS, NAN_S = 3, 60.0  # In mixed precision the loss of one step may be no number; a step may also be an epoch.
START_S = 1800.0
"""Until the first loss a graph is built, data are read and a whole evaluation is made."""
PROGRESS = ("started", "restored", "train", "validation", "metric")
LOST_S = 90.0
"""A machine whose processors are all busy answers late, and its ranks go on; one that is lost lets nobody go on."""
DRIVE_LOST_S = 60.0
"""A program may wait so long for a busy drive; checkpoints that nobody keeps are worth nothing."""
HUNG_S, HUNG_GAPS, HUNG_LONGEST = 300.0, 3.0, 1.5
"""A log that is silent for so long, so many usual gaps between steps and so many longest ones, while all GPUs work, is that of a collective
that never ends; without their work the run stalls. No program has to say that it evaluates, which it does again and again."""
REST_S = UNREAD_S = 600.0
REST_PERCENT = 5
EVALUATED_S, UNSAVED_S = 600.0, 3600.0
"""Time after the first evaluation, and after the first step, in which a program that saves has saved; most save at an evaluation."""
BY_PATTERN = ("file_formats", "rewritten")
"""Formats of checkpoints that a person has named by a pattern."""
SLOW_FACTOR = 1.3
CULPRITS = 4
"""Most ranks that a stall names; where more are waited for, it is none of them alone."""
CLEAN_STEPS = 5
"""Pace lines for the run's own usual pace, and for the newest one: a median of fewer follows any hiccup."""
PREDICTED_LINES = 3
"""Pace lines compared with a prediction; each of a large model is the mean of a hundred steps."""
OVERDUE = 2.0
"""A line that has not come after so many times the predicted gap is slow, whatever it will say."""
LOW_DISK_CHECKPOINTS = 3
LOW_DISK_BYTES = 1 << 30
FULL_DISK_BYTES = 64 << 20
SAID_EXPLAINS_S = 120.0
"""A rank fails soon after the line that names its cause; a program may print or catch the same words."""
CAUGHT = (PORT_TAKEN, HOST_UNKNOWN)
"""Causes that programs catch and retry: only the last words of the rank that died count."""
FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM)
"""Signals that no error of a program sends to its own rank."""
Verdict = NamedTuple("Verdict", [("cause", str), ("sentence", str), ("lines", List[str])])
"""Why a run ends badly: a cause in a word, a sentence, and the lines of the log that matter."""
Said = NamedTuple("Said", [("at", float), ("text", str), ("speaker", Speaker)])
"""A cause that a line has named: when, in which words, and who wrote the line."""
Reading = NamedTuple("Reading", [("at", float), ("gpus", int), ("why", str)])
"""The last whole reading of a node's GPUs, how many they were, and why there was none since."""
Silence = NamedTuple("Silence", [("since", float), ("why", str)])
"""Since when a drive does not answer a node, and in which words."""


class HealthRules:
    """Observations of one training phase, and the rules that judge them."""

    def __init__(self, now: float, spec: RunDocument, expected: Optional[Dict[str, Any]] = None) -> None:
        """Begin to watch a run by its document; ``expected`` is {seconds, source} of a step or None."""
        self.stall_s, self.mixed, self.expected = spec.limits.stall_s, spec.logs.mixed, expected
        self.per_hour, self.max_steps, self.print_steps = (
            spec.expected.per_hour,
            spec.expected.max_steps,
            spec.expected.print_steps,
        )
        self.checkpoint_bytes, self.newest = 0, None
        self.progressed, self.lived, self.gaps, self.longest = now, now, [], 0.0
        self.paces, self.clean, self.evaluating = [], False, False
        self.step = None
        self.waited_for = []
        self.final, self.not_finite = {}, {}
        self.said, self.died, self.died_at = {}, {}, now
        self.answered, self.heard, self.worked, self.free, self.read = {}, {}, {}, {}, {}
        self.drive_silent = {}
        self.not_copied, self.saves, self.first = "", spec.checkpoints.format in BY_PATTERN, {}

    def observe(self, event: Dict[str, Any], now: float, speaker: Speaker = None) -> None:
        """Record one event of the log; ``speaker`` is the rank or process of its line, where that is known."""
        kind = event["event"]
        self.first.setdefault(kind, now)
        if kind in PROGRESS:
            if self.step is not None:  # Start-up takes longer than anything that follows.
                self.gaps = (self.gaps + [now - self.progressed])[-LAST_GAPS:]
                self.longest = max(self.longest, now - self.progressed)
            self.progressed = self.lived = now
        if kind in SENTENCES:
            self.said[kind] = Said(now, sentence(kind, event["named"]), speaker)
        if kind == RANK_DIED:
            self.died, self.died_at = event, now
        if kind == WAITED_FOR:
            self.waited_for.append(event["text"])
        if kind in ("started", "restored", "validation"):
            self.clean = False  # The next pace line counts start-up or the evaluation in.
        if kind in ("evaluation", "train"):
            self.evaluating = kind == "evaluation"
        if kind == "time":
            if self.clean or event.get("training_only"):
                self.paces.append(event["seconds_per_step"])
            self.clean = True
        if kind == "train":
            self.step, self.waited_for = event["step"], []
            # What says so is a launcher that the program has started itself: ours ends with its first rank.
            self.died = {}
        if kind in ("train", "validation") and "loss" in event:
            self._observe_loss(event, now)
        if kind == NODE_LOST:
            self.final[kind] = event["text"]

    def _observe_loss(self, event: Dict[str, Any], now: float) -> None:
        is_number = not isinstance(event["loss"], str)
        self.not_finite = {} if is_number else dict([(event.get("step"), now)] + list(self.not_finite.items()))
        if len(self.not_finite) == NAN_STEPS or now - min(self.not_finite.values() or [now]) >= NAN_S:
            self.final[NOT_FINITE] = "the {} loss stays {}, at step {}".format(event["event"], event["loss"], self.step)

    def observe_error(self, speaker: Speaker) -> None:
        """Record that an error of another cause was raised: what was caught before it is not the reason of the end."""
        for cause in CAUGHT:
            if cause in self.said and self.said[cause].speaker == speaker:
                del self.said[cause]

    @property
    def dead(self) -> Speaker:
        """The rank, or the name of the process, whose death is known; None where none is."""
        return self.died.get("process", self.died.get("rank"))

    def show_life(self, now: float, node: Optional[str] = None) -> None:
        """Record output, of a rank on ``node`` where that is known: not every program says its steps, or says them often."""
        self.lived = self.heard[node] = now

    def see_checkpoint(self, newest: Tuple[int, str], size: int, now: float) -> None:
        """Record a new checkpoint, and its size in bytes."""
        self.newest, self.checkpoint_bytes = newest, size
        self.lived = now

    def observe_sample(self, node: str, facts: Optional[Dict[str, Any]], now: float) -> None:
        """Record how a node answered; ``facts`` is None when it did not."""
        self.answered.setdefault(node, now)
        if facts is None:
            return
        self.answered[node] = now
        self.free[node] = facts["free_bytes"]
        if facts.get("drive"):
            before = self.drive_silent.get(node)
            self.drive_silent[node] = Silence(before.since if before else now, facts["drive"])
        else:
            self.drive_silent.pop(node, None)
        used = [gpu.get("utilisation") for gpu in facts["gpus"]]
        self.worked[node] = dict(
            (number, now if percent > REST_PERCENT else self.worked.get(node, {}).get(number, now))
            for number, percent in enumerate(used)
            if percent is not None
        )
        before = self.read.get(node, Reading(now, 1, ""))
        if None not in used and len(used) >= before.gpus:
            self.read[node] = Reading(now, len(used), "")
        elif node in self.read:
            said = (str(facts[key]) for key in ("gpu_words", "gpu_code") if facts.get(key))
            self.read[node] = before._replace(why=", exit code ".join(said) or "without a reason")

    def pause(self, now: float) -> None:
        """Record that no node could be asked, which shows nothing about the nodes."""
        self.answered = dict((node, now) for node in self.answered)

    def active(self, now: float, ended: bool = False) -> Dict[str, str]:
        """Return {cause: sentence} of everything that is wrong at this moment; ``ended`` asks what explains that the ranks have ended."""
        rules = {
            DISK_FULL: self._full(),
            RANK_DIED: self.died.get("text") if ended else self._dead(now),
            NODE_LOST: self._lost(now),
            DRIVE_LOST: self._cut_off(now),
            STALLED: self._stalled(now),
            GPUS_AT_REST: self._resting(now),
            GPUS_UNREAD: self._unread(now),
            HUNG: self._hung(now),
            DISK_LOW: self._low(),
            SLOW: self._slow() or self._overdue(now - self.progressed),
            NOT_COPIED: self.not_copied,
            NOT_SAVED: self._unsaved(now),
        }
        found = self._said(now) if ended else {}
        found.update((cause, text) for cause, text in rules.items() if text)
        return dict(found, **self.final)

    def _said(self, now: float) -> Dict[str, str]:
        """Return {cause: sentence} of the lines that explain an end now."""
        killed = self.died.get("signal") in FROM_OUTSIDE
        return dict(
            (cause, text)
            for cause, (at, text, speaker) in self.said.items()
            if now - at < SAID_EXPLAINS_S
            and (cause == LAUNCHER_LOST or not killed)
            and (cause not in CAUGHT or not self.died or speaker in (None, self.dead))
        )

    def _lost(self, now: float) -> str:
        # A line of nobody that is known may be one of its own: torchrun's ranks have no names.
        lost = sorted(
            node
            for node, at in self.answered.items()
            if now - max(at, self.progressed, self.heard.get(None, at), self.heard.get(node, at)) > LOST_S
        )
        return " and ".join(lost) + " has not answered for " + _seconds(LOST_S) if lost else ""

    def _cut_off(self, now: float) -> str:
        reasons = dict((node, why) for node, (since, why) in self.drive_silent.items() if now - since >= DRIVE_LOST_S)
        return drive_lost(reasons) + ", for " + _seconds(DRIVE_LOST_S) + " and more" if reasons else ""

    def _resting(self, now: float) -> str:
        resting = sorted(
            node for node, (at, _, _) in self.read.items() if at - max(self.worked[node].values() or [at]) > REST_S
        )
        return "the GPUs of " + " and ".join(resting) + " did nothing for " + _seconds(REST_S) if resting else ""

    def _unread(self, now: float) -> str:
        unread = sorted("{} ({})".format(node, why) for node, (at, _, why) in self.read.items() if now - at > UNREAD_S)
        return (
            "for {} nothing says how busy the GPUs are of {}".format(_seconds(UNREAD_S), " and ".join(unread))
            if unread
            else ""
        )

    def _unsaved(self, now: float) -> str:
        """Return the sentence on a program of which no checkpoint was seen yet: what names them may match nothing that it writes."""
        limits = (("validation", EVALUATED_S, "evaluation"), ("train", UNSAVED_S, "step"))
        late = [(self.first[kind], what) for kind, limit_s, what in limits if now - self.first.get(kind, now) > limit_s]
        if not (self.saves and late) or self.newest:
            return ""
        text = "no checkpoint was seen in {} since the first {}; a run that ends now starts over. If the program has saved, see job.checkpoints"
        since, what = late[0]
        return text.format(_seconds(now - since), what)

    def _all_worked(self) -> float:
        """Return since when not all GPUs have been seen at work: those of ranks that wait for a stopped one work on for ever.

        In mixed precision all of them do when every update is skipped.
        """
        times = [at for cards in self.worked.values() for at in cards.values()]
        return min(times) if times and not self.mixed else float("-inf")

    def _stalled(self, now: float) -> str:
        silent = now - max(self.lived, self._all_worked())
        limit = max(self.stall_s, START_S if self.step is None else 0, STALL_GAPS * max([self._gap()] + self.gaps))
        if silent <= limit:
            return ""
        where = "since the start" if self.step is None else "since step " + str(self.step)
        text = "no sign of life for " + _seconds(silent) + ", " + where
        if self.waited_for:
            more = len(self.waited_for) - CULPRITS
            named = " and ".join(self.waited_for[:CULPRITS]) + (" and {} more".format(more) if more > 0 else "")
            return text + "; the other ranks wait for " + named
        if self.mixed:
            text += "; in mixed precision every update can be skipped for ever once the loss has diverged"
        return text

    def _dead(self, now: float) -> str:
        """Return the sentence on a rank that died, where the launcher that says so neither ends nor goes on."""
        silent = now - max(self.died_at, self.lived)
        return self.died["text"] if self.died and silent > max(LOST_S, HUNG_LONGEST * self.longest) else ""

    def _full(self) -> str:
        """Return the sentence on a disk of which a rank has said that it is full, where a node's disk is."""
        needed = max(FULL_DISK_BYTES, self.checkpoint_bytes)
        full = sorted(node for node, free in self.free.items() if free < needed)
        where = ", ".join(node + " has " + str(self.free[node] >> 20) + " MB" for node in full)
        return sentence(DISK_FULL, where) if where and DISK_FULL in self.said else ""

    def _hung(self, now: float) -> str:
        silent, computes = now - self.lived, now - self._all_worked() < HUNG_S
        limit = max(HUNG_S, HUNG_GAPS * median(self.gaps or [0]), HUNG_LONGEST * self.longest)
        # Without a gap nobody knows how often it prints: it may do so once an epoch.
        if not self.gaps or self.evaluating or silent <= limit or not computes:
            return ""
        return "all its GPUs work, and it has printed nothing for {}, since step {}".format(_seconds(silent), self.step)

    def _low(self) -> str:
        needed = max(LOW_DISK_BYTES, LOW_DISK_CHECKPOINTS * self.checkpoint_bytes)
        low = sorted(node for node, free in self.free.items() if free < needed)
        left = ", ".join("{} {} MB".format(node, self.free[node] >> 20) for node in low)
        return "the data disk is nearly full: {} left, {} MB wanted".format(left, needed >> 20) if low else ""

    def _gap(self) -> float:
        """Return the seconds between two lines of the log as predicted, or 0."""
        return self.print_steps * self.expected["seconds"] if self.expected else 0

    def _overdue(self, silent: float) -> str:
        """Compare the time since the last line with the prediction: at a tenth of the speed the next one takes an hour."""
        if self.step is None or self.evaluating or not self._gap() or silent <= OVERDUE * self._gap():
            return ""
        now, before = silent / self.print_steps, self.expected["seconds"]
        text = "more than {:.3f} s per step since step {} instead of {:.3f} predicted {}".format(
            now, self.step, before, self.expected["source"]
        )
        return text + self._price_of(now, before)

    def _slow(self) -> str:
        """Compare the last steps with the prediction and with this run's own first ones."""
        usual = []
        if self.expected and len(self.paces) >= PREDICTED_LINES:
            usual.append((PREDICTED_LINES, self.expected["seconds"], "predicted " + self.expected["source"]))
        if len(self.paces) >= 2 * CLEAN_STEPS:
            usual.append((CLEAN_STEPS, median(self.paces[:CLEAN_STEPS]), "measured at the beginning"))
        for lines, before, source in usual:
            now = median(self.paces[-lines:])
            if now > SLOW_FACTOR * before:
                text = "{:.3f} s per step instead of {:.3f} {}".format(now, before, source)
                return text + self._price_of(now, before)
        return ""

    def _price_of(self, now: float, before: float) -> str:
        """Say what slow steps cost: the part of every hour's price that buys none, and all that is left to do."""
        text = ""
        if self.per_hour:
            wasted = self.per_hour * (1 - before / now)
            text += ": ${:.2f} of every hour's ${:.2f} buy no steps".format(wasted, self.per_hour)
        left_s = ((self.max_steps or 0) - (self.step or 0)) * (now - before)
        if left_s >= 1:
            text += "; what is left takes " + _seconds(left_s) + " longer"
            if self.per_hour:
                text += " and ${:.2f} more".format(left_s / 3600 * self.per_hour)
        return text


def ending(found: Mapping[str, str]) -> Optional[str]:
    """Return the cause that ends the run, the one that explains most first, or None."""
    return next((cause for cause in ENDING if cause in found), None)


def drive_lost(reasons: Dict[str, str]) -> str:
    """Return the sentence on nodes that cannot use the drive; ``reasons`` is {node: why}."""
    why = sorted(set(reasons.values()))
    return (
        "the drive with the checkpoints does not answer " + " and ".join(sorted(reasons)) + " (" + "; ".join(why) + ")"
    )


def step_failed(usual: str, what: str, code: int, lines: List[str]) -> "Failed":
    """Return the failure of a step before the training, by the cause that a line names; its last line is the reason."""
    text = "{} ended with exit code {}{}".format(what, code, ": " + lines[-1] if lines else "")
    return Failed(cause_of(lines, usual), text, code, lines[-20:])


def cause_of(lines: List[str], usual: str) -> str:
    """Return the cause that the last of the lines names that name one, else the usual one."""
    return next((found.cause for found in map(cause_in, reversed(lines)) if found), usual)


def median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]


def _seconds(seconds: float) -> str:
    return str(int(seconds)) + " s" if seconds < 120 else str(int(seconds / 60)) + " minutes"


class Failed(Exception):
    """A phase ended badly: the cause in a word, a sentence, the exit code and the lines that matter."""

    def __init__(self, cause: str, sentence: str, code: int = 1, lines: Sequence[str] = ()) -> None:
        Exception.__init__(self, cause, sentence, code, list(lines))
        self.cause, self.sentence, self.code, self.lines = cause, sentence, code, list(lines)


class Stopped(BaseException):
    """Somebody asked the run to stop, and ends its processes on every machine himself; no handler of failures may hold it up."""


def explained(error: BaseException) -> "Failed":
    """Return what a run ended with as a failure; an error of our own is one too, and a disk that takes no more has its own cause."""
    if isinstance(error, Failed):
        return error
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        cause = cause_of([os.strerror(error.errno) + ": " + str(error.filename)], DISK_FULL)
        return Failed(cause, "the launcher could not write: " + str(error))
    return Failed("supervisor-failed", "the supervisor failed: " + repr(error))
