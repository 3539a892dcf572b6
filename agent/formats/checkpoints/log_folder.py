"""The checkpoints in a run's log folder, in the format that ``checkpoints`` names in the run document: a module here with its ``Format``.

A checkpoint is everything that belongs to one step, and is named relative to the log folder. A suspicion against one lowers its
preference and nothing else: it is listed, copied and gone on from where there is no better one, and is never removed for it.
"""

import contextlib
import glob
import importlib
import os
import stat
import time
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

from agent import inside
from agent.formats.checkpoints.being_written import STABLE_S, being_written
from agent.formats.checkpoints.entries import Checkpoint, Entries, is_kept, leads_into, prefixes, stat_of
from agent.machine import why_silent
from agent.run import document
from agent.run.context import Run
from agent.run.document import RunDocument

UNREADABLE = 3
TORN, WITHOUT = "torn", "without-checkpoint"
"""Why files were put aside: newer checkpoints that were not gone on from, and what lay there when there was none at all."""

KEPT = 2
"""Number of whole checkpoints that a resume keeps: the newest one, and the one before in case that it is bad."""
Choice = NamedTuple("Choice", [("step", int), ("name", str), ("suspicion", str)])
"""A checkpoint that a run may go on from."""


def checkpoints_of(run: RunDocument, logdir: str, folder: str = "") -> "Checkpoints":
    """Return the checkpoints in a log folder, in the format that a run document names; ``folder`` has the run's records."""
    if run.checkpoints.format == document.NO_CHECKPOINTS:
        return Checkpoints(logdir)
    found = importlib.import_module("agent.formats.checkpoints." + run.checkpoints.format).Format(
        logdir, run.checkpoints.options
    )
    found.records = folder
    return found


def checkpoints_in(folder: str, *below: str) -> "Checkpoints":
    """Return the checkpoints of the run in a folder; ``below`` leads to another log folder in it."""
    logdir = os.path.join(inside(folder), *(below or ["logdir"]))
    return checkpoints_of(document.read(os.path.join(folder, document.FILE)), logdir, folder)


def checkpoints_of_run(run: Run) -> "Checkpoints":
    """Return the checkpoints of a run that is under way on this machine."""
    return checkpoints_of(run.spec, run.inside("logdir"), run.folder)


def why_checkpoints_silent(folder: str) -> str:
    """Return why the checkpoints of a run's folder cannot be listed, or an empty text; without a drive there is nothing to ask."""
    logdir = os.path.join(folder, "logdir")
    return why_silent(logdir + "/") if os.path.islink(logdir) else ""


def home_of(logdir: str) -> str:
    """Return the log folder itself; on a shared drive the run's folder has a link to it."""
    return os.path.realpath(logdir) if os.path.islink(logdir) else logdir


def aside_of(home: str, why: str) -> str:
    """Return the folder for what is put aside now, beside a log folder."""
    return "{}.{}-{}".format(home, why, int(time.time() * 1000))


def put_aside_beside(logdir: str) -> List[str]:
    """Return the folders beside a log folder with what was put aside: that of an earlier version, then the others by their age."""
    home = home_of(logdir)
    earlier = os.path.join(os.path.dirname(logdir), TORN)
    found = sorted(glob.glob(glob.escape(home) + ".*-*"), key=lambda path: path.rpartition("-")[2])
    return [path for path in [earlier] + found if os.path.isdir(path)]


