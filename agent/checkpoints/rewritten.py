"""Checkpoints of a program that writes the same files over and over: ``options["pattern"]`` has no group ``step``.

All files that the pattern matches are one state of the program. The next writing may tear it, so each whole state is copied as soon as it
is seen, into a folder of its own in the log folder: ``kept_states/STEP-TIME``, with the milliseconds of its last write. These copies are the
checkpoints, and the state that is there now is one until it has its copy. No copy is a link to a file of the program, which may truncate it.

Arguments: the run's folder, OVER or nothing while ranks may write, and for another node than the first the name of the state's folder.
Prints that name, where a copy was made.
"""

import contextlib
import errno
import fcntl
import glob
import os
import re
import shutil
import sys
import time

from agent import spec
from agent.checkpoints import file_formats
from agent.checkpoints.being_written import STABLE_S, being_written
from agent.checkpoints.entries import files_below, leads_into, prefixes, stat_of
from agent.checkpoints.log_folder import KEPT, TORN, checkpoints_in
from agent.records import event_summary

FOLDER = "kept_states"
STATE = re.compile(FOLDER + r"/(\d+)-(\d+)(?=/)")
NEW = os.path.join(FOLDER, ".new")
MARK, OVER = "microcluster-kept", "over"
FICLONE = 0x40049409
"""The request of Linux that lets two files share their blocks until one of them changes."""
PROGRESS = ("train", "validation", "metric", "resuming")
"""Events that say the step: those of the program's lines, and the one with which an attempt goes on."""
WRITTEN_S = 5.0
"""What a program writes is changed as a file when its content is; what another node has given has an older time."""
ROUNDED_S = 0.001
"""An event's time is written in whole milliseconds."""


