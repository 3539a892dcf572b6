"""The replica of the newest checkpoint on another node: what runs there to receive and send it, and on the launcher to copy it and fetch it back.

A replica is a folder of files with a manifest. A new one grows beside it, shares by hard links what both hold, and takes its place by
renaming one symbolic link: at any moment one whole replica is there, and files that the program has removed since go with the older folder.

Arguments: the run's folder; then on the node ``missing`` or ``receive``, and on the launcher ``copy NODE STEP`` with the names of the files
on standard input, ``copied NODE`` (prints the step of its replica) or ``fetch NODE``. The run's records go with the checkpoint as they stand at that moment:
events, samples, and the files for TensorBoard.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
from typing import Any, BinaryIO, Callable, Dict, Iterable, List, Optional, Sequence

from agent import program
from agent.formats.checkpoints.entries import leads_into, stat_of
from agent.formats.checkpoints.log_folder import checkpoints_in
from agent.kill_run import last_line
from agent.machine import hash_of, read_json, write_whole
from agent.run import document, event_summary
from agent.run.context import runtime_of

MARK = "microcluster-copy "
LINK, SLOTS = "copy", ("copy.a", "copy.b")
MANIFEST = "manifest.json"
NONE = "none"
"""Answer of a node without a replica; no output at all is no answer."""
LINKED = "-> "
"""The beginning of a link's target, which stands in the manifest in place of a hash."""
SPOILT = 3
"""The exit code when the replica arrived and none of its checkpoints is as it was: trying again would not help."""
CURVES = "events."
RECORDS = (event_summary.EVENTS, "samples.jsonl")
"""Records that are written line by line; TensorBoard's files are known by the beginning of their names."""
STILL = "still/"
"""Folder of the records as they were when the last copy began: they grow while they are read."""
SUMS = "sums.json"
"""The hashes of what was copied before: a best model is read once, however often the newest checkpoint changes."""
BROUGHT = "brought"
"""Folder for an incoming replica; it survives a killed fetch, which may have put half a checkpoint in its place."""
LOOK = """
import json, os, sys
link, mark, none = sys.argv[1:]
try:
    os.lstat(link)
    with open(link + "/{}") as file:
        print(mark + str(json.load(file)["step"]))
except FileNotFoundError as error:
    if error.filename != link:
        raise
    print(mark + none)
""".format(MANIFEST)
"""Prints the step of the replica; a disk that cannot be read, or a replica without a manifest, is another error than none."""


class CopyFailed(Exception):
    """The replica is not there or not whole; the argument is a sentence."""


def missing(run: str) -> None:
    """Begin a replica by the manifest on standard input, with what is here already; print the names of what is not."""
    manifest = json.load(sys.stdin)
    slot, before = os.path.join(run, free_slot(run)), os.path.join(run, LINK)
    shutil.rmtree(slot, ignore_errors=True)
    known = read_manifest(before)["files"] if os.path.exists(before) else {}
    absent = []
    for name, wanted in sorted(manifest["files"].items()):
        here, there = os.path.join(before, name), os.path.join(slot, name)
        os.makedirs(os.path.dirname(there), exist_ok=True)
        own = os.path.join(run, name)
        if known.get(name) == wanted and os.path.exists(here) and os.path.getsize(here) == wanted[0]:
            os.link(here, there)
        elif os.path.isfile(own) and os.path.getsize(own) == wanted[0] and hash_of(own) == wanted[1]:
            shutil.copyfile(
                own, there
            )  # A part that this node has written; no link, for the program may write to it again.
        else:
            absent.append(name)
    with open(os.path.join(slot, MANIFEST), "w") as file:
        json.dump(dict(manifest, absent=absent), file)
    print(json.dumps(absent))


def receive(run: str) -> None:
    """Complete the replica from the archive on standard input, and replace the one before."""
    slot = free_slot(run)
    path = os.path.join(run, slot)
    subprocess.check_call(["tar", "-C", path, "-xf", "-"])
    manifest = read_manifest(path)
    files = manifest["files"]
    for name in manifest["absent"]:
        if sum_of(os.path.join(path, name)) != files[name][1]:
            raise CopyFailed(name + " arrived with another hash")
    os.sync()
    new = os.path.join(run, LINK + ".new")
    if os.path.lexists(new):
        os.remove(new)
    os.symlink(slot, new)
    os.rename(new, os.path.join(run, LINK))
    shutil.rmtree(os.path.join(run, free_slot(run)), ignore_errors=True)


def free_slot(run: str) -> str:
    """Return the folder in which the next replica grows: the one that the link does not name."""
    link = os.path.join(run, LINK)
    return SLOTS[1] if os.path.islink(link) and os.readlink(link) == SLOTS[0] else SLOTS[0]


