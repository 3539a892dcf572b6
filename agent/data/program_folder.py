"""Folder of the user's own program: copied into a run's folder from where it was sent, and brought to the other nodes in one chain.

Arguments: ``place``, the folder that was sent, and the program's; or ``spread``, the run's folder, the program's, the words of the way to another
machine as JSON, the machines; or ``has`` and the program's folder, with the facts of its files as JSON on standard input. What a program has written
beside its files stays everywhere.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from typing import List, Optional, Union

from agent import program
from agent.data.distribute_data import Spread
from agent.data.receive_tree import PLACED_AT, below, names_below
from agent.machine import parallel


def facts(path: bytes) -> Optional[Union[str, List[int]]]:
    """Return what a file or link of a tree has to be: its target, or its size, mode and time; None where there is none."""
    try:
        if os.path.islink(path):
            return os.readlink(path).decode("utf-8", "surrogateescape")
        known = os.stat(path)
    except OSError:
        return None
    return [known.st_size, known.st_mode & 0o100, int(known.st_mtime)]


def place(source: bytes, folder: bytes) -> None:
    """Copy every file that the program's folder lacks, or that a program has changed there."""
    os.makedirs(folder, exist_ok=True)
    for name in sorted(names_below(source)):
        sent, path = below(source, name), below(folder, name)
        if facts(sent) == facts(path):
            continue
        os.makedirs(os.path.dirname(path), exist_ok=True)
        new = path + b".new"
        if os.path.lexists(new):  # Of a start that was killed; a link is not written over.
            os.remove(new)
        shutil.copy2(sent, new, follow_symlinks=False)
        os.rename(new, path)


class Program(Spread):
    """The files of the program's folder that are as they were sent."""

    def __init__(self, run: str, folder: str, way: List[str]) -> None:
        self.run, self.folder, self.way, self.silent = run, folder, way, {}
        path = os.fsencode(folder)
        known = ((name, facts(below(path, name))) for name in sorted(names_below(path)))
        # A link bears no time by which one of the program's own is known.
        self.files = dict(
            (name, told) for name, told in known if isinstance(told, str) or (told and told[-1] == PLACED_AT)
        )
        self.sums = json.dumps(self.files).encode("ascii")
        self.check = " ".join(map(shlex.quote, program(run, "data.program_folder", "has", folder)))

    def names(self) -> List[str]:
        return list(self.files)

    def give_agent(self, machine: str) -> None:
        """Let a machine have what takes part in the chain and looks for the files."""
        take_in = 'mkdir -p "{0}" && tar -C "{0}" -xf -'.format(self.run)
        files = subprocess.Popen(
            ["tar", "-C", self.run, "-cf", "-", "--exclude=__pycache__", "agent"], stdout=subprocess.PIPE
        )
        subprocess.call(self.way + [machine, take_in], stdin=files.stdout)
        files.stdout.close()
        files.wait()


def main(what: str, *arguments: str) -> None:
    if what == "place":
        place(*map(os.fsencode, arguments))
    elif what == "has":
        wanted, folder = json.loads(sys.stdin.read()), os.fsencode(arguments[0])
        sys.exit(0 if all(facts(below(folder, name)) == told for name, told in wanted.items()) else 1)
    else:
        run, folder, way = arguments[:3]
        machines, spread = arguments[3:], Program(run, folder, json.loads(way))
        parallel(spread.give_agent, machines)
        rest = spread.bring(machines)
        if rest:
            sys.exit("the program did not arrive whole on " + " and ".join("{} ({})".format(*one) for one in rest))
