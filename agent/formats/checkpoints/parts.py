"""Checkpoints of which several nodes write parts, each on its own disk; runs on the launcher, which keeps all parts.

A file that nodes write alike lies in the log folder once; what a node has written otherwise under the same name lies in its own folder
beside (``nodes/NAME/logdir``), and that node alone gets it back.

Arguments: the run's folder and ``gather STEP NODE...``, which brings what is missing here (STEP is the newest one that has a replica, or
OVER while no rank trains), or ``give NODE``, which lets the log folder of a node hold what the run goes on with and no other part of a checkpoint.
"""

import fcntl
import functools
import glob
import inspect
import json
import os
import shutil
from typing import Any, Dict, List, Sequence

from agent.formats.checkpoints import being_written, replica
from agent.formats.checkpoints.entries import files_below, prefixes, stat_of
from agent.formats.checkpoints.log_folder import WITHOUT, Checkpoints, aside_of, checkpoints_in, put_aside_beside
from agent.formats.checkpoints.replica import CopyFailed, ask, receive_files, send_files, text
from agent.machine import hash_of, read_json, write_whole
from agent.run import document

OVER = "over"
GATHERED, COMPARED = "gathered.json", "compared.json"
"""{file of a checkpoint: the node that it came from} since the ranks have begun; and {node: {file: sizes and times there and here}}."""
NEEDED = "needed.json"
"""The files of the log folder that every node needs to go on, and all parts of checkpoints that were here when that was chosen."""
HASHES = 'cd "$0" && { xargs -0 -r sha256sum -b -- || true; }'
HASH_DIGITS = 64
PUT_ASIDE = """cd "$0" && xargs -0 -r sh -c 'for one; do
to="$0/$one" && mkdir -p "${to%/*}" && mv -- "$one" "$to" || exit; done' "$1" """
REMOVE = 'cd "$0" && xargs -0 -r rm -f -- && find . -mindepth 1 -type d -empty -delete'


def folders(run: str) -> List[str]:
    """Return the log folder and those of what single nodes have written otherwise, below the run's folder."""
    found = glob.glob(os.path.join(glob.escape(run), "nodes", "*", "logdir"))
    return ["logdir"] + sorted(os.path.relpath(path, run) for path in found)


def gather(run: str, kept: str, *nodes: str) -> None:
    """Bring the parts of checkpoints that other nodes have written."""
    checkpoints, age_s, silent = checkpoints_in(run), 0 if kept == OVER else being_written.STABLE_S, []
    with open(os.path.join(run, GATHERED + ".lock"), "w") as lock:  # Whoever fetches the run gathers too.
        fcntl.flock(lock, fcntl.LOCK_EX)
        # What a node lacks after it was replaced, or was given a checkpoint, its program has not removed.
        gathered = {} if kept == OVER else read_json(os.path.join(run, GATHERED))
        for node in nodes:
            try:
                there = listed(run, node, checkpoints)
                checkpoints.found()
                if kept != OVER:
                    forget(checkpoints, gathered, node, there, int(kept))
                compare(run, node, checkpoints, there, age_s)
                names = wanted(checkpoints, there, age_s)
                bring(run, node, names, there, checkpoints.logdir)
                gathered.update((name, node) for name in names if kept != OVER)
            except CopyFailed as error:
                silent.append(error.args[0])
            write_whole(os.path.join(run, GATHERED), json.dumps(gathered))
    if silent:
        raise CopyFailed("; ".join(silent))


def wanted(checkpoints: Checkpoints, there: Dict[str, Any], age_s: float) -> List[str]:
    """Return what is missing here of the checkpoints that are here, and of newer ones that were written so long ago.

    An older one was removed by the program, and of a newer one it may be about to make the folder.
    """
    steps, names = set(step for step, _ in checkpoints.found()), []
    for name, (_, _, age, _) in sorted(there.items()):
        part = checkpoints.part_of(name) if age is not None and not os.path.lexists(checkpoints.path(name)) else None
        if part and (part.step in steps or (part.step > max(steps, default=-1) and age >= age_s)):
            names.append(name)
    return names


def compare(run: str, node: str, checkpoints: Checkpoints, there: Dict[str, Any], age_s: float) -> None:
    """Let the node's own folder have what the node has written otherwise than it lies here, and nothing that is not here any more."""
    own, here = os.path.join(run, own_folder(run, node)), checkpoints.entries.parts()
    compared = read_json(os.path.join(run, COMPARED))
    known, now = compared.setdefault(node, {}), {}
    for name in sorted(set(here).intersection(there)):
        age, both = there[name][2], there[name][:2] + same(checkpoints.path(name))
        if age is not None and age >= age_s and known.get(name) != both and os.path.isfile(checkpoints.path(name)):
            now[name] = both
    hashes = ask(run, node, "hash", ["sh", "-c", HASHES, checkpoints.logdir], text("\0".join(now))) if now else ""
    theirs = dict((line[HASH_DIGITS + 2 :], line[:HASH_DIGITS]) for line in hashes.splitlines())
    alike = [name for name in now if theirs.get(name) == hash_of(checkpoints.path(name))]
    bring(run, node, [name for name in now if name not in alike], there, own)
    places = [checkpoints.logdir] + put_aside_beside(checkpoints.logdir)
    for name in files_below(own):  # After the ranks' end the only one that is left may be this.
        if name in alike or (age_s and not any(os.path.lexists(os.path.join(place, name)) for place in places)):
            os.remove(os.path.join(own, name))
    known.update(now)
    write_whole(os.path.join(run, COMPARED), json.dumps(compared))


