"""Print what a node has of a run: the files that are fetched, with sizes and hashes, and those left behind, as one JSON line.

Arguments: the run's folder, and what is asked, as JSON: ``first`` (whether it is the first node, which has the run's records),
``step`` (of the newest checkpoint there, of which this node may have a part), ``hashed``, ``everything`` (no limits), ``data`` (the data
set's folder) and ``names`` (files of it). A file that is still being written is taken as long as it is now.
"""

import contextlib
import fnmatch
import json
import os
import stat
import sys
from operator import itemgetter

import agent
from agent import kill_run, program, spec
from agent.checkpoints.checkpoint_watch import LIMITED
from agent.checkpoints.log_folder import checkpoints_of, why_checkpoints_silent
from agent.checkpoints.parts import OVER
from agent.machine import hash_of
from agent.records.run_snapshot import is_alive
from agent.supervise import shared_folder
from agent.supervise.run_context import runtime_of

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
SMALL_BYTES, SMALL_TOTAL_BYTES, SMALL_FILES = 10 * 10**6, 100 * 10**6, 1000
"""What comes of the log folder although nobody has named it, such as configurations and tokenizers: each file, and all of a node."""
MOST_LINKS, MOST_STEPS, NOWHERE = 1000, 40, "/nowhere"
OURS = (".git", "__pycache__", shared_folder.WORD)


def disk_of(folder):
    """Return the disk as a run's container sees it and its folder on this machine; None where both are one."""
    within = agent.inside(folder)
    two_up = (os.path.dirname(os.path.dirname(os.path.realpath(path))) for path in (folder, within))
    return None if within == folder else tuple(two_up)


def followed(path, disk):
    """Return the file that a program's link means: in its container a whole path leads elsewhere than here."""
    for _ in range(MOST_STEPS if disk else 0):
        if not os.path.islink(path):
            break
        target = os.readlink(path)
        if os.path.isabs(target):
            target = disk[1] + target[len(disk[0]) :] if target.startswith(disk[0] + os.sep) else NOWHERE
        path = os.path.join(os.path.dirname(path), target)
    return path


def names_below(folder, disk=None):
    """Return the names of all files below a folder, without links within it: what they lead to is there itself."""
    found, here = [], os.path.realpath(folder) + os.sep
    for where, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in OURS]
        for name in set(names).difference(OURS):
            path = os.path.join(where, name)
            file = followed(path, disk)
            leads_inside = os.path.islink(path) and os.path.realpath(file).startswith(here)
            if os.path.isfile(file) and not leads_inside:
                found.append(os.path.relpath(path, folder))
    return sorted(found)


def links_below(folder, below):
    """Return the first links below a folder, each with where it leads; whoever fetches makes none."""
    found = []
    for where, folders, names in os.walk(folder):
        for path in (os.path.join(where, name) for name in folders + names):
            with contextlib.suppress(OSError):  # No link, or the program has just removed it.
                found.append((os.path.relpath(path, folder), os.readlink(path)))
    return [{"path": below + name, "target": target} for name, target in sorted(found)[:MOST_LINKS]]


def is_kept(name, patterns):
    """Tell whether a pattern matches a file or a folder that it is in; `*` matches folders too, and `**/` also none."""
    parts = name.split("/")
    paths = ["/".join(parts[: number + 1]) for number in range(len(parts))]
    wanted = [one.rstrip("/") for pattern in patterns for one in (pattern, pattern.replace("**/", ""))]
    return any(fnmatch.fnmatchcase(path, pattern) for path in paths for pattern in wanted)


def gather(folder):
    """Bring what other nodes have written of checkpoints since the run ended; while it goes on, its supervisor does."""
    run = spec.read(os.path.join(folder, spec.FILE))
    others = run.addresses[1:]
    if others and not run.shared and checkpoints_of(run, "").any_node_writes and not is_alive(folder):
        argv = program(folder, "checkpoints.parts", folder, "gather", OVER, *others)
        code, output = kill_run.ask(runtime_of(run).here(LIMITED + argv, False), timeout_s=None)
        if code:
            print("what other machines have of the newest checkpoint is not here: " + output[-300:], file=sys.stderr)


