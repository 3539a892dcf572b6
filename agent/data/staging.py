"""Make a run's data, in a container of its own on the launcher: fetch, check, unpack, clean, shuffle, cut into pieces.

``staging.py PLAN`` reads the plan (microcluster/jobs/run_spec.py) and leaves finished files with their sums in its folder.
Every step is left out whose results are whole by its stamp, which holds what they follow from and their hashes: so a killed staging goes on
with the step that it was at.
"""

import os
import shutil
import signal
import subprocess
import sys
from functools import partial

from agent.data import archives, text_cleaning
from agent.data.archives import Fetcher
from agent.data.progress import Refused, say
from agent.data.text_cleaning import count_lines
from agent.machine import hash_of, read_json, try_lock, write_json, write_whole

PIECES = [sys.executable, os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data.text_cleaning"]
REFUSED, TERMINATED = 1, 143
LINES_THAT_MATTER = 5
FOLDERS = ("archives", "raw", "texts", "cleaned", "shuffled", "sent", "stamps")
"""What a staging keeps while it works, some 10 GB for WMT16; gone when its data are finished."""
SUMS, ID, RECORDS = "SHA256SUMS", "ID", "archives.json"
EIGHT = 8
"""Only training pads the vocabulary to a multiple of it: with another number the first evaluation fails."""


class Staging:
    """One plan in its folders; ``tool`` runs the program that knows sentence pieces, and may be another in tests."""

    def __init__(self, plan, tool=None):
        self.plan, self.work, self.folder = plan, plan["work"], plan["folder"]
        self.fetcher = Fetcher(self._at("archives"), os.path.join(self.folder, RECORDS))
        self.tool = tool or Tool(self.work)
        for folder in (self.folder, self._at("stamps")):
            os.makedirs(folder, exist_ok=True)

    def _at(self, *names):
        return os.path.join(self.work, *names)

    def carry_out(self):
        sums = os.path.join(self.folder, SUMS)
        if os.path.exists(sums):  # What it speaks of is about to change.
            os.remove(sums)
        {"recipe": self._make, "tar": self._unpack, "files": self._take}[self.plan["kind"]]()
        check(self.folder, self.plan)
        seal(self.folder, self.plan)
        for name in FOLDERS:
            shutil.rmtree(os.path.join(self.work, name), ignore_errors=True)

    def _make(self):
        """Make the files from archives of raw texts."""
        texts, train = self._texts(), self.plan["train"]
        cleaned = self._pass("cleaned", train, texts, self.plan["lengths"], text_cleaning.clean)
        mixed = self._pass("shuffled", train, cleaned, self.plan["seed"], text_cleaning.shuffle)
        self._compare_with_usual(mixed)
        self._encode(dict(texts, **mixed), *self._learn(mixed))

    def _texts(self):
        """Return {name: (path, sha256)} of the raw texts."""
        raw, wanted, known = self._at("raw"), {}, {}
        for sources in self.plan["texts"].values():
            for archive, member in sources:
                wanted.setdefault(archive, {})[member] = os.path.join(raw, archive, os.path.basename(member))
        for archive in self.plan["archives"]:
            path, members = self.fetcher.fetch(archive), wanted.get(archive["name"], {})
            follows_from = {"archive": hash_of(path), "members": sorted(members)}
            results = sorted(members.values())
            unpack = partial(archives.take, path, members.get, results)
            known.update(self._have("unpacked-" + archive["name"], follows_from, results, unpack))
        found = {}
        for name, sources in sorted(self.plan["texts"].items()):
            paths, target = [wanted[archive][member] for archive, member in sources], self._at("texts", name)
            gather = partial(text_cleaning.gather, paths, target)
            made = self._have("text-" + name, [known[path] for path in paths], [target], gather)
            found[name] = (target, made[target])
        return found

    def _have(self, name, follows_from, results, make):
        """Have the files ``results`` (paths), which ``make`` makes where they are not whole; return {path: sha256} of them.

        What the results follow from, as JSON, has to change when they do: the hashes of what goes in, and every setting.
        """
        stamp = self._at("stamps", name + ".json")
        known = read_json(stamp)
        if known.get("from") == follows_from and known["results"] == hashes_of(results):
            say(name + ": is there already")
            return known["results"]
        for path in results:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        make()
        made = hashes_of(results)
        write_json(stamp, {"from": follows_from, "results": made})
        return made

    def _pass(self, what, names, before, setting, make):
        """Make files of equal names from some, all in one go; return {name: (path, sha256)}."""
        sources = [before[name][0] for name in names]
        targets = [self._at(what, name) for name in names]
        follows_from = {"files": [before[name][1] for name in names], "setting": setting}
        made = self._have(what, follows_from, targets, lambda: make(sources, targets, setting))
        return dict((name, (path, made[path])) for name, path in zip(names, targets))

    def _compare_with_usual(self, mixed):
        usual = self.plan.get("usual_lines")
        lines = text_cleaning.count_lines(sorted(mixed.values())[0][0])
        if usual and lines != usual:
            say("note: " + str(lines) + " pairs are left after cleaning, where " + str(usual) + " were published")

    def _learn(self, mixed):
        """Learn the pieces of both languages together; return path and hash of the model."""
        prefix = os.path.join(self.folder, os.path.splitext(self.plan["vocabulary"][0])[0])
        files = [mixed[name][0] for name in self.plan["train"]]
        size = str(self.plan["vocabulary"][1])
        flags = " ".join(self.plan["pieces"])
        follows_from = {"files": [mixed[name][1] for name in self.plan["train"]], "size": size, "flags": flags}
        model, learn = prefix + ".model", partial(self.tool.run, [["learn", prefix, size, flags] + files])
        return model, self._have("pieces", follows_from, [model, prefix + ".vocab"], learn)[model]

    def _encode(self, texts, model, sha256):
        """Cut every text into pieces, side by side."""
        jobs, follows_from = [], [sha256]
        for name, text in sorted(self.plan["encode"].items()):
            source, source_sha256 = texts[text]
            follows_from.append(source_sha256)
            jobs.append(["encode", model, source, os.path.join(self.folder, name)])
        self._have("encoded", follows_from, [job[-1] for job in jobs], partial(self.tool.run, jobs))

    def _unpack(self):
        """Take finished files out of one tar, from whatever folder in it."""
        path, folder = self.fetcher.fetch(self.plan["archives"][0]), self.folder
        targets = dict((name, os.path.join(folder, name)) for name in self.plan["files"] + self.plan["optional"])
        needed = [targets[name] for name in self.plan["files"]]
        archives.take(path, lambda name: targets.get(os.path.basename(name)), needed)

    def _take(self):
        """Take finished files that were sent here."""
        for file in self.plan["sent"]:
            found = hash_of(file["path"]) or "nothing"
            if found != file["sha256"]:
                other = "taking {}: its sha256 is {} instead of {}. Send it again: make up"
                raise Refused(other.format(file["path"], found, file["sha256"]))
            target = os.path.join(self.folder, file["name"])
            if os.path.lexists(target):
                os.remove(target)
            os.link(file["path"], target)


def hashes_of(paths):
    return dict((path, hash_of(path)) for path in paths)


class Tool:
    """Runs the program that knows sentence pieces as processes of their own, so that a signal ends them at once."""

    def __init__(self, work):
        self.log = os.path.join(work, "stamps", "pieces.log")

    def run(self, jobs):
        """Run it once for each list of arguments, side by side; raise when one fails, after all have ended."""
        with open(self.log, "w+b") as output:  # The library's own words are hundreds of lines.
            children = []
            try:
                for job in jobs:
                    children.append(subprocess.Popen(PIECES + job, stderr=output))
                codes = [child.wait() for child in children]
            finally:  # We may have been told to end.
                for child in children:
                    if child.poll() is None:
                        child.kill()
                        child.wait()
            if any(codes):
                output.seek(0)
                last = output.read().decode("utf-8", "replace").strip().splitlines()[-LINES_THAT_MATTER:]
                raise Refused(
                    "cutting into pieces: ended with exit code " + str(max(codes, key=abs)) + ". " + " ".join(last)
                )


def main(path):
    signal.signal(signal.SIGTERM, on_term)  # The first process of a container ignores it otherwise.
    plan = read_json(path)
    os.makedirs(plan["work"], exist_ok=True)
    lock = try_lock(os.path.join(plan["work"], "lock"))
    if lock is None:
        say("another staging of the same data is at work")
        return REFUSED
    with lock:
        try:
            Staging(plan).carry_out()
        except Refused as refused:
            say(str(refused))
            return REFUSED
        except OSError as error:
            say("the files of " + plan["folder"] + ": " + str(error))
            return REFUSED
    return 0


def on_term(number, frame):
    sys.exit(TERMINATED)


def check(folder, plan):
    """Raise unless lines pair and the vocabulary has the size that the model is made for."""
    problems = []
    for pair in plan["pairs"]:
        counts = [count_lines(os.path.join(folder, name)) for name in pair]
        if counts[0] != counts[1] or not counts[0]:
            output = " and ".join(pair) + " have " + str(counts[0]) + " and " + str(counts[1]) + " lines"
            problems.append(output + ", which do not pair" if counts[0] != counts[1] else output)
        else:
            say(" and ".join(pair) + ": " + str(counts[0]) + " lines each")
    if plan["vocabulary"]:
        problems += flaws_of_vocabulary(folder, *plan["vocabulary"])
    if plan.get("words"):
        problems += flaws_of_words(folder, *plan["words"])
    if problems:
        raise Refused("checking the data: " + "; ".join(problems) + ". Nothing was trained.")


def flaws_of_vocabulary(folder, vocabulary, wanted):
    """Return what is wrong with the number of pieces, which stand on a line each."""
    pieces = count_lines(os.path.join(folder, vocabulary))
    if pieces % EIGHT:
        return [vocabulary + " has " + str(pieces) + " lines, which is no multiple of " + str(EIGHT)]
    return [vocabulary + " has " + str(pieces) + " lines instead of " + str(wanted)] if pieces != wanted else []


def flaws_of_words(folder, text, wanted):
    """Return what is wrong with the number of different words of a text, in which the end of a line is a word too."""
    found = {"<EOS>"}
    with open(os.path.join(folder, text), encoding="utf-8", errors="replace") as lines:
        for line in lines:
            found.update(line.split())
    words = "{} has {} different words, line ends counted as one, instead of the {} that the program insists on"
    return [words.format(text, len(found), wanted)] if len(found) != wanted else []


def seal(folder, plan):
    """Name the data and write the sums of all that belongs to them; with the sums they are finished."""
    with open(os.path.join(folder, ID), "w") as file:
        file.write(plan["id"] + "\n")
    names = plan["files"] + plan["optional"] + [ID, RECORDS]
    there = [name for name in names if os.path.exists(os.path.join(folder, name))]
    lines = [hash_of(os.path.join(folder, name)) + "  " + name + "\n" for name in there]
    write_whole(os.path.join(folder, SUMS), "".join(lines))
    say("finished: " + str(len(there)) + " files in " + folder)
