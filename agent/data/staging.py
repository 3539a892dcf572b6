"""Make a run's data on the launcher, in a container of its own where there are any: fetch, check, unpack, clean, shuffle, cut into pieces.

``staging.py PLAN`` reads the plan (microcluster/jobs/run_spec.py) and leaves finished files with their sums in its folder.
Every step is left out whose results are whole by its stamp, which holds their hashes, the plan and what is known of the archives: so a
killed staging goes on with the step that it was at. Every step makes the same of the same.
"""

import os
import shutil
import signal
import subprocess
import sys
from functools import partial
from typing import Any, Callable, Dict, List, Optional, Sequence

from agent.data import archives, text_cleaning
from agent.data.archives import Fetcher
from agent.data.progress import Refused, say
from agent.data.text_cleaning import count_lines
from agent.machine import hash_of, read_json, try_lock, write_json, write_whole

PIECES = [sys.executable, os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data.text_cleaning"]
REFUSED, TERMINATED = 1, 143
LINES_THAT_MATTER = 5
FOLDERS = ("archives", "raw", "texts", "cleaned", "shuffled", "stamps")
"""Folders of a staging while it works, some 10 GB for WMT16; gone when its data are finished."""
SUMS, ID, RECORDS = "SHA256SUMS", "ID", "archives.json"
EIGHT = 8
"""Only training pads the vocabulary to a multiple of it: with another number the first evaluation fails."""


class Staging:
    """One plan in its folders; ``tool`` runs the program that knows sentence pieces, and may be another in tests."""

    def __init__(self, plan: Dict[str, Any], tool: Optional["Tool"] = None) -> None:
        self.plan, self.work, self.folder = plan, plan["work"], plan["folder"]
        self.fetcher = Fetcher(self._at("archives"), os.path.join(self.folder, RECORDS))
        self.tool = tool or Tool(self.work)
        for folder in (self.folder, self._at("stamps")):
            os.makedirs(folder, exist_ok=True)

    def _at(self, *names: str) -> str:
        return os.path.join(self.work, *names)

    def carry_out(self) -> None:
        sums = os.path.join(self.folder, SUMS)
        if os.path.exists(sums):  # What it speaks of is about to change.
            os.remove(sums)
        {"recipe": self._make, "tar": self._unpack, "files": self._take, "whole": self._take_whole}[self.plan["kind"]]()
        check(self.folder, self.plan)
        seal(self.folder, self.plan)
        for name in FOLDERS:
            shutil.rmtree(os.path.join(self.work, name), ignore_errors=True)

    def _make(self) -> None:
        """Make the files from archives of raw texts."""
        paths = [self.fetcher.fetch(archive) for archive in self.plan["archives"]]
        self.follows_from = [self.plan, read_json(self.fetcher.records)]
        texts, train = self._texts(paths), self.plan["train"]
        cleaned = self._pass("cleaned", [texts[name] for name in train], self.plan["lengths"], text_cleaning.clean)
        shuffled = self._pass("shuffled", cleaned, self.plan["seed"], text_cleaning.shuffle)
        self._compare_with_usual(shuffled[0])
        texts.update(zip(train, shuffled))
        self._encode(texts, self._learn(shuffled))

    def _texts(self, paths: Sequence[str]) -> Dict[str, str]:
        """Take the raw texts out of the archives; return {name: path} of them."""
        members = [tuple(member) for sources in self.plan["texts"].values() for member in sources]
        for archive, path in zip(self.plan["archives"], paths):
            targets = dict((member[1], self._raw(*member)) for member in members if member[0] == archive["name"])
            results = sorted(targets.values())
            self._have("unpacked-" + archive["name"], results, partial(archives.take, path, targets.get, results))
        texts = {}
        for name, sources in sorted(self.plan["texts"].items()):
            texts[name] = self._at("texts", name)
            gather = partial(text_cleaning.gather, [self._raw(*source) for source in sources], texts[name])
            self._have("text-" + name, [texts[name]], gather)
        return texts

    def _raw(self, archive: str, member: str) -> str:
        return self._at("raw", archive, os.path.basename(member))

    def _have(self, name: str, results: Sequence[str], make: Callable[[], Any]) -> None:
        """Have the files ``results`` (paths), which ``make`` makes where they are not whole."""
        stamp = self._at("stamps", name + ".json")
        known = read_json(stamp)
        if known.get("from") == self.follows_from and known["results"] == hashes_of(results):
            say(name + ": is there already")
            return
        for path in results:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        make()
        write_json(stamp, {"from": self.follows_from, "results": hashes_of(results)})

    def _pass(self, what: str, sources: Sequence[str], setting: Any, make: Callable[..., Any]) -> List[str]:
        """Make one file of each, all in one go; return their paths."""
        targets = [self._at(what, name) for name in self.plan["train"]]
        self._have(what, targets, partial(make, sources, targets, setting))
        return targets

    def _compare_with_usual(self, mixed: str) -> None:
        usual, lines = self.plan.get("usual_lines"), text_cleaning.count_lines(mixed)
        if usual and lines != usual:
            say("note: {} pairs are left after cleaning, where {} were published".format(lines, usual))

    def _learn(self, texts: List[str]) -> str:
        """Learn the pieces of both languages together; return the path of the model."""
        name, size = self.plan["vocabulary"]
        prefix = os.path.join(self.folder, os.path.splitext(name)[0])
        job = ["learn", prefix, str(size), " ".join(self.plan["pieces"])] + texts
        self._have("pieces", [prefix + ".model", prefix + ".vocab"], partial(self.tool.run, [job]))
        return prefix + ".model"

    def _encode(self, texts: Dict[str, str], model: str) -> None:
        """Cut every text into pieces, side by side."""
        names = sorted(self.plan["encode"].items())
        jobs = [["encode", model, texts[text], os.path.join(self.folder, name)] for name, text in names]
        self._have("encoded", [job[-1] for job in jobs], partial(self.tool.run, jobs))

    def _unpack(self) -> None:
        """Take finished files out of one tar, from whatever folder in it."""
        path, folder = self.fetcher.fetch(self.plan["archives"][0]), self.folder
        targets = dict((name, os.path.join(folder, name)) for name in self.plan["files"] + self.plan["optional"])
        needed = [targets[name] for name in self.plan["files"]]
        archives.take(path, lambda name: targets.get(os.path.basename(name)), needed)

    def _take_whole(self) -> None:
        """Take all of a tar, or of a folder that was sent here, with its folders."""
        content = self.plan["content"]
        shutil.rmtree(content, ignore_errors=True)
        if "tree" in self.plan:
            shutil.copytree(self.plan["tree"], content, symlinks=True)
        else:
            archives.take(self.fetcher.fetch(self.plan["archives"][0]), partial(os.path.join, content), ())

    def _take(self) -> None:
        """Take finished files that were sent here."""
        for file in self.plan["sent"]:
            found = hash_of(file["path"]) or "nothing"
            if found != file["sha256"]:
                other = "taking {}: its sha256 is {} instead of {}. Send it again: make up"
                raise Refused(other.format(file["path"], found, file["sha256"]))
            shutil.copyfile(file["path"], os.path.join(self.folder, file["name"]))


def hashes_of(paths: Sequence[str]) -> Dict[str, Optional[str]]:
    return dict((path, hash_of(path)) for path in paths)


class Tool:
    """Runs the program that knows sentence pieces as processes of their own, so that a signal ends them at once."""

    def __init__(self, work: str) -> None:
        self.log = os.path.join(work, "stamps", "pieces.log")

    def run(self, jobs: List[List[str]]) -> None:
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
                code = max(codes, key=abs)
                raise Refused("cutting into pieces: ended with exit code {}. {}".format(code, " ".join(last)))


def main(path: str) -> int:
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


def on_term(number: int, frame: Any) -> None:
    sys.exit(TERMINATED)


def check(folder: str, plan: Dict[str, Any]) -> None:
    """Raise unless lines pair and the vocabulary has the size that the model is made for."""
    problems = []
    for pair in plan["pairs"]:
        names = " and ".join(pair)
        first, second = (count_lines(os.path.join(folder, name)) for name in pair)
        if first != second or not first:
            problems.append("{} have {} and {} lines, which make no pairs".format(names, first, second))
        else:
            say("{}: {} lines each".format(names, first))
    if plan["vocabulary"]:
        problems += flaws_of_vocabulary(folder, *plan["vocabulary"])
    if plan.get("words"):
        problems += flaws_of_words(folder, *plan["words"])
    if problems:
        raise Refused("checking the data: " + "; ".join(problems) + ". Nothing was trained.")


def flaws_of_vocabulary(folder: str, vocabulary: str, wanted: int) -> List[str]:
    """Return what is wrong with the number of pieces, which stand on a line each."""
    pieces = count_lines(os.path.join(folder, vocabulary))
    if pieces % EIGHT:
        return ["{} has {} lines, which is no multiple of {}".format(vocabulary, pieces, EIGHT)]
    return ["{} has {} lines instead of {}".format(vocabulary, pieces, wanted)] if pieces != wanted else []


def flaws_of_words(folder: str, text: str, wanted: int) -> List[str]:
    """Return what is wrong with the number of different words of a text, in which the end of a line is a word too."""
    found = {"<EOS>"}
    with open(os.path.join(folder, text), encoding="utf-8", errors="replace") as lines:
        for line in lines:
            found.update(line.split())
    words = "{} has {} different words, line ends counted as one, instead of the {} that the program insists on"
    return [words.format(text, len(found), wanted)] if len(found) != wanted else []


def seal(folder: str, plan: Dict[str, Any]) -> None:
    """Name the data and write the sums of all that belongs to them; with the sums they are finished."""
    with open(os.path.join(folder, ID), "w") as file:
        file.write(plan["id"] + "\n")
    names = plan["files"] + plan["optional"] + [ID, RECORDS]
    whole = os.walk(plan.get("content") or "")
    names += sorted(os.path.relpath(os.path.join(where, name), folder) for where, _, files in whole for name in files)
    there = [name for name in names if os.path.exists(os.path.join(folder, name))]
    lines = [hash_of(os.path.join(folder, name)) + "  " + name + "\n" for name in there]
    write_whole(os.path.join(folder, SUMS), "".join(lines))
    say("finished: " + str(len(there)) + " files in " + folder)