def read_manifest(folder: str) -> Dict[str, Any]:
    with open(os.path.join(folder, MANIFEST)) as file:
        return json.load(file)


def copy(run: str, node: str, step: str) -> None:
    """Let ``node`` have the files that standard input names and no other ones; what it has already is not sent again."""
    files = described(run, os.fsdecode(sys.stdin.buffer.read()).split("\0") + frozen_records(run))
    manifest = {"step": int(step), "files": files}
    there = program(run, "checkpoints.replica", run)  # On another machine everything lies at the same place.
    absent = json.loads(ask(run, node, "missing", there + ["missing"], text(json.dumps(manifest))).splitlines()[-1])
    send_files(run, run, node, absent, there + ["receive"])
    print(MARK + str(len(absent)))


def send_files(folder: str, run: str, node: str, names: Iterable[str], argv: Sequence[str]) -> None:
    """Let a command on another machine read an archive of files below a folder; a link to a file elsewhere comes as that file."""

    def archive(pipe: BinaryIO) -> None:
        with tarfile.open(fileobj=pipe, mode="w|") as files:
            for name in names:
                path = os.path.join(folder, name)
                files.dereference = not stays_link(path, run)
                files.add(path, name, recursive=False)

    ask(run, node, "receive", argv, archive)


def stays_link(path: str, run: str) -> bool:
    """Return whether a path is a link within the log folder, or one that leads nowhere: what another one leads to is copied."""
    return os.path.islink(path) and (not os.path.isfile(path) or leads_into(path, os.path.join(run, "logdir")))


def sum_of(path: str, run: Optional[str] = None) -> Optional[str]:
    """Return the hash of a file, of a link where it leads; None where there is neither. ``run`` is given where the file is at home."""
    return LINKED + os.readlink(path) if (stays_link(path, run) if run else os.path.islink(path)) else hash_of(path)


def copied(run: str, node: str) -> None:
    """Print the step of the copy that ``node`` has, or that it has none; before its first copy it lacks this program too."""
    print(ask(run, node, "step", ["python3", "-c", LOOK, os.path.join(run, LINK), MARK, NONE]))


def fetch(run: str, node: str) -> None:
    """Take the copy of ``node`` back, after a look at every hash; what is spoilt stays away."""
    brought = os.path.join(run, BROUGHT)
    shutil.rmtree(brought, ignore_errors=True)
    os.mkdir(brought)
    try:
        take_over(run, node, brought)
    finally:  # On a disk without room for it nothing else would have room either.
        shutil.rmtree(brought, ignore_errors=True)


def take_over(run: str, node: str, brought: str) -> None:
    """Receive the copy in the folder ``brought``, and put what is sound of it where it belongs."""
    receive_files(run, node, os.path.join(run, LINK), ["."], brought)
    files = read_manifest(brought)["files"]
    if not all(os.path.lexists(os.path.join(brought, name)) for name in files):
        raise CopyFailed("the copy of " + node + " did not arrive whole")
    whose = owners(run)
    spoilt = set(whose.get(name, name) for name in files if sum_of(os.path.join(brought, name)) != files[name][1])
    sound = [name for name in sorted(files) if whose.get(name, name) not in spoilt]
    records = [name for name in sound if name.startswith(STILL)]
    parts = [name for name in sound if name not in records]
    if not set(parts) & set(whose):
        print(" and ".join(sorted(spoilt)) + " of " + node + " has another hash than when it was copied")
        sys.exit(SPOILT)
    for name in records:
        go_on_with(os.path.join(brought, name), os.path.join(run, name[len(STILL) :]))
    # The checkpoint last: once it is here, nobody asks for this copy again.
    for name in sorted(parts, key=lambda name: name in whose):
        home = os.path.join(run, name)
        # What others need too, as a list of checkpoints, is newer here.
        if name in whose or not os.path.lexists(home):
            os.makedirs(os.path.dirname(home), exist_ok=True)
            os.rename(os.path.join(brought, name), home)
    if spoilt:
        print("left behind: " + " and ".join(sorted(spoilt)))


def go_on_with(copied: str, home: str) -> None:
    """Let a record be as it was copied, and go on with what only the one that is here has.

    Those of lines are written in their place, for the supervisor has them open; one that is cut off there comes again, because
    the checkpoint is not here yet.
    """
    if os.path.basename(home) in RECORDS:
        go_on(lines_of(copied), home)
    elif not os.path.exists(home) or os.path.getsize(home) < os.path.getsize(copied):
        os.makedirs(os.path.dirname(home), exist_ok=True)
        os.rename(copied, home)