class Format(file_formats.Format):
    """The states in a log folder.

    ``live`` are the program's files by their stats, ``twin`` the folder with a copy of them, ``unkept`` the name of their state without one.
    """

    is_rewritten = True
    off_s = 0.0
    """How far the clock of the disk is before this machine's."""

    def __init__(self, logdir, options=None):
        super().__init__(logdir, options)
        self.live, self.matching, self.twin, self.unkept = {}, [], "", ""

    def part_of(self, file):
        """Return (step, the path that matches) of the copy that a file belongs to, or None."""
        state, own = STATE.match(file), self.matched(self.within(file))
        return (int(state.group(1)), os.path.join(state.group(), own)) if state and own else None

    def within(self, name):
        return name[STATE.match(name).end() + 1 :] if STATE.match(name) else name

    def matched(self, file):
        """Return the path of the file or folder that the pattern matches, or None."""
        pattern, paths = re.compile(self.options["pattern"]), prefixes(file)
        return next((one for one in paths if pattern.fullmatch(one) or pattern.fullmatch(os.path.basename(one))), None)

    def found(self):
        if self.entries.look():
            self.matching = [one for one in self.entries.files() if self.matched(one) and prefixes(one)[0] != FOLDER]
        own = ((file, stat_of(self.path(file))) for file in self.matching)
        others = [file for file in self.matching if not is_best(file)]
        # A best model that is torn is none, and the state is what else there is.
        self.live = dict(
            (file, known) for file, known in own if known and not (others and is_best(file) and self.flaw_in(file))
        )
        states = {}
        for file in self.entries.parts():
            states.setdefault(STATE.match(file).group(), []).append(file)
        self.twin = next((one for one in sorted(states) if self.is_copy(states[one])), "")
        new = "" if self.twin or not self.live else self.folder_of_own(states)
        if new:
            states[new] = list(self.live)
        ordered = sorted(states, key=numbers, reverse=True)
        names = [os.path.join(one, self.matched(min(map(self.within, states[one]), key=order))) for one in ordered]
        self.names = dict((name, sorted(states[one])) for one, name in zip(ordered, names))
        self.steps = [(numbers(one)[0], name) for one, name in zip(ordered, names)]
        self.older = dict(zip(names, names[1:]))
        self.unkept = next((name for one, name in zip(ordered, names) if one == new), "")
        self.older.pop(self.unkept, None)  # The parts of other nodes come with their copies.
        return list(self.steps)

    def is_copy(self, files):
        """Return whether these are a copy of the state that is there; the parts of other nodes lie in it too."""
        copies = dict((self.within(file), stat_of(self.path(file))) for file in files)
        same = (copies.get(file) and same_state(copies[file], known) for file, known in self.live.items())
        return bool(self.live) and all(same)

    def folder_of_own(self, states):
        """Return the folder for a copy of what is there, with the step of the last progress line before it was written."""
        written_ns = max(known.st_mtime_ns for known in self.live.values())
        before = [step for step, at in map(numbers, states) if at <= written_ns // 10**6]
        step = max([step_at(self.records, written_ns / 1e9 - self.off_s)] + before)
        times = range(written_ns // 10**6, sys.maxsize)
        folders = (os.path.join(FOLDER, "{}-{}".format(step, at)) for at in times)
        return next(one for one in folders if one not in states)

    def flaw_in(self, file):
        own = self.within(file)
        return file_formats.flaw(self.path(file), own == self.matched(own))

    def called_best(self):
        """Return nothing: each copy has the best model of its time."""
        return set()

    def shared_files(self, name):
        """Return the pointers, which say the same of every state."""
        names = ((os.path.basename(file), file) for file in self.entries.files() if file not in self.live)
        return [file for word, file in names if word in file_formats.POINTERS and prefixes(file)[0] != FOLDER]

    def pointers_elsewhere(self, name):
        return []

    def twins(self):
        """Return {file of the program: its copy}, of files that are there twice."""
        return dict((file, os.path.join(self.twin, file)) for file in self.live if self.twin)

    def is_due(self):
        """Return whether what is there has no copy, is whole and will stay for a moment: a program may be about to write its next file."""
        self.found()
        newest = [name for _, name in self.steps[:KEPT]]
        files = [file for file in self.live if not is_best(file)]
        is_quiet = len(files) < 2 or all(time.time() - self.live[file].st_mtime >= STABLE_S for file in files)
        return self.unkept in newest and not self.suspicion_of(self.unkept) and (is_quiet or not self.at_work)

    def copy(self, folder, keep=()):
        """Copy what is there into a folder, and remove older copies; return its name.

        Args:
            folder: the one that the first node has made, for what another one has written itself.
        """
        is_other = bool(folder)
        self.found()
        if not (self.live if folder else self.is_due()):
            return ""
        shutil.rmtree(self.path(NEW), ignore_errors=True)
        os.makedirs(self.path(NEW))
        self.off_s = os.stat(self.path(NEW)).st_mtime - time.time()
        self.found()
        folder = folder or (self.unkept and STATE.match(self.unkept).group())
        if not folder or os.path.exists(self.path(folder)):
            return folder
        own = dict(self.live)
        if is_other:
            own = dict((file, one) for file, one in own.items() if abs(one.st_ctime - one.st_mtime) < WRITTEN_S)
        copies = [file for _, name in reversed(self.steps) for file in self.names[name] if STATE.match(file)]
        earlier = dict((self.within(file), self.path(file)) for file in copies)
        size = sum(known.st_size for known in own.values())
        if shutil.disk_usage(self.logdir).free < 2 * size:
            raise OSError(errno.ENOSPC, "no room for a copy of {} bytes beside the program's own".format(size))
        for file in set(own).union(() if is_other else filter(is_best, earlier)):
            known, before, target = own.get(file), earlier.get(file), self.path(os.path.join(NEW, file))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if before and (not known or same_state(os.stat(before), known)):
                link_file(before, target)
            else:
                copy_file(self.path(file), target, known)
        self.found()
        if not all(file in self.live and same_state(self.live[file], own[file]) for file in own):
            raise OSError(errno.EBUSY, "the program has written to it meanwhile")
        if self.at_work and being_written(own):
            raise OSError(errno.EBUSY, being_written(own)[0] + " is being written")
        os.rename(self.path(NEW), self.path(folder))
        self.prune(keep=keep)
        return folder

    def put_aside(self, files, why):
        """Move files out of the log folder; of the copy of what is there also that, which would be a state without a copy."""
        is_there = self.twin and any(file.startswith(self.twin + os.sep) for file in files)
        return super().put_aside(set(files).union(self.live if is_there else ()), why)

    def remove(self, files):
        """Remove copies; what the program has under its own names stays."""
        super().remove([file for file in files if STATE.match(file)])

    def prepare(self, name):
        """Let the program find a state under its own names, on every node that which it has written itself; return the names."""
        self.found()
        folder, own = STATE.match(name).group(), sorted(map(self.within, self.files_of(name)))
        self.place(folder)
        for logdir in glob.glob(os.path.join(glob.escape(os.path.dirname(self.logdir)), "nodes", "*", "logdir")):
            node = Format(logdir, self.options)
            node.found()
            for file in node.matching:
                os.remove(node.path(file))
            node.place(folder)
        home = os.path.realpath(self.logdir)
        targets = [os.path.realpath(self.path(file)) for file in own if leads_into(self.path(file), self.logdir)]
        return sorted(set(own + [os.path.relpath(one, home) for one in targets])) + self.shared_files(name)

    def place(self, folder):
        """Put a copy where the program looks for its files; other ones are put aside."""
        for file in files_below(self.path(folder)):
            copy, own = self.path(os.path.join(folder, file)), self.path(file)
            there = stat_of(own)
            if there and not same_state(there, os.stat(copy)):
                self.put_aside([file], TORN)
            if not there or not os.path.lexists(own):
                os.makedirs(os.path.dirname(own), exist_ok=True)
                copy_file(copy, own, os.stat(copy))


def numbers(folder):
    """Return the step and the time in the name of a copy's folder."""
    return tuple(map(int, os.path.basename(folder).split("-")))


def is_best(file):
    """Return whether a file is the best model beside the newest one, by its name."""
    return "best" in file.lower()


def order(file):
    """Return what sorts the file first that a program goes on from."""
    return is_best(file), file


def same_state(one, other):
    return (one.st_size, one.st_mtime_ns) == (other.st_size, other.st_mtime_ns)


def link_file(copy, target):
    """Let a copy, to which nobody writes, be in a second place."""
    try:
        os.link(copy, target)
    except OSError:  # Not every drive has links.
        copy_file(copy, target, os.stat(copy))


def copy_file(source, target, known):
    """Copy a file with its time, without its blocks where the file system can share them."""
    with open(source, "rb") as file, open(target, "wb") as copy:
        try:
            fcntl.ioctl(copy.fileno(), FICLONE, file.fileno())
        except OSError:
            shutil.copyfileobj(file, copy, 1 << 20)
        copy.flush()
        os.fsync(copy.fileno())
    os.utime(target, ns=(known.st_mtime_ns, known.st_mtime_ns))


def step_at(folder, moment):
    """Return the step of the last progress line before a moment; 0 before the first."""
    with contextlib.suppress(FileNotFoundError), open(os.path.join(folder, event_summary.EVENTS), "rb") as file:
        size = file.seek(0, os.SEEK_END)
        for length in (event_summary.EVERY_BYTES, size):  # Mostly it is one of the last lines.
            file.seek(max(0, size - length))
            events = map(event_summary.value_of, reversed(file.read().split(b"\n")))
            said = (one for one in events if isinstance(one, dict) and one.get("event") in PROGRESS)
            steps = (one["step"] for one in said if event_summary.time_of(one) - ROUNDED_S <= moment and "step" in one)
            step = next((one for one in steps if type(one) is int), None)
            if step is not None:
                return step
    return 0


def main(folder, over, state=""):
    checkpoints = checkpoints_in(folder)
    checkpoints.at_work = over != OVER
    try:
        print(MARK, checkpoints.copy(state, spec.read(os.path.join(folder, spec.FILE)).keep))
    except (OSError, spec.SpecError) as error:
        sys.exit("copying what the program has saved: {}".format(error))
    finally:
        shutil.rmtree(checkpoints.path(NEW), ignore_errors=True)
