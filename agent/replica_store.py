"""Keeps what a run would go on from on another machine too, and takes it back, and runs in the containers.

On the launcher: ``copy NODE STEP FILE...``, ``copied NODE`` (prints the step of its copy), ``bring NODE``. On the other machine,
called by these over ssh: ``lacks``, ``take NAME...``, ``step``, ``give``. The copy there is a folder of files with a manifest.
A new one grows beside it, shares by hard links what both hold, and takes its place by one renaming of a symbolic link: at any
moment one whole copy can be had, and what the framework has removed since goes with the older folder. What the run has told of
itself goes with it as it stands at that moment: the events, the samples, and the framework's own files for TensorBoard.
"""

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys

from agent import program

MARK = "microcluster-copy "
NONE = "none"
"""What a machine says that has no copy; no word at all is no answer."""
SPOILT = 3
"""The exit code when the copy arrived and none of its checkpoints is as it was."""
LINK, SLOTS = "copy", ("copy.a", "copy.b")
MANIFEST = "manifest.json"
CURVES = "events."
RECORDS = ("progress.jsonl", "samples.jsonl")
"""What is written to line by line; the framework's own files for TensorBoard are told by how their names begin."""
STILL = "still/"
"""Where the launcher keeps the records as they were when the last copy began: they grow while they are read."""
SUMS = "sums.json"
"""The hashes of what was copied before: a best model is read once, however often the newest checkpoint changes."""
BEST_POINTER = "logdir/best_models/checkpoint"
INDEX = ".index"
"""What the name of one file of every checkpoint ends with."""
PIECE = 1 << 20


LOOK = """
import os, sys
try:
    os.lstat(sys.argv[1])
except FileNotFoundError:
    print(sys.argv[2])
else:
    os.execvp(sys.argv[3], sys.argv[3:])
"""
"""Whether there is a copy; a disk that cannot be read is another error than a file that is not there."""


class CopyFailed(Exception):
    """The copy is not there or not whole; the argument is a sentence."""


class Spoilt(CopyFailed):
    """The copy has changed since it was made; trying again would not help."""


def copy(run, node, step, *names):
    """Let ``node`` have the files and no other ones; what it has already is not sent again."""
    files = described(run, list(names) + stills(run))
    manifest = {"step": int(step), "files": files}
    lacking = json.loads(on(run, node, ["lacks"], json.dumps(manifest)).splitlines()[-1])
    tar = subprocess.Popen(["tar", "-C", run, "-cf", "-", "-T", os.devnull] + lacking, stdout=subprocess.PIPE)
    try:
        on(run, node, ["take"] + lacking, tar.stdout)
    finally:
        tar.stdout.close()
        code = tar.wait()
    if code:
        raise CopyFailed("reading the files to be copied ended with exit code " + str(code))
    print(MARK + json.dumps({"bytes": sum(files[name][0] for name in lacking), "files": len(lacking)}))


def copied(run, node):
    """Print the step of the copy that ``node`` has, or that it has none; before its first copy it lacks this program too."""
    look = ["python", "-c", LOOK, os.path.join(run, LINK), MARK + NONE] + program(run, "replica_store", run, "step")
    print(answer(way(run) + [node, line(look)], node, "step"))


def bring(run, node):
    """Take the copy of ``node`` back, after a look at every hash; what is spoilt stays away."""
    brought = os.path.join(run, "brought")
    shutil.rmtree(brought, ignore_errors=True)
    os.mkdir(brought)
    try:
        take_home(run, node, brought)
    finally:  # On a disk without room for it nothing else would have room either.
        shutil.rmtree(brought, ignore_errors=True)


def take_home(run, node, brought):
    """Receive the copy in the folder ``brought``, and put what is sound of it where it belongs."""
    given = subprocess.Popen(words(run, node, ["give"]), stdout=subprocess.PIPE)
    code = subprocess.call(["tar", "-C", brought, "-xf", "-"], stdin=given.stdout)
    given.stdout.close()
    if given.wait() or code:
        raise CopyFailed("the copy of " + node + " did not arrive whole")
    files = read_manifest(brought)["files"]
    spoilt = set(stem(name) for name in files if digest(os.path.join(brought, name)) != files[name][1])
    sound = [name for name in sorted(files) if stem(name) not in spoilt]
    if not any(name.endswith(INDEX) for name in sound):  # Best models hold all variables too.
        raise Spoilt(" and ".join(sorted(spoilt)) + " of " + node + " has another hash than when it was copied")
    for name in (name for name in sound if name.startswith(STILL)):
        go_on_with(os.path.join(brought, name), os.path.join(run, name[len(STILL) :]))
    # The checkpoint last: once it is here, nobody asks for this copy again.
    for name in (name for name in sound if not name.startswith(STILL)):
        home = os.path.join(run, name)
        # The list of best models that is here is newer than the one that was copied.
        if not (name == BEST_POINTER and os.path.exists(home)):
            os.makedirs(os.path.dirname(home), exist_ok=True)
            os.rename(os.path.join(brought, name), home)
    if spoilt:
        print("left behind: " + " and ".join(sorted(spoilt)))


def go_on_with(copied, home):
    """Let a record be as it was copied, and go on with what only the one that is here has.

    Those of lines are written in their place, for the supervisor has them open; one that is cut off there comes again, because
    the checkpoint is not here yet.
    """
    if os.path.basename(home) in RECORDS:
        before, written = lines_of(copied), lines_of(home)
        known = set(before)
        with open(home, "wb") as file:
            file.writelines(before + [line for line in written if line not in known])
    elif not os.path.exists(home) or os.path.getsize(home) < os.path.getsize(copied):
        os.makedirs(os.path.dirname(home), exist_ok=True)
        os.rename(copied, home)


