"""Checkpoints of a program that writes the same files over and over: ``options["pattern"]`` has no group ``step``.

All files that the pattern matches are one state of the program. The next writing may tear it, so each whole state is copied as soon as it
is seen, into a folder of its own in the log folder: ``kept_states/STEP-TIME``, with the milliseconds of its last write. These copies are the
checkpoints, and the state that is there now is one until it has its copy. No copy is a link to a file of the program, which may truncate it.

Arguments: the run's folder, OVER or nothing while ranks may write, and for another node than the first the folder of the state.
Prints that folder, where a copy was made.
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
from typing import Dict, Iterable, List, Match, NamedTuple, Optional, Sequence, Tuple

from agent.formats.checkpoints import file_formats
from agent.formats.checkpoints.being_written import STABLE_S, being_written
from agent.formats.checkpoints.entries import Checkpoint, files_below, leads_into, prefixes, stat_of
from agent.formats.checkpoints.log_folder import KEPT, TORN, checkpoints_in
from agent.run import event_summary

FOLDER = "kept_states"
STATE = re.compile("^" + FOLDER + r"/(\d+)-(\d+)(?=/)")
NEW = os.path.join(FOLDER, ".new")
MARK, OVER = "microcluster-kept", "over"
FICLONE = 0x40049409
"""The request of Linux that lets two files share their blocks until one of them changes."""
PROGRESS = ("train", "validation", "metric", "resuming")
"""Events that say the step: those of the program's lines, and the one with which an attempt goes on."""
WRITTEN_S = 5.0
"""Most seconds between the changes of a file and of its content, if the program has written it; a file that another node has given has an older time."""
LATE_S = 0.011
"""An event may be noted that much after what the program wrote next: its time has whole milliseconds, a file has that of a tick of Linux."""
State = NamedTuple("State", [("step", int), ("at", int)])
"""The time is that of the last write, in milliseconds."""


class Format(file_formats.Format):
    """The states in a log folder."""

    live, at, twin, unkept = (), 0, "", ""
    """The program's own files, the time of their last write, the folder with their copy, and the name of their state where it has none."""

    off_s = 0.0
    """Seconds by which the disk's clock is before this machine's."""

    def part_of(self, file: str) -> Optional[Checkpoint]:
        """Return (step, the path that matches) of the copy that a file belongs to, or None."""
        state, own = STATE.match(file), self.matched(self.within(file))
        return Checkpoint(int(state.group(1)), os.path.join(state.group(), own)) if state and own else None

    def within(self, name: str) -> str:
        return STATE.sub("", name).lstrip(os.sep)

    def matched(self, file: str) -> Optional[str]:
        """Return the path of the file or folder that the pattern matches, or None."""
        pattern, paths = re.compile(self.options["pattern"]), prefixes(file)
        return next((one for one in paths if pattern.fullmatch(one) or pattern.fullmatch(os.path.basename(one))), None)

    def found(self) -> List[Checkpoint]:
        if self.entries.look():
            self.live = [one for one in self.entries.files() if self.matched(one) and prefixes(one)[0] != FOLDER]
        times, states = [one.st_mtime_ns for one in map(stat_of, map(self.path, self.live)) if one], {}
        for file in self.entries.parts():
            states.setdefault(State(*map(int, STATE.match(file).groups())), []).append(file)
        self.at = max(times or [0]) // 10**6
        self.twin, new = next((folder_of(one) for one in states if one.at == self.at), ""), None
        if times and not self.twin:
            said = step_at(self.records, self.at / 1e3 - self.off_s)
            new = State(max([said] + [step for step, at in states if at < self.at]), self.at)
            states[new] = self.live
        named = [
            (one, self.matched(min(map(self.within, states[one]), key=order))) for one in sorted(states, reverse=True)
        ]
        self.steps = [Checkpoint(one.step, os.path.join(folder_of(one), path)) for one, path in named]
        self.names = dict((name, sorted(states[one])) for (one, _), (_, name) in zip(named, self.steps))
        self.unkept = next((name for (one, _), (_, name) in zip(named, self.steps) if one == new), "")
        # The parts of other nodes come with their copies.
        self.older = dict(
            (one.name, older.name) for one, older in zip(self.steps, self.steps[1:]) if one.name != self.unkept
        )
        return list(self.steps)

    def flaw_in(self, file: str) -> str:
        return file_formats.flaw(self.path(file), self.within(file) == self.matched(self.within(file)))

    def pointers_elsewhere(self, name: str) -> List[str]:
        return []

    def twins(self) -> Dict[str, str]:
        copies = dict((file, os.path.join(self.twin, file)) for file in self.live)
        return dict(pair for pair in copies.items() if pair[1] in self.entries.parts())

    def is_due(self) -> bool:
        self.found()
        may_grow = self.at_work and sum(not order(file)[0] for file in self.live) > 1
        is_quiet = not may_grow or time.time() - self.at / 1e3 >= STABLE_S
        return bool(self.unkept) and is_quiet and not self.suspicion_of(self.unkept)

    def copy(self, folder: str = "") -> str:
        """Copy what is there into the folder of its state, and remove older copies; return the folder, or nothing where there was none to copy.

        Args:
            folder: on another node that of the first one's state, for what this node has written itself.
        """
        if not (self.is_due() or (folder and self.live)):
            return ""
        os.makedirs(self.path(NEW))
        self.off_s = os.stat(self.path(NEW)).st_mtime - time.time()
        self.found()
        own, at, state = self.stats_of_live(folder), self.at, folder or self.twin or STATE.match(self.unkept).group()
        size = sum(one.st_size for one in own.values())
        if shutil.disk_usage(self.logdir).free < 2 * size:
            raise OSError(errno.ENOSPC, "no room for a copy of {} bytes beside the program's own".format(size))
        for file in own:
            copy_file(self.path(file), self.path(os.path.join(NEW, file)), own[file].st_mtime_ns)
        self.found()
        if self.at != at or (self.at_work and being_written(own)):
            raise OSError(errno.EBUSY, "the program has written to it meanwhile")
        if own and not os.path.exists(self.path(state)):
            os.rename(self.path(NEW), self.path(state))
        self.prune()
        return state

    def stats_of_live(self, is_other: str) -> Dict[str, os.stat_result]:
        """Return {file: stat} of the program's own files, on another node than the first of those that it has not been given."""
        found = ((file, os.stat(self.path(file))) for file in self.live)
        return dict((file, one) for file, one in found if not is_other or abs(one.st_ctime - one.st_mtime) < WRITTEN_S)

    def prune(self, stays: Optional[str] = None, keep: Sequence[str] = ()) -> None:
        """Remove all whole copies but the newest ones; each has the best model of its time."""
        whole = [name for _, name in self.found() if name != self.unkept and not self.suspicion_of(name)]
        self.remove([file for name in whole[KEPT:] if name != stays for file in self.names[name]])

    def put_aside(self, files: Iterable[str], why: str) -> str:
        """Move files out of the log folder; of the copy of what is there also that, which would be a state without a copy."""
        is_there = self.twin and any(file.startswith(self.twin + os.sep) for file in files)
        return super().put_aside(set(files).union(self.live if is_there else ()), why)

    def prepare(self, name: str) -> List[str]:
        """Let the program find a state under its own names, on each node what that has written itself; return the names."""
        nodes = glob.glob(os.path.join(glob.escape(os.path.dirname(self.logdir)), "nodes", "*", "logdir"))
        for one in [self] + [Format(logdir, self.options) for logdir in nodes]:
            one.place(STATE.match(name))
        own, home = [self.within(file) for file in self.files_of(name)], os.path.realpath(self.logdir)
        targets = [os.path.realpath(self.path(file)) for file in own if leads_into(self.path(file), home)]
        return sorted(set(own + [os.path.relpath(one, home) for one in targets])) + self.shared_files(name)

    def place(self, state: Match[str]) -> None:
        """Put a copy where the program looks for its files; what lies there is put aside."""
        self.found()
        if self.at != int(state.group(2)):
            self.put_aside(self.live, TORN)
        for file in files_below(self.path(state.group())):
            if not os.path.lexists(self.path(file)):  # The first node has no part of another one.
                copy_file(self.path(os.path.join(state.group(), file)), self.path(file), int(state.group(2)) * 10**6)


