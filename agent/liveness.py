"""Show that the supervisor lives, by a clock in the run's folder.

It is the machine's monotonic clock, which no change of the time of day moves and which all processes of the machine share.
"""

import contextlib
import os
import threading
import time

EVERY_S = 5


class Liveness:
    """Writes the clock into one small file, always in the same place: a full disk still takes it, a disk that hangs does not."""

    def __init__(self, path):
        self.path, self.file = path, None
        self.over = threading.Event()

    def begin(self):
        self.file = open(self.path, "wb", 0)  # noqa: SIM115 - as long as the run
        self._mark()
        threading.Thread(target=self._go_on, daemon=True).start()

    def stop(self):
        self.over.set()

    def _go_on(self):
        while not self.over.wait(EVERY_S):
            with contextlib.suppress(OSError):  # A sign that is missing is what those who look shall see.
                self._mark()

    def _mark(self):
        os.pwrite(self.file.fileno(), "{:020.3f}\n".format(time.monotonic()).encode(), 0)
        os.fdatasync(self.file.fileno())
