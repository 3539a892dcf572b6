"""Reader of the lines that mpirun, Horovod and the system write of ranks and machines, whatever program the ranks run.

Ranks share one stream: a line of one can land in the middle of another's, NCCL, Horovod and mpirun write in between. So the tags
of mpirun go first, and then every event is looked for anywhere in the line, as often as it stands there.
"""

import math
import re
from typing import Any, Callable, Dict, Iterable, List, Match, Optional, Pattern, Tuple, Union

from agent.formats.logs.failure_lines import CHAINED, LONGEST, RAISED, cause_in

TAG = re.compile(r"\[(?:[^\s\[\]]+@)?\d+,(\d+)\]<std(?:out|err|diag)>:")
NAME = re.compile(r"\[([a-z]+ \d+)\] ")
"""In front of a line of a process that has a name; see `agent.supervise.processes.tag_of`."""
COUNT = r"(\d{1,18})"
NUMBER = r"([-+]?(?:[nN]a[nN]|inf|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?))"
DRAWING = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])|\x08")
"""Control sequences for a terminal: colors, moves of the cursor, backspaces."""
NO_LIST = -1
MISSING = re.compile(r"(?:Missing|Stalled) ranks:\s*$")
MISSING_RANK = re.compile(r"\s*" + COUNT + r"!?: \[.*\]\s*$")
"""Below the heading of Horovod 0.16.4 and later, which 0.20 renamed, one line for each rank that the others wait for."""

WAITING = re.compile(
    r"One or more (?:tensors were submitted|rank \(marked by)|Stalled (?:ops|ranks):|[Mm]issing ranks|\[ready ranks: [\d, ]+\]|"
    + MISSING_RANK.pattern
)
"""Lines that Horovod repeats every minute while a run stands still."""
Event = Dict[str, Any]
Events = List[Event]
Number = Union[float, str]
"""A word stands for nan and the infinities, which JSON cannot hold."""
Speaker = Union[int, str, None]
"""A rank, the name of a process, or nobody that is known."""
Take = Callable[[Any, Match[str]], Events]
"""A function that makes events of a match; the reader is its first argument."""
Table = List[Tuple[Pattern[str], Take]]


class RankReader:
    """Turns lines into events; it remembers what stands on an earlier line: a rank that failed, a heading of Horovod."""

    def __init__(self) -> None:
        self.step = self.failed_rank = self.killed_rank = self.speaker = None
        self.waited_for, self.list_of = set(), NO_LIST
        self.is_another_error = self.is_chained = False
        self.earlier = []

    def read(self, line: str) -> Events:
        """Return the events of one line in their order, most often none; an event is a dict with the key "event".

        A line that ends with a carriage return will be drawn again.
        """
        text = DRAWING.sub("", TAG.sub("", line))
        self.speaker = speaker_of(line)
        if self.list_of == self.speaker:
            missing = MISSING_RANK.match(text)
            if missing:
                return self._waits_for([int(missing.group(1))])
            self.list_of = NO_LIST
        if MISSING.search(text):
            self.list_of = self.speaker
        sign, raised = cause_in(text), RAISED.match(text, 0, LONGEST)
        self.is_another_error = bool(raised and not sign and not self.is_chained)
        self.is_chained = bool(CHAINED.match(text)) or (self.is_chained and not raised)
        return self.events_in(text) + ([{"event": sign.cause, "named": sign.named}] if sign else [])

    def events_in(self, text: str) -> Events:
        """Return the events of a line without its tags."""
        return self.matches(text, PATTERNS)

    def matches(self, text: str, table: Table) -> Events:
        """Return the events of all (pattern, what makes events of a match), in the order of the text."""
        found = [(match.start(), take, match) for pattern, take in table for match in pattern.finditer(text)]
        return [event for _, take, match in sorted(found, key=lambda one: one[0]) for event in take(self, match)]

    def explains(self, line: str) -> bool:
        """Return whether a line can show why a run failed; a blank one cannot."""
        return bool(TAG.sub("", line).strip())

    def shows_life(self, line: str) -> bool:
        """Return whether a line shows that the run goes on."""
        text = TAG.sub("", line)
        return bool(text.strip()) and not WAITING.search(text)

    def trained(self, step: int, loss: Optional[Number] = None) -> Event:
        """Return the event of a training step."""
        self.step, self.waited_for = step, set()
        return {"event": "train", "step": step} if loss is None else {"event": "train", "step": step, "loss": loss}

    def failed(self, match: Match[str]) -> Events:
        self.failed_rank = int(match.group(1))
        return []

    def dying(self, match: Match[str]) -> Events:
        self.killed_rank = {"rank": int(match.group(1)), "node": match.group(2)}
        return []

    def killed(self, match: Match[str]) -> Events:
        who, self.killed_rank = self.killed_rank, None
        return [] if who is None else [dict(who, event="rank-died", signal=int(match.group(1)))]

    def failed_code(self, match: Match[str]) -> Events:
        rank, self.failed_rank = self.failed_rank, None
        return [] if rank is None else [{"event": "rank-died", "rank": rank, "exit_code": int(match.group(1))}]

    def missing(self, match: Match[str]) -> Events:
        return self._waits_for([int(rank) for rank in match.group(1).split(",")])

    def _waits_for(self, ranks: List[int]) -> Events:
        """Return an event for each rank that is not waited for already: Horovod repeats itself every minute for every tensor."""
        new = [rank for rank in ranks if rank not in self.waited_for]
        self.waited_for.update(new)
        return [{"event": "waited-for", "rank": rank} for rank in new]


