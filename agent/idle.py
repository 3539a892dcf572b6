"""End a step of the preparation in which nothing moves any more, as on a disk that hangs.

Moving is what the run's processes on this machine read, write and compute. So no step has a limit for the whole of it: 10 GB may
take their time. A connection that only keeps itself alive moves too little to count.
"""

import contextlib
import threading
import time

from agent import health_rules, kill_run
from agent.parallel import parallel

IDLE_S = 900
"""Longer than the download of an archive goes on trying without one more byte."""
LOOK_EVERY_S = 15
MOVED_BYTES, MOVED_TICKS = 1 << 20, 100
"""What counts as moving: a megabyte, or a second of a processor."""
PROBE_TIMEOUT_S = 30
PROBE = 'mkdir -p "$0" && dd if=/dev/zero of="$0/probe" bs=512 count=1 conv=fsync 2>/dev/null && rm "$0/probe"'


class IdleWatch:
    """Watches the preparation from a thread of its own; ``begin`` and ``leave`` stand around it."""

    def __init__(self, run):
        self.run, self.over = run, threading.Event()

    def begin(self):
        threading.Thread(target=self._look_on, daemon=True).start()

    def leave(self):
        self.over.set()

    def verdict(self):
        """Return (cause, sentence) when the step that the run is in has been ended, else None."""
        if self.run.stuck != self.run.doing:
            return None
        text = "{}: nothing was read, written or computed for {} s".format(self.run.doing, IDLE_S)
        hanging = [self.run.name_of(address) for address in self.run.spec.addresses if address in self._hanging()]
        return health_rules.PREPARING_STALLED, text + ("; no write ends on " + " and ".join(hanging) if hanging else "")

    def _hanging(self):
        """Return the machines on whose disk a few bytes cannot be written."""
        addresses, probe = self.run.spec.addresses, ["sh", "-c", PROBE, self.run.folder]
        codes = parallel(lambda address: self.run.ask(probe, PROBE_TIMEOUT_S, address, marked=False)[0], addresses)
        return [address for address, code in zip(addresses, codes) if code]

    def _look_on(self):
        moved, before, moved_at = (0, 0), {}, time.monotonic()
        while not self.over.wait(LOOK_EVERY_S):
            now = usage(self.run.spec.run)
            moved = tuple(total + more for total, more in zip(moved, growth(before, now)))
            before = now
            if moved[0] >= MOVED_BYTES or moved[1] >= MOVED_TICKS:
                moved, moved_at = (0, 0), time.monotonic()
            if time.monotonic() - moved_at >= IDLE_S:
                self.run.stuck = self.run.doing
                kill_run.end("only", self.run.spec.run)
                moved_at = time.monotonic()


def usage(run):
    """Return {process: (bytes read and written, ticks of a processor)} of the run's processes on this machine."""
    found = {}
    for process in kill_run.find("only", run):
        with contextlib.suppress(OSError):  # It has ended meanwhile.
            found[process] = bytes_of(process[0]), ticks_of(process[0])
    return found


def bytes_of(pid):
    """Return what a process has read and written; nothing where the kernel does not count it, whose processor time has to do."""
    try:
        with open("/proc/{}/io".format(pid)) as file:
            numbers = dict(line.split(": ") for line in file.read().splitlines())
    except OSError:
        return 0
    return int(numbers["rchar"]) + int(numbers["wchar"])


def ticks_of(pid):
    with open("/proc/{}/stat".format(pid), "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    return int(fields[11]) + int(fields[12])


def growth(before, now):
    """Return by how much bytes and ticks have grown, all processes together; those that have ended count no more."""
    pairs = [(now[process], before.get(process, (0, 0))) for process in now]
    return tuple(sum(after[kind] - earlier[kind] for after, earlier in pairs) for kind in (0, 1))
