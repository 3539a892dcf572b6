"""Print what a node has of a run: the files that are fetched, with sizes and hashes, and those left behind, as one JSON line.

Each row says which checkpoint's step it belongs to, and what speaks against that: a suspicion hides nothing.

Arguments: the run's folder, and what is asked, as JSON: ``first`` (whether it is the first node, which has the run's records),
``step`` (of the newest checkpoint there, of which this node may have a part), ``hashed``, ``everything`` (no limits), ``data`` (the data
set's folder) and ``names`` (files of it). A file that is still being written is taken as long as it is now.
"""

import contextlib
import glob
import json
import os
import stat
import sys
from operator import itemgetter
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import agent
from agent import kill_run, program
from agent.data.receive_tree import PLACED_AT
from agent.formats.checkpoints.entries import files_below, is_kept, leads_into
from agent.formats.checkpoints.log_folder import TORN, checkpoints_of, home_of, put_aside_beside, why_checkpoints_silent
from agent.formats.checkpoints.parts import OVER, folders
from agent.machine import hash_of
from agent.run import document
from agent.run.context import runtime_of
from agent.run.records import is_alive
from agent.supervise.checkpoint_watch import COPY_TIMEOUT_S, KILL_AFTER_S, LIMITED

RECORDS = (
    "job.json",
    "job.log",
    "progress.jsonl",
    "samples.jsonl",
    "preflight.json",
    "exit_code",
    "failure.json",
)
RECORD, NEWEST, BEST, VOCABULARY, EVENTS = "record", "newest checkpoint", "best model", "vocabulary", "events"
KEPT, SMALL, LARGE = "kept", "small file", "above the limits"
CHECKPOINT, PUT_ASIDE, HALF, PROGRAM = "checkpoint", "put aside", "half written", "program file"
SUSPECTED = "suspected checkpoint"
"""The newest one, where an older one without a suspicion is preferred."""
Told = NamedTuple("Told", [("what", str), ("step", Optional[int]), ("suspicion", str)])
"""Facts of a file: what it is, of which checkpoint's step, and the suspicion against that."""
Facts = Dict[str, Told]
Links = List[Dict[str, str]]
Place = Tuple[str, str, Facts]
Disk = NamedTuple("Disk", [("inside", str), ("here", str)])
"""The folder of a run's disk as its container sees it, and on this machine."""
A_RECORD = Told(RECORD, None, "")
LEFT = (LARGE, CHECKPOINT, PUT_ASIDE, HALF, PROGRAM)
"""Files that come only when everything is asked for."""
SMALL_BYTES, SMALL_TOTAL_BYTES, SMALL_FILES = 10 * 10**6, 100 * 10**6, 1000
"""Limits of a small file and of all of a node: they come although nobody has named them, such as configurations and tokenizers."""
MOST_LINKS, MOST_STEPS, NOWHERE = 1000, 40, "/nowhere"
LONGEST_SUSPICION = 300


def disk_of(folder: str) -> Optional[Disk]:
    """Return the disk as a run's container sees it and its folder on this machine; None where both are one."""
    within = agent.inside(folder)
    two_up = (os.path.dirname(os.path.dirname(os.path.realpath(path))) for path in (folder, within))
    return None if within == folder else Disk(*two_up)


def followed(path: str, disk: Optional[Disk]) -> str:
    """Return the file that a program's link means: in its container a whole path leads elsewhere than here."""
    for _ in range(MOST_STEPS if disk else 0):
        if not os.path.islink(path):
            break
        target = os.readlink(path)
        if os.path.isabs(target):
            is_ours = target.startswith(disk.inside + os.sep)
            target = disk.here + target[len(disk.inside) :] if is_ours else NOWHERE
        path = os.path.join(os.path.dirname(path), target)
    return path


def gather(folder: str) -> None:
    """Bring what other nodes have written of checkpoints since the run ended; while it goes on, its supervisor does."""
    run = document.read(os.path.join(folder, document.FILE))
    others = run.machines.addresses[1:]
    if others and not run.checkpoints.shared and checkpoints_of(run, "").any_node_writes and not is_alive(folder):
        argv = program(folder, "checkpoints.parts", folder, "gather", OVER, *others)
        code, output = kill_run.ask(runtime_of(run).here(LIMITED + argv, False), COPY_TIMEOUT_S + 2 * KILL_AFTER_S)
        if code:
            print("what other machines have of the newest checkpoint is not here: " + output[-300:], file=sys.stderr)