def speaker_of(line: str) -> Speaker:
    """Return the rank that wrote a line which ``mpirun --tag-output`` has passed on, or else the name of the process, or None."""
    tag = TAG.match(line)
    if tag:
        return int(tag.group(1))
    name = NAME.match(line)
    return name.group(1) if name else None


def number(text: Number) -> Number:
    """Return a float, or the word for nan and the infinities, which JSON cannot hold."""
    value = float(text)
    return value if math.isfinite(value) else str(value)


def metric(name: str, step: Optional[int], value: Number) -> Event:
    return {"event": "metric", "name": name, "step": step, "value": value}


def event_alone(event: str) -> Take:
    return lambda reader, match: [{"event": event}]


def event_with(event: str, key: str = "value", kind: Callable[[str], Any] = number) -> Take:
    return lambda reader, match: [{"event": event, key: kind(match.group(1))}]


def patterns(rows: Iterable[Tuple[str, Take]]) -> Table:
    """Return [(pattern, what makes events of a match)], in which the words COUNT and NUMBER stand for a group with one."""
    return [(re.compile(text.replace("COUNT", COUNT).replace("NUMBER", NUMBER)), take) for text, take in rows]


PATTERNS = patterns(
    [
        # Rank and exit code stand on two lines. Since Open MPI 5 rank and signal do too, and a process is [NAME@JOB,RANK].
        (r"process rank COUNT with PID \d+ on node (\S+) exited on\b", RankReader.dying),
        (r"(?:^|exited on )signal COUNT\b", RankReader.killed),
        (r"Process name: \[(?:\[\d+|[^\s\[\]]+@)[\d,\]]*,COUNT\]", RankReader.failed),
        (r"MPI_ABORT was invoked on rank COUNT", RankReader.failed),
        (r"(?:Exit code: +|Errorcode: +|with errorcode )(-?\d{1,18})", RankReader.failed_code),
        (r"Remote daemon: \[\S+\] on node (\S+)", event_with("node-lost", "node", str)),
        # Weights & Biases, where it is online; since 0.16 with the run's name.
        (r"View run (?:.{1,128} )?at:? (https://[!-~]{1,300})", event_with("wandb", "text", str)),
        # Horovod up to 0.16.3, of ranks that keep the others waiting.
        (r"\[missing ranks: (\d{1,18}(?:, ?\d{1,18})*)\]", RankReader.missing),
    ]
)
