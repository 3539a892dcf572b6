"""Send the data set to every other node, in one chain; runs in the launcher's container.

Arguments: the folder of the data, the words of the way to another machine as JSON, the machines. Those that have every file with its
hash get nothing. What broke in the chain goes by itself afterwards, from here.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from typing import List, Sequence, Tuple

from agent.data.receive_tree import below
from agent.kill_run import last_line
from agent.machine import parallel
from agent.nodes import chain_copy

LIST = "SHA256SUMS"
SSH_FAILED = 255
TRIES, PAUSE_S = 3, 5


class Spread:
    """One data set that has to be on all machines."""

    def __init__(self, folder: str, way: List[str]) -> None:
        self.folder, self.way = folder, way
        self.silent = {}
        self.check = "cd {} && sha256sum -c --status -".format(shlex.quote(folder))
        with open(os.path.join(folder, LIST), "rb") as file:
            self.sums = file.read()

    def names(self) -> List[str]:
        # Not splitlines: it also splits at characters that may stand in a name.
        return [LIST] + [line.split(None, 1)[1].lstrip("*") for line in self.sums.decode("utf-8").split("\n")[:-1]]

    def lacking(self, machines: Sequence[str]) -> List[str]:
        """Return those that do not have every file as the list says."""
        codes = parallel(self._verified, machines)
        return [machine for machine, code in zip(machines, codes) if code]

    def _verified(self, machine: str) -> int:
        """Return 0 when a machine has every file; where it cannot be asked, its last word on that is kept."""
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        for number in range(TRIES):
            time.sleep(PAUSE_S if number else 0)
            child = subprocess.Popen(self.way + [machine, self.check], **options)
            out, _ = child.communicate(self.sums)
            if child.returncode != SSH_FAILED:
                self.silent.pop(machine, None)
                break
            self.silent[machine] = last_line(SSH_FAILED, out.decode("utf-8", "replace"))
        return child.returncode

    def chain(self, machines: Sequence[str]) -> List[List[str]]:
        """Send everything over the machines, one behind the other; return what broke, as :func:`relay.end` does."""
        listed = tempfile.TemporaryFile()  # noqa: SIM115 - tar reads it as long as it runs
        listed.write("\0".join(self.names()).encode("utf-8", "surrogateescape"))
        listed.seek(0)
        argv = ["tar", "-C", self.folder, "--null", "-T", "-", "-cf", "-"]
        files = subprocess.Popen(argv, stdin=listed, stdout=subprocess.PIPE)
        take_in = 'mkdir -p "$1" && exec tar -C "$1" -xf -'
        first = chain_copy.start(["sh", "-c", take_in, "take-in", self.folder], self.way, machines)
        chain_copy.pour(files.stdout.fileno(), [first])
        files.stdout.close()
        files.wait()
        return chain_copy.end(first, machines[0])

    def bring(self, machines: Sequence[str]) -> List[Tuple[str, str]]:
        """Let all machines have the data, and tell what had to be done; return [(machine, why)] of those that do not have them."""
        lacking, began = self.lacking(machines), time.monotonic()
        if not lacking:
            return []
        broken = self.chain(lacking)
        for machine, output in broken:
            say("the way to {} broke: {}".format(machine, output))
        rest = self.lacking(lacking)
        named = dict(broken)
        for group in [[one for one in rest if one not in named]] + [[one] for one in rest if one in named]:
            if group:
                named.update(self.chain(group))
        rest = self.lacking(rest)
        size = sum(os.lstat(below(os.fsencode(self.folder), name)).st_size for name in self.names())
        got = " and ".join(one for one in lacking if one not in rest)
        say("brought {} bytes to {} in {:.1f} s".format(size, got, time.monotonic() - began))
        named = dict(named, **self.silent)
        return [(machine, named.get(machine, "its bytes are others than those that were sent")) for machine in rest]


def say(text: str) -> None:
    print(text)
    sys.stdout.flush()


def main(folder: str, way: str, *machines: str) -> None:
    rest = Spread(folder, json.loads(way)).bring(machines)
    if rest:
        sys.exit("the data did not arrive whole on " + " and ".join("{} ({})".format(*one) for one in rest))