def lines_of(path):
    """Return the whole lines of a file; the last one may just have been written when it was copied."""
    if not os.path.exists(path):
        return []
    with open(path, "rb") as file:
        return [line for line in file if line.endswith(b"\n")]


def stills(run):
    """Let the records be read in peace: return the names of copies of what grows, which lie beside the log folder."""
    curves = sorted(name for name in os.listdir(os.path.join(run, "logdir")) if name.startswith(CURVES))
    names = [name for name in RECORDS if os.path.exists(os.path.join(run, name))]
    names += ["logdir/" + name for name in curves]
    os.makedirs(os.path.join(run, STILL, "logdir"), exist_ok=True)
    for name in names:
        shutil.copyfile(os.path.join(run, name), os.path.join(run, STILL + name))
    return [STILL + name for name in names]


def described(run, names):
    """Return {name: [bytes, SHA-256]}; a file that is as it was the last time is not read again."""
    known, now = {}, {}
    if os.path.exists(os.path.join(run, SUMS)):
        with open(os.path.join(run, SUMS)) as file:
            known = json.load(file)
    for name in names:
        path = os.path.join(run, name)
        found = os.stat(path)
        same = [found.st_size, found.st_mtime_ns, found.st_ino]
        before = known.get(name)
        now[name] = before if before and before[:3] == same else same + [digest(path)]
    with open(os.path.join(run, SUMS + ".new"), "w") as file:
        json.dump(now, file)
    os.rename(os.path.join(run, SUMS + ".new"), os.path.join(run, SUMS))
    return dict((name, [now[name][0], now[name][3]]) for name in names)


def lacks(run):
    """Begin a copy by the manifest on standard input, with what is here already; print the names of what is not."""
    manifest = json.load(sys.stdin)
    slot, before = os.path.join(run, spare(run)), os.path.join(run, LINK)
    shutil.rmtree(slot, ignore_errors=True)
    known = read_manifest(before)["files"] if os.path.exists(before) else {}
    lacking = []
    for name, wanted in sorted(manifest["files"].items()):
        here, there = os.path.join(before, name), os.path.join(slot, name)
        os.makedirs(os.path.dirname(there), exist_ok=True)
        if known.get(name) == wanted and os.path.exists(here) and os.path.getsize(here) == wanted[0]:
            os.link(here, there)
        else:
            lacking.append(name)
    with open(os.path.join(slot, MANIFEST), "w") as file:
        json.dump(manifest, file)
    print(json.dumps(lacking))


def take(run, *names):
    """Complete the copy from the archive on standard input, and let it take the place of the one before."""
    slot = spare(run)
    path = os.path.join(run, slot)
    subprocess.check_call(["tar", "-C", path, "-xf", "-"])
    files = read_manifest(path)["files"]
    for name in names:
        if digest(os.path.join(path, name)) != files[name][1]:
            raise CopyFailed(name + " arrived with another hash")
    os.sync()
    new = os.path.join(run, LINK + ".new")
    if os.path.lexists(new):
        os.remove(new)
    os.symlink(slot, new)
    os.rename(new, os.path.join(run, LINK))
    shutil.rmtree(os.path.join(run, spare(run)), ignore_errors=True)


def step(run):
    """Print the step of the copy that is here."""
    if os.path.exists(os.path.join(run, LINK)):
        print(MARK + str(read_manifest(os.path.join(run, LINK))["step"]))


def give(run):
    """Print the copy as an archive."""
    subprocess.check_call(["tar", "-C", os.path.join(run, LINK), "-cf", "-", "."])


def spare(run):
    """Return the folder that the next copy grows in: the one that is not the copy."""
    link = os.path.join(run, LINK)
    return SLOTS[1] if os.path.islink(link) and os.readlink(link) == SLOTS[0] else SLOTS[0]


def read_manifest(folder):
    with open(os.path.join(folder, MANIFEST)) as file:
        return json.load(file)


def stem(name):
    """Return what the files of one checkpoint have in common."""
    return name.rpartition(".")[0] or name


def digest(path):
    """Return the SHA-256 of a file, or None where there is none."""
    found = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            for piece in iter(lambda: file.read(PIECE), b""):
                found.update(piece)
    except FileNotFoundError:
        return None
    return found.hexdigest()


def way(run):
    """Return the words of the way to another machine."""
    with open(os.path.join(run, "job.json")) as file:
        return json.load(file)["ssh"]


def line(argv):
    return " ".join(shlex.quote(word) for word in argv)


def words(run, node, argv):
    """Return the words that run this program on another machine, where everything lies at the same place."""
    return way(run) + [node, line(program(run, "replica_store", run, *argv))]


def on(run, node, argv, given=None):
    """Return what this program printed on another machine; ``given`` is its standard input, a text or a file."""
    return answer(words(run, node, argv), node, argv[0], given)


def answer(command, node, verb, given=None):
    """Return what a command printed; raise when it failed, whatever the reason."""
    text = given.encode() if isinstance(given, str) else None
    source = given if hasattr(given, "fileno") else subprocess.PIPE
    child = subprocess.Popen(command, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0)
    out, _ = child.communicate(text)
    said = out.decode("utf-8", "replace").strip()
    if child.returncode:
        last = (said.splitlines() or ["no word"])[-1]
        raise CopyFailed("{}: `{}` ended with exit code {} ({})".format(node, verb, child.returncode, last))
    return said


VERBS = {"copy": copy, "copied": copied, "bring": bring, "lacks": lacks, "take": take, "step": step, "give": give}


def main(run, verb, *rest):
    try:
        VERBS[verb](run, *rest)
    except Spoilt as error:
        print(error)
        sys.exit(SPOILT)
    except (CopyFailed, OSError, subprocess.CalledProcessError) as error:
        sys.exit(str(error))