def folder_of(state: State) -> str:
    return os.path.join(FOLDER, "{}-{}".format(*state))


def order(file: str) -> Tuple[bool, str]:
    """Return what sorts the file first that a program goes on from: the best model is not, beside the newest one."""
    return "best" in file.lower(), file


def copy_file(source: str, target: str, time_ns: int) -> None:
    """Copy a file and give it a time, without its blocks where the file system can share them."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(source, "rb") as file, open(target, "wb") as copy:
        try:
            fcntl.ioctl(copy.fileno(), FICLONE, file.fileno())
        except OSError:
            shutil.copyfileobj(file, copy, 1 << 20)
        copy.flush()
        os.fsync(copy.fileno())
    os.utime(target, ns=(time_ns, time_ns))


def step_at(folder: str, moment: float) -> int:
    """Return the step of the last progress line before a moment; 0 before the first."""
    with contextlib.suppress(FileNotFoundError), open(os.path.join(folder, event_summary.EVENTS), "rb") as file:
        size = file.seek(0, os.SEEK_END)
        for length in (event_summary.EVERY_BYTES, size):  # Mostly it is one of the last lines.
            file.seek(max(0, size - length))
            events = map(event_summary.value_of, reversed(file.read().split(b"\n")))
            said = (one for one in events if isinstance(one, dict) and one.get("event") in PROGRESS)
            steps = (one.get("step") for one in said if event_summary.time_of(one) - LATE_S <= moment)
            step = next((one for one in steps if type(one) is int), None)
            if step is not None:
                return step
    return 0


def main(folder: str, over: str, state: str = "") -> None:
    checkpoints = checkpoints_in(folder)
    checkpoints.at_work = over != OVER
    try:
        shutil.rmtree(checkpoints.path(NEW), ignore_errors=True)
        print(MARK, checkpoints.copy(state))
    except OSError as error:
        sys.exit("copying what the program has saved: {}".format(error))
    finally:
        shutil.rmtree(checkpoints.path(NEW), ignore_errors=True)