class Checkpoints:
    """The checkpoints in a log folder, of which there are none: a format says which files are one, and what speaks against one (`flaw_of`).

    What is said of them holds for the last look, which `found`, `newest_whole` and `newest` make.
    """

    is_read_back = False
    """Whether ``python agent checkpoints.FORMAT PATH`` reads one back as its program would, and ends with UNREADABLE when that fails."""

    any_node_writes = False
    """Whether any node may write a part of a checkpoint, so that all of one step are one."""

    records = ""
    """The folder of the run's events, which say the step of a checkpoint that does not bear it in its name."""

    at_work = True
    """Whether processes of the run may still write: then what is open is not at its end. Whoever knows better says so."""

    def __init__(self, logdir: str, options: Optional[Dict[str, Any]] = None) -> None:
        self.logdir, self.options = logdir, options or {}
        self.entries, self.steps = Entries(logdir, self.part_of), []
        self.names, self.older, self.judged = {}, {}, {}

    def path(self, name: str) -> str:
        return os.path.join(self.logdir, name)

    def part_of(self, file: str) -> Optional[Checkpoint]:
        """Return (step, name) of the checkpoint that a file is a part of, or None."""

    def flaw_of(self, name: str) -> str:
        """Return what speaks against a checkpoint; an empty text where nothing does."""
        return ""

    def found(self) -> List[Checkpoint]:
        """Look, and return [(step, name)] of all that is a checkpoint by its name, newest first."""
        if self.entries.look():
            groups = {}
            for file, part in self.entries.parts().items():
                groups.setdefault(part.step if self.any_node_writes else part, []).append((part.name, part.step, file))
            self.names = dict((min(files)[0], sorted(file for _, _, file in files)) for files in groups.values())
            named = ((-files[0][1], self.is_best(min(files)[0]), min(files)[0]) for files in groups.values())
            self.steps = [Checkpoint(-step, name) for step, _, name in sorted(named)]
            self.older = dict((one.name, older.name) for one, older in zip(self.steps, self.steps[1:]))
        return list(self.steps)

    def files_of(self, name: Optional[str]) -> List[str]:
        """Return those of its files that are there, relative to the log folder."""
        if not self.names:
            self.found()
        return self.names.get(name, [])

    def within(self, name: str) -> str:
        """Return the path of a checkpoint or of its file as its program knows it."""
        return name

    def is_due(self) -> bool:
        """Return whether there is a state that the program will write over, and that is to be copied before."""
        return False

    def twins(self) -> Dict[str, str]:
        """Return {file of the program: its copy} of what is there twice."""
        return {}

    def kind_of(self, name: str, file: str) -> str:
        """Return what kind of file one of a checkpoint's is, as the report names it."""
        return "data"

    def stats_of(self, name: str) -> Dict[str, os.stat_result]:
        """Return {file: stat} of those of its files that are still there."""
        stats = ((file, stat_of(self.path(file))) for file in self.files_of(name))
        return dict((file, found) for file, found in stats if found)

    def suspicion_of(self, name: str) -> str:
        """Return why it may be of no use, or an empty text; what has not changed since is not read again."""
        stats, before = self.stats_of(name), self.older.get(name)
        known = sorted((file, one.st_size, one.st_mtime_ns, one.st_ino) for file, one in stats.items())
        state = known, before, len(self.names.get(before, ()))
        if not stats:
            return name + " is gone"
        if self.judged.get(name, ("", ""))[0] != state:
            writing = being_written(stats) if self.at_work else []
            if writing:
                return writing[0] + " is being written"
            links = [file for file, one in sorted(stats.items()) if stat.S_ISLNK(one.st_mode)]
            gone = [file + " is a link to what is gone" for file in links if leads_into(self.path(file), self.logdir)]
            try:
                self.judged[name] = state, gone[0] if gone else self.flaw_of(name)
            except OSError as error:  # The program has removed it meanwhile, or the disk does not give it.
                return "{}: {}".format(name, error)
        return self.judged[name][1]

    def shared_files(self, name: str) -> List[str]:
        """Return files that the program needs with a checkpoint and that others need too: copied with each, and never removed."""
        return []

    def pointers_elsewhere(self, name: str) -> List[str]:
        """Return those of the shared files that name another checkpoint."""
        return []

    def is_best(self, name: str) -> bool:
        """Return whether it is the model of an evaluation, which is kept beside the regular checkpoints."""
        return False

    def called_best(self) -> Set[int]:
        """Return the steps of the checkpoints that the program itself calls its best, whatever their names are."""
        return set()

    def step_of(self, name: str, named: int) -> int:
        """Return how many updates a checkpoint holds that is named by the step ``named``."""
        return named

    def half_written(self) -> List[str]:
        """Return the files that a killed process was just writing."""
        return []

    def prepare(self, name: str) -> List[str]:
        """Let the program go on from a checkpoint; return the files that every node needs for that."""
        return self.files_of(name)

    def regular(self, best: bool = False) -> List[Checkpoint]:
        """Return [(step, name)] of the regular checkpoints, or of the best models, newest first."""
        return [one for one in self.steps or self.found() if self.is_best(one.name) == best]

    def newest_whole(self) -> Optional[Checkpoint]:
        """Return (step, name) of the newest regular checkpoint without a suspicion, or None."""
        self.found()
        return next((one for one in self.regular() if not self.suspicion_of(one.name)), None)

    def newest(self) -> Optional[Checkpoint]:
        """Return the same, or else the newest one with a suspicion; while processes are at work nobody may have written to that for a while."""
        return self.newest_whole() or next((one for one in self.regular() if self.is_at_rest(one.name)), None)

    def is_at_rest(self, name: str) -> bool:
        """Return whether a checkpoint is there and nobody has written to it for a while."""
        stats = self.stats_of(name)
        is_quiet = all(abs(time.time() - one.st_mtime) >= STABLE_S for one in stats.values())
        return bool(stats) and (not self.at_work or (is_quiet and not being_written(stats)))

    def best_whole(self) -> List[str]:
        """Return the names of the best models without a suspicion, newest first."""
        return [name for _, name in self.regular(best=True) if not self.suspicion_of(name)]

    def best(self) -> Optional[str]:
        """Return the name of the best model with the lowest loss, or None."""

    def by_preference(self) -> List[Choice]:
        """Return [(step, name, suspicion)] in the order in which a run goes on from them: the newest one without a suspicion first."""
        found = [Choice(step, name, self.suspicion_of(name)) for step, name in self.found()]
        return sorted(found, key=lambda one: bool(one.suspicion))

    def choose(
        self, readable: Callable[[str], bool], refused: Optional[Dict[str, str]] = None
    ) -> Tuple[Optional[Choice], Dict[str, str]]:
        """Return (step, name, suspicion) of what is gone on from or None, and {name: sentence} of what was passed over for it.

        Args:
            readable: answers whether the program can read the checkpoint back.
            refused: {name: sentence} of what must not be used.
        """
        passed, order = {}, self.by_preference()
        for step, name, suspicion in order:
            why = (refused or {}).get(name, "") or (
                "" if readable(name) else name + ": its tensors cannot be read back"
            )
            if not why:
                passed.update((other, why) for at, other, why in order if why and at > step and other not in passed)
                return Choice(self.step_of(name, step), name, suspicion), passed
            passed[name] = why
        return None, passed

    def put_aside(self, files: Iterable[str], why: str) -> str:
        """Move files out of the log folder, where their names alone would be believed; return the folder, which is on the same disk."""
        aside = aside_of(home_of(self.logdir), why)
        for name in self.own(files):
            target = os.path.join(aside, name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.rename(self.path(name), target)
        self.leave(files)
        return aside

    def remove(self, files: Iterable[str]) -> None:
        """Remove files of the log folder; what cannot be removed stays, and a run goes on beside it."""
        for file in self.own(files):
            with contextlib.suppress(OSError):
                os.remove(self.path(file))
        self.leave(files)

    def own(self, files: Iterable[str]) -> List[str]:
        """Return what of the log folder itself holds files: of a folder elsewhere the link to it."""
        links = (next((path for path in prefixes(file) if os.path.islink(self.path(path))), file) for file in files)
        return sorted(set(links))

    def leave(self, files: Iterable[str]) -> None:
        """Remove the folders that held nothing but these files."""
        for file in sorted(files, reverse=True):
            for path in reversed(prefixes(file)[:-1]):
                with contextlib.suppress(OSError):
                    os.rmdir(self.path(path))

    def prune(self, stays: Optional[str] = None, keep: Sequence[str] = ()) -> None:
        """Remove what earlier attempts have left: a new attempt may know nothing of their checkpoints.

        The newest regular ones stay, the best model and the newest one, what the program calls its best, what a pattern of ``keep`` names,
        ``stays``, which is gone on from, and all that there is a suspicion against. No process of the run may be at work.
        """
        found = self.found()
        whole = [name for _, name in self.regular() if not self.suspicion_of(name)]
        best, called_best = self.best_whole(), self.called_best()
        stay = [stays, self.best()] + whole[:KEPT] + best[:1] + [name for step, name in found if step in called_best]
        for name in whole + best:
            if name not in stay and not any(is_kept(file, keep) for file in self.files_of(name)):
                self.remove(self.files_of(name))
        for file in self.half_written():
            with contextlib.suppress(OSError):
                os.remove(self.path(file))