def below_logdir(run, logdir, asked, disk=None):
    """Return {name: what it is} of the log folder, and the step of the newest checkpoint."""
    checkpoints = checkpoints_of(run, logdir)
    found = checkpoints.found()
    if asked["first"]:
        newest, best = checkpoints.newest_whole(), checkpoints.best()
    else:  # The first node has said which one it is.
        ours = [pair for pair in found if checkpoints.any_node_writes and pair[0] == asked["step"]]
        newest, best = (ours or [None])[0], None
    step, name = newest or (None, None)
    files = dict((file, SMALL) for file in names_below(logdir, disk))
    old = [file for _, older in found for file in checkpoints.files_of(older)] + list(checkpoints.half_written())
    files.update(dict.fromkeys(old))  # They are of no use beside the newest.
    for file in files:
        if os.path.basename(file).startswith("events."):
            files[file] = EVENTS
    for chosen, what in ((name, NEWEST), (best, BEST)):
        if chosen:
            files.update(dict.fromkeys(checkpoints.files_of(chosen) + checkpoints.shared_files(chosen), what))
    for file, what in files.items():
        if what in (None, SMALL) and is_kept(file, run.keep):
            files[file] = KEPT
    return files, step


def program_folder(run, folder):
    """Return the folder in which the program works as this machine sees it; None in a container that is not running."""
    if run.program_folder.startswith(folder + "/"):
        return os.path.join(agent.inside(folder), run.program_folder[len(folder) + 1 :])
    if run.runtime != "container":
        return run.program_folder
    found, _ = kill_run.container_of(run.container)
    inside = "/proc/{}/root{}".format(found[1], run.program_folder) if found else ""
    return inside if os.path.isdir(inside) else None


def chosen(folder, asked):
    """Return the specification, the facts of each file, the step of the newest checkpoint, and what is not known in a sentence."""
    run, step, silent = spec.read(os.path.join(folder, spec.FILE)), None, ""
    known, within, disk = list(RECORDS) + run.files if asked["first"] else [], agent.inside(folder), disk_of(folder)
    found = [described(folder, name, RECORD) for name in known]
    for inner in run.artifacts:
        names = names_below(os.path.join(within, inner), disk)
        found += [described(within, inner + "/" + name, RECORD, disk=disk) for name in names]
    if asked["first"] or not run.shared:  # On a drive every node would list the same.
        files, step = below_logdir(run, os.path.join(within, "logdir"), asked, disk)
        found += [described(within, "logdir/" + name, what, disk=disk) for name, what in files.items() if what]
    if run.keep:
        program = program_folder(run, folder)
        if program is None:
            silent = "container {} is not running, so what the program wrote in {} cannot be read".format(
                run.container, run.program_folder
            )
        names = [name for name in names_below(program or "") if is_kept(name, run.keep)]
        found += [described(program, name, KEPT, "program/") for name in names if "program/" + name not in run.files]
    found += [described(asked["data"], name, VOCABULARY, "data/") for name in asked["names"]]
    return run, found, step, silent


def described(folder, name, what, below="", disk=None):
    """Return a file's facts, or None where it is gone: a program may just have removed it."""
    source = followed(os.path.join(folder, name), disk)
    try:
        known = os.stat(source)
    except OSError:
        return None
    if not stat.S_ISREG(known.st_mode):
        return None
    facts = {"size": known.st_size, "sha256": "", "written": int(known.st_mtime)}
    return dict(facts, path=below + name, source=source, what=what)


def inventory(folder, asked):
    """Return what this node has of the run."""
    run, found, newest, silent = chosen(folder, asked)
    files, left, total, small = [], [], 0, 0
    for one in sorted((one for one in found if one), key=itemgetter("size", "path")):
        if one["what"] == SMALL:
            total, small = total + one["size"], small + 1
            if one["size"] > SMALL_BYTES or total > SMALL_TOTAL_BYTES or small > SMALL_FILES:
                one["what"] = LARGE
        if one["what"] == LARGE and not asked["everything"]:
            left.append(one)
            continue
        if asked["hashed"]:
            one["sha256"] = hash_of(one["source"], size=one["size"])
        if one["sha256"] is not None:  # The program has not just removed it.
            files.append(one)
    path = itemgetter("path")
    return {
        "word": run.word,
        "step": newest,
        "files": sorted(files, key=path),
        "left": sorted(left, key=path),
        "links": links_below(os.path.join(agent.inside(folder), "logdir"), "logdir/"),
        "silent": silent,
    }


def main(folder, asked):
    silent = why_checkpoints_silent(folder)
    if silent:
        sys.exit("the drive with the checkpoints does not answer: " + silent)
    asked = json.loads(asked)
    if asked["first"]:
        gather(folder)
    print(json.dumps(inventory(folder, asked)))