def below_logdir(
    run: document.RunDocument, logdir: str, asked: Dict[str, Any], at_work: bool, folder: str
) -> Tuple[Facts, Optional[int], Links]:
    """Return {name: what is said of it} of the log folder, the step of the newest checkpoint, and the links."""
    checkpoints, links = checkpoints_of(run, logdir, folder), []
    checkpoints.at_work = at_work
    newest = checkpoints.newest_whole() or next(iter(checkpoints.regular()), None)
    best, regular, half = checkpoints.best(), checkpoints.regular(), checkpoints.half_written()
    if not asked["first"]:  # The first node has said which one it is.
        step = asked["step"] if checkpoints.any_node_writes else None
        newest, best = next((one for one in regular if one.step == step), None), None
    facts = dict.fromkeys(checkpoints.entries.files(), Told(SMALL, None, ""))
    facts.update(dict.fromkeys(half, Told(HALF, None, "")))
    for step, name in checkpoints.steps:
        is_newer = newest and (step, name) == regular[0] != newest
        what = BEST if name == best else NEWEST if (step, name) == newest else SUSPECTED if is_newer else CHECKPOINT
        names = checkpoints.files_of(name) + (checkpoints.shared_files(name) if what in (NEWEST, BEST) else [])
        facts.update(dict.fromkeys(names, Told(what, step, checkpoints.suspicion_of(name)[:LONGEST_SUSPICION])))
    for name, twin in checkpoints.twins().items():  # Of what the program may write over, its copy.
        told, stays = facts[twin], twin if at_work or os.path.islink(checkpoints.path(name)) else name
        del facts[name], facts[twin]
        facts[stays] = told
    for name, (what, step, why) in facts.items():
        if what == SMALL and name.rpartition(os.sep)[2].startswith("events."):
            facts[name] = Told(EVENTS, step, why)
        elif run.checkpoints.keep and what in (SMALL, CHECKPOINT) and is_kept(name, run.checkpoints.keep):
            facts[name] = Told(KEPT, step, why)
    for name in checkpoints.entries.links():
        with contextlib.suppress(OSError):  # The program has just removed it.
            links.append({"path": "logdir/" + name, "target": os.readlink(checkpoints.path(name))})
    return facts, newest.step if newest else None, links[:MOST_LINKS]


def program_folder(run: document.RunDocument, folder: str) -> Optional[str]:
    """Return the folder in which the program works as this machine sees it; None in a container that is not running."""
    if run.program.folder.startswith(folder + "/"):
        return os.path.join(agent.inside(folder), run.program.folder[len(folder) + 1 :])
    if run.machines.runtime != "container":
        return run.program.folder
    found, _ = kill_run.container_of(run.machines.container)
    inside = "/proc/{}/root{}".format(found.pid, run.program.folder) if found else ""
    return inside if os.path.isdir(inside) else None


def places(run: document.RunDocument, folder: str, asked: Dict[str, Any]) -> Tuple[List[Place], Optional[int], Links]:
    """Return [(folder, the path here, {name: what is said of it})], the step of the newest checkpoint, and the links."""
    within, step, links = agent.inside(folder), None, []
    records = list(RECORDS) + run.program.files if asked["first"] else []
    brought = [name for name in records if name.startswith("program/")]
    found = [(folder, "", dict.fromkeys(sorted(set(records) - set(brought)), A_RECORD))]
    found.append((within, "", dict.fromkeys(brought, A_RECORD)))
    for inner in run.program.artifacts:
        found.append(
            (os.path.join(within, inner), inner, dict.fromkeys(files_below(os.path.join(within, inner)), A_RECORD))
        )
    if asked["first"] or not run.checkpoints.shared:  # On a drive every node would list the same.
        logdir = os.path.join(within, "logdir")
        facts, step, links = below_logdir(run, logdir, asked, is_alive(folder), folder)
        found.append((logdir, "logdir", facts))
        for inner in folders(within)[1:]:
            names = files_below(os.path.join(within, inner))
            told = dict((name, facts.get(name, Told(CHECKPOINT, None, ""))) for name in names)
            found.append((os.path.join(within, inner), inner, told))
        home = home_of(logdir)
        for aside in put_aside_beside(logdir):
            below = "logdir" + aside[len(home) :] if aside.startswith(home) else TORN
            told = below_logdir(run, aside, asked, False, folder)[0]
            found.append((aside, below, dict((name, told[name]._replace(what=PUT_ASIDE)) for name in told)))
    return found, step, links