def own_folder(run: str, node: str) -> str:
    """Return the folder of what a node has written otherwise, below the run's folder."""
    known = document.read(os.path.join(run, document.FILE)).machines
    return os.path.join("nodes", dict(zip(known.addresses, known.names)).get(node, node), "logdir")


def forget(checkpoints: Checkpoints, gathered: Dict[str, str], node: str, there: Dict[str, Any], kept: int) -> None:
    """Remove the gathered files of steps before ``kept`` that their node has removed, as programs do that keep the last ones only.

    A node that does not have its newest part either has removed nothing on purpose.
    """
    has_newest = any((checkpoints.part_of(name) or (-1,))[0] >= kept for name in there)
    gone = [name for name in gathered if gathered[name] == node and name not in there]
    gone = set(name for name in gone if has_newest and checkpoints.part_of(name).step < kept)
    for name in gone:
        del gathered[name]
    # A link to a folder there is that folder here.
    checkpoints.remove([file for file in checkpoints.entries.files() if gone.intersection(prefixes(file))])


def bring(run: str, node: str, names: Sequence[str], there: Dict[str, Any], target: str) -> None:
    """Move files of a node's log folder into a folder here, each at once; of a link to a file elsewhere comes that file."""
    arriving = os.path.join(run, "gathered")
    shutil.rmtree(arriving, ignore_errors=True)
    os.mkdir(arriving)
    for is_nowhere, options in ((False, ["-h"]), (True, [])):
        some = [name for name in names if there[name][3] == is_nowhere]
        if some:
            receive_files(run, node, os.path.join(run, "logdir"), some, arriving, *options)
    for name in names:
        came, home = os.path.join(arriving, name), os.path.join(target, name)
        if os.path.lexists(came):  # It may be that nobody may read it, or that the program has just removed it.
            os.makedirs(os.path.dirname(home), exist_ok=True)
            os.rename(came, home)


def give(run: str, node: str) -> None:
    """Let the log folder of a node hold what it needs and of what else is known here nothing; what is the same there is not sent again."""
    checkpoints = checkpoints_in(run)
    there = listed(run, node, checkpoints)
    with open(os.path.join(run, NEEDED)) as file:
        names, known = json.load(file)
    logdir, others = os.path.join(run, "logdir"), set(there).difference(names)
    known += [name for place in put_aside_beside(checkpoints.logdir) for name in files_below(place)]
    if not checkpoints.any_node_writes:  # Every node writes the same ones.
        known += list(filter(checkpoints.part_of, others))
    ask(run, node, "rm", ["sh", "-c", REMOVE, logdir], text("\0".join(others.intersection(known))))
    if not checkpoints.any_node_writes:  # The program would not begin, or load it; and it is nowhere else.
        aside = aside_of(logdir, WITHOUT)
        ask(run, node, "mv", ["sh", "-c", PUT_ASIDE, logdir, aside], text("\0".join(others.difference(known))))
    own = os.path.join(run, own_folder(run, node))
    theirs = [name for name in names if os.path.lexists(os.path.join(own, name))]
    for folder, chosen in ((own, theirs), (checkpoints.logdir, sorted(set(names).difference(theirs)))):
        absent = [name for name in chosen if there.get(name, [])[:2] != same(os.path.join(folder, name))]
        if absent:
            send_files(folder, run, node, absent, ["tar", "-C", logdir, "-xf", "-"])


def same(path: str) -> List[int]:
    """Return what a file and its copy have in common."""
    found = stat_of(path)
    return [found.st_size, int(found.st_mtime)] if found else []


def listed(run: str, node: str, checkpoints: Checkpoints) -> Dict[str, Any]:
    """Return what lies in a node's log folder, with what a link to a checkpoint's folder elsewhere leads to."""
    there = listed_below(run, node, "logdir")
    for name in [name for name in there if there[name][3] is None and checkpoints.part_of(name)]:
        below = listed_below(run, node, os.path.join("logdir", name))
        there.update((os.path.join(name, file), row) for file, row in below.items())
        del there[name]
    return there


def listed_below(run: str, node: str, folder: str) -> Dict[str, Any]:
    """Return what `being_written` lists of a node; the node need not have this program yet."""
    argv = ["python3", "-", os.path.join(run, folder)]
    return json.loads(ask(run, node, "list", argv, text(inspect.getsource(being_written))).splitlines()[-1])


VERBS = {"gather": gather, "give": give}


main = functools.partial(replica.main, verbs=VERBS)
