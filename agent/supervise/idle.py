"""For how long nothing has happened on each node, from its samples one after another (pure).

A sample without one of its readings freezes the count: the time around it is not counted, and what was counted stays. A gap between
samples, as of a machine that slept, begins the count anew. Of a run that hangs (the alarm HUNG of `health_rules`) GPUs and
processors do not count: a collective that never ends keeps them busy for ever.
"""

import re
from collections import deque

GAPS = 3
GPU_PERCENT = 5
PROCESSOR_SHARE, PROCESSORS = 0.1, 0.5
"""Idle is less than either: one thread that prepares data or compiles is only 6 % of 16 processors."""
NETWORK_BYTES_PER_S = 1e6 / 60
ON_THE_WIRE = 1.1
"""Bytes that pass the cards for each byte over ssh: headers, and what says that it has arrived."""
PROGRESS = ("train", "validation", "metric")
NUMBER = re.compile(r"\d+")
LINES, LINE_COMPARED = 100, 300
"""A line that only repeats one of so many others, but for its numbers, is a heartbeat."""


class Idleness:
    """The count of each node; ``wants_gpus`` is whether each has GPUs, so that none among the readings is a missing one."""

    def __init__(self, names, every_s, wants_gpus):
        self.every_s, self.wants_gpus = every_s, wants_gpus
        self.nodes = dict((name, Node()) for name in names)
        self.lines, self.values, self.saved = deque(maxlen=LINES), {}, None

    def hear(self, line, events):
        """Record a line of the log with its events: one that says something new is work on every node."""
        text = NUMBER.sub("", line[:LINE_COMPARED])
        is_new = text not in self.lines
        if is_new:
            self.lines.append(text)
        for event in events:
            kind = event["event"], event.get("name")
            if kind[0] in PROGRESS and self.values.get(kind) != event:
                self.values[kind], is_new = event, True
        if is_new:
            self._work()

    def see_checkpoint(self, newest):
        """Record the newest checkpoint, or None: another one than before is work on every node."""
        if newest != self.saved:
            self.saved = newest
            self._work()

    def _work(self):
        for node in self.nodes.values():
            node.idle_s = 0.0

    def observe(self, name, facts, now, hangs=False):
        """Record how a node answered, None where it did not; ``now`` counts the time that a machine sleeps."""
        node = self.nodes[name]
        asked_at, was_known, node.asked_at = node.asked_at, node.is_known, now
        if asked_at is not None and now - asked_at > GAPS * self.every_s:
            node.idle_s, node.before, was_known = 0.0, None, False
        node.is_known = self._is_whole(facts)
        if not node.is_known:
            return
        if node.before and happened(node.before[0], facts, now - node.before[1], hangs):
            node.idle_s = 0.0
        elif node.before and was_known:
            node.idle_s += now - asked_at
        node.before = facts, now

    def _is_whole(self, facts):
        readings = (facts or {}).get("activity")
        if not readings or None in readings.values():
            return False
        used = [gpu["utilisation"] for gpu in facts["gpus"]]
        return None not in used and (bool(used) or not self.wants_gpus)

    def idle_s(self):
        """Return for how many seconds nothing has happened on any node; None where one of them has no whole reading now."""
        nodes = self.nodes.values()
        return min(node.idle_s for node in nodes) if all(node.is_known for node in nodes) else None


class Node:
    """What is known of one node; ``before`` is its last whole sample with its time."""

    def __init__(self):
        self.idle_s, self.asked_at, self.is_known, self.before = 0.0, None, False, None


def happened(before, after, seconds, hangs):
    """Return whether anything happened on a node between two of its samples."""
    first, last = before["activity"], after["activity"]
    busy, ticks = (last["processors"][kind] - first["processors"][kind] for kind in (0, 1))
    number = last["processors"][2]
    cards = last["network"]["cards"] - first["network"]["cards"]
    ours = sum(max(0, sent - first["network"]["ssh"].get(one, 0)) for one, sent in last["network"]["ssh"].items())
    computes = any(gpu["utilisation"] >= GPU_PERCENT for gpu in after["gpus"])
    computes |= busy * number > min(PROCESSOR_SHARE * number, PROCESSORS) * ticks
    return (
        (computes and not hangs)
        or cards < 0  # Counters begin anew when a machine does.
        or cards - ON_THE_WIRE * ours >= NETWORK_BYTES_PER_S * seconds
        or last["typed"] != first["typed"]
    )