def go_on(before: List[bytes], home: str) -> None:
    """Let a record of lines begin with those, and go on with what only it has."""
    known, written = set(before), lines_of(home)
    with open(home, "wb") as file:
        file.writelines(before + [line for line in written if line not in known])
    event_summary.write(os.path.dirname(home), afresh=True)


def lines_of(path: str) -> List[bytes]:
    """Return the whole lines of a file; the last one may just have been written when it was copied."""
    if not os.path.exists(path):
        return []
    with open(path, "rb") as file:
        return [line for line in file if line.endswith(b"\n")]


def frozen_records(run: str) -> List[str]:
    """Copy the records, which grow while they are read; return the names of the copies."""
    curves = sorted(name for name in os.listdir(os.path.join(run, "logdir")) if name.startswith(CURVES))
    names = [name for name in RECORDS if os.path.exists(os.path.join(run, name))]
    names += ["logdir/" + name for name in curves]
    os.makedirs(os.path.join(run, STILL, "logdir"), exist_ok=True)
    for name in names:
        shutil.copyfile(os.path.join(run, name), os.path.join(run, STILL + name))
    return [STILL + name for name in names]


def described(run: str, names: Iterable[str]) -> Dict[str, Any]:
    """Return {name: [bytes, SHA-256]}; a file that is as it was the last time is not read again."""
    known, now = read_json(os.path.join(run, SUMS)), {}
    for name in names:
        path = os.path.join(run, name)
        found = stat_of(path)
        same = [found.st_size, found.st_mtime_ns, found.st_ino]
        before = known.get(name)
        now[name] = before if before and before[:3] == same else same + [sum_of(path, run)]
    write_whole(os.path.join(run, SUMS), json.dumps(now))
    return dict((name, [now[name][0], now[name][3]]) for name in names)


def owners(run: str) -> Dict[str, str]:
    """Return {file: the checkpoint that it is a part of} of what was brought: a part of a checkpoint is worth nothing alone."""
    checkpoints = checkpoints_in(run, BROUGHT, "logdir")
    found = ((name, file) for _, name in checkpoints.found() for file in checkpoints.files_of(name))
    return dict(("logdir/" + file, "logdir/" + name) for name, file in found)


def beyond(run: str, node: str, argv: Sequence[str]) -> List[str]:
    """Return the words that run ``argv`` on another machine."""
    return runtime_of(document.read(os.path.join(run, document.FILE))).beyond(node, argv, True)


def ask(run: str, node: str, what: str, argv: Sequence[str], give: Optional[Callable[[BinaryIO], Any]] = None) -> str:
    """Return what a command printed on another machine; raise when it failed. ``give`` writes its standard input, which it reads first."""
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    child = subprocess.Popen(beyond(run, node, argv), **options)
    try:
        with contextlib.suppress(BrokenPipeError):
            (give or bool)(child.stdin)
    finally:
        out, _ = child.communicate()
    printed = out.decode("utf-8", "replace").strip()
    if child.returncode:
        last = last_line(child.returncode, printed)
        raise CopyFailed("{}: `{}` ended with exit code {} ({})".format(node, what, child.returncode, last))
    return printed


def text(value: str) -> Callable[[BinaryIO], Any]:
    """Return what gives a text to :func:`ask`."""
    return lambda pipe: pipe.write(os.fsencode(value))


def receive_files(run: str, node: str, source: str, names: Iterable[str], target: str, *options: str) -> None:
    """Bring what ``names`` say of a folder of another machine into one here."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    tar = ["tar", "-C", source, "--null", "-T", "-", "--ignore-failed-read", "-cf", "-"] + list(options)
    given = subprocess.Popen(beyond(run, node, tar), **pipes)
    sink = subprocess.Popen(["tar", "-C", target, "-xf", "-"], stdin=given.stdout)
    given.stdout.close()
    with contextlib.suppress(BrokenPipeError):
        given.stdin.write(os.fsencode("\0".join(names)))
        given.stdin.close()
    if sink.wait() or given.wait():
        raise CopyFailed("the copy of " + node + " did not arrive whole")


VERBS = {
    "missing": missing,
    "receive": receive,
    "copy": copy,
    "copied": copied,
    "fetch": fetch,
}


def main(run: str, verb: str, *arguments: str, verbs: Dict[str, Callable[..., None]] = VERBS) -> None:
    try:
        verbs[verb](run, *arguments)
    except (CopyFailed, document.SpecError, OSError, subprocess.CalledProcessError) as error:
        sys.exit(str(error))