def chosen(
    folder: str, asked: Dict[str, Any]
) -> Tuple[document.RunDocument, List[Dict[str, Any]], Optional[int], Links, str]:
    """Return the run document, the facts of each file, the step of the newest checkpoint, the links, and what is not known in a sentence."""
    run, silent, disk, since = document.read(os.path.join(folder, document.FILE)), "", disk_of(folder), began(folder)
    found, step, links = places(run, folder, asked)
    program = program_folder(run, folder)
    if program is None and run.checkpoints.keep:
        silent = "container {} is not running, so what the program wrote in {} cannot be read"
        silent = silent.format(run.machines.container, run.program.folder)
    is_above = (folder + os.sep).startswith(os.path.join(run.program.folder, ""))
    if program and (run.checkpoints.keep or not is_above):  # The whole disk is no program's folder.
        names = [name for name in files_below(program) if "program/" + name not in run.program.files]
        names = [name for name in names if not is_sent(os.path.join(program, name))]
        told = dict((name, Told(KEPT if is_kept(name, run.checkpoints.keep) else PROGRAM, None, "")) for name in names)
        found.append((program, "program", told))
    found.append((asked["data"], "data", dict.fromkeys(asked["names"], Told(VOCABULARY, None, ""))))
    files = []
    for root, below, facts in found:
        here, there = os.path.join(root, ""), os.path.join(below, "") if below else ""
        files += [described(here, name, there, told, disk) for name, told in facts.items()]
    files = [one for one in files if one and (one["what"] != PROGRAM or one["written"] >= since)]
    return run, files, step, links, silent


def is_sent(path: str) -> bool:
    """Return whether a file of the program's folder is as it came from the operator's computer."""
    try:
        return os.lstat(path).st_mtime == PLACED_AT
    except OSError:
        return False


def began(folder: str) -> int:
    """Return when the oldest file of a run's folder was written: what is older in the program's folder is none of its results."""
    paths = [path for where in ("*", "agent/*") for path in glob.glob(os.path.join(glob.escape(folder), where))]
    return int(min(os.path.getmtime(path) for path in paths if os.path.isfile(path)))


def described(root: str, name: str, below: str, told: Told, disk: Optional[Disk]) -> Optional[Dict[str, Any]]:
    """Return the facts of a file ``name`` below ``root``, which is fetched to ``below``; ``told`` is what is said of it.

    None is returned for a file that the program has just removed, and for a link to another file below ``root``.
    """
    what, step, suspicion = told
    source = root + name
    try:
        known = os.lstat(source)
        if stat.S_ISLNK(known.st_mode):
            source = followed(source, disk)
            known = os.stat(source)
            if what != VOCABULARY and leads_into(source, root.rstrip(os.sep)):
                return None
    except OSError:
        return None
    if not stat.S_ISREG(known.st_mode):
        return None
    return {
        "path": below + name,
        "source": source,
        "size": known.st_size,
        "sha256": "",
        "written": int(known.st_mtime),
        "what": what,
        "step": step,
        "suspicion": suspicion,
    }


def inventory(folder: str, asked: Dict[str, Any]) -> Dict[str, Any]:
    """Return what this node has of the run."""
    run, found, newest, links, silent = chosen(folder, asked)
    files, left, total, small = [], [], 0, 0
    for one in sorted(found, key=itemgetter("size", "path")):
        if one["what"] == SMALL:
            total, small = total + one["size"], small + 1
            if one["size"] > SMALL_BYTES or total > SMALL_TOTAL_BYTES or small > SMALL_FILES:
                one["what"] = LARGE
        if one["what"] in LEFT and not asked["everything"]:
            left.append(one)
            continue
        try:
            if asked["hashed"]:
                one["sha256"] = hash_of(one["source"], size=one["size"])
        except OSError as error:
            left.append(dict(one, suspicion="it cannot be read: " + str(error)[:LONGEST_SUSPICION]))
            continue
        if one["sha256"] is not None:  # The program has not just removed it.
            files.append(one)
    path = itemgetter("path")
    return {
        "word": run.word,
        "step": newest,
        "files": sorted(files, key=path),
        "left": sorted(left, key=path),
        "links": links,
        "silent": silent,
    }


def main(folder: str, asked: str) -> None:
    silent = why_checkpoints_silent(folder)
    if silent:
        sys.exit("the drive with the checkpoints does not answer: " + silent)
    asked = json.loads(asked)
    if asked["first"]:
        gather(folder)
    print(json.dumps(inventory(folder, asked)))
