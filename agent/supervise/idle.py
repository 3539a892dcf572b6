"""For how long nothing has happened on any node, from their samples one after another (pure).

A sample without one of its readings freezes the count: the time around it is not counted, and what was counted stays. GPUs that have
not been read for long are left out, and what is left decides. A gap between samples, as of a machine that slept, begins the count anew.
Of a run that hangs (the alarm HUNG of `health_rules`: its whole log is silent) GPUs and processors do not count: a collective that never
ends keeps them busy for ever.
"""

import re
from collections import deque
from typing import Any, Dict, Iterable, Optional, Tuple

from agent.run.document import RunDocument
from agent.supervise.health_rules import UNREAD_S

GAPS = 3
GPU_PERCENT = 5
PROCESSOR_SHARE, PROCESSORS = 0.1, 0.5
"""Idle is less than either: one thread that prepares data or compiles is only 6 % of 16 processors."""
NETWORK_BYTES_PER_S = 1e6 / 60
ON_THE_WIRE = 1.1
"""Bytes that pass the cards for each byte over ssh: headers, and what says that it has arrived."""
PROGRESS = ("train", "validation", "metric")
NUMBER = re.compile(r"\d+")
SHOWN, LINE_COMPARED = 100, 300
"""A line that only repeats one of so many others, but for its numbers, is a heartbeat."""


class Idleness:
    """The count over all nodes of a run; where each has GPUs, none among the readings is a missing one."""

    def __init__(self, spec: RunDocument) -> None:
        self.every_s, self.wants_gpus = spec.limits.sample_every_s, spec.machines.gpu is not None
        self.count_s, self.is_known, self.asked_at = 0.0, False, None
        self.before, self.gpus_read_at, self.shown = {}, {}, deque(maxlen=SHOWN)

    def hear(self, line: str, events: Iterable[Dict[str, Any]]) -> None:
        """Record a line of the log with its events."""
        self.see(NUMBER.sub("", line[:LINE_COMPARED]))
        for event in events:
            if event["event"] in PROGRESS:
                self.see(event)

    def see(self, shown: Any) -> None:
        """Record what a run shows, such as its newest checkpoint: what it has not shown lately is work."""
        if shown not in self.shown:
            self.shown.append(shown)
            self.count_s = 0.0

    def observe(self, answers: Iterable[Tuple[str, Optional[Dict[str, Any]]]], now: float, hangs: bool = False) -> None:
        """Record [(name, facts)] of every node, None where it did not answer; ``now`` counts the time that a machine sleeps."""
        since, was_known, self.asked_at = self.asked_at, self.is_known, now
        if since is not None and now - since > GAPS * self.every_s:
            self.count_s, self.before, was_known = 0.0, {}, False
        self.is_known, works = True, False
        for name, facts in answers:
            if not self._is_whole(name, facts, now):
                self.is_known = False
                continue
            if name in self.before:
                before, then = self.before[name]
                works |= happened(before, facts, now - then, hangs)
            self.before[name] = facts, now
        if works:
            self.count_s = 0.0
        elif self.is_known and was_known:
            self.count_s += now - since

    def _is_whole(self, name: str, facts: Optional[Dict[str, Any]], now: float) -> bool:
        if not facts or not facts.get("activity"):
            return False
        used = [gpu["utilisation"] for gpu in facts["gpus"]]
        are_read = None not in used and (bool(used) or not self.wants_gpus)
        self.gpus_read_at[name] = now if are_read else self.gpus_read_at.get(name, now)
        return are_read or now - self.gpus_read_at[name] > UNREAD_S

    def idle_s(self) -> Optional[float]:
        """Return for how many seconds nothing has happened on any node; None where one of them has no whole reading now."""
        return self.count_s if self.is_known else None


def happened(before: Dict[str, Any], after: Dict[str, Any], seconds: float, hangs: bool) -> bool:
    """Return whether anything happened on a node between two of its samples."""
    first, last = before["activity"], after["activity"]
    busy, ticks = (last["processors"][kind] - first["processors"][kind] for kind in (0, 1))
    number = last["processors"][2]
    cards = last["network"]["cards"] - first["network"]["cards"]
    ours = sum(max(0, sent - first["network"]["ssh"].get(one, 0)) for one, sent in last["network"]["ssh"].items())
    computes = any((gpu["utilisation"] or 0) >= GPU_PERCENT for gpu in after["gpus"])
    computes |= busy * number > min(PROCESSOR_SHARE * number, PROCESSORS) * ticks
    return (
        (computes and not hangs)
        or cards < 0  # Counters begin anew when a machine does.
        or cards - ON_THE_WIRE * ours >= NETWORK_BYTES_PER_S * seconds
        or last["typed"] != first["typed"]
    )
