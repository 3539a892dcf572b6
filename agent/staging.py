"""Make a run's data, in a container of its own on the launcher: fetch, check, unpack, clean, shuffle, cut into pieces.

``staging.py PLAN`` reads the plan (microcluster/jobs/run_spec.py) and leaves finished files with their sums in its folder.
Every step is left out whose results are whole.
"""

import fcntl
import os
import shutil
import signal
import subprocess
import sys

from agent import staging_archive, staging_checks, text_cleaning
from agent.build_cache import Stages, read_json, sha256_of
from agent.staging_download import Fetcher
from agent.staging_log import Refused, say

PIECES = [sys.executable, os.path.dirname(os.path.abspath(__file__)), "sentencepiece_stage"]
REFUSED, TERMINATED = 1, 143
LINES_THAT_MATTER = 5
FOLDERS = ("archives", "raw", "texts", "cleaned", "shuffled", "sent", "stamps")
"""What a staging keeps while it works, some 10 GB for WMT16; gone when its data are finished."""


class Staging:
    """One plan in its folders; ``tool`` runs the program that knows sentence pieces, and may be another in tests."""

    def __init__(self, plan, fetcher=None, tool=None):
        self.plan, self.work, self.folder = plan, plan["work"], plan["folder"]
        self.stages = Stages(self._at("stamps"))
        records = os.path.join(self.folder, staging_checks.RECORDS)
        self.fetcher = fetcher or Fetcher(self._at("archives"), records)
        self.tool = tool or Tool(self.work)
        os.makedirs(self.folder, exist_ok=True)

    def _at(self, *names):
        return os.path.join(self.work, *names)

    def carry_out(self):
        sums = os.path.join(self.folder, staging_checks.SUMS)
        if os.path.exists(sums):  # What it speaks of is about to change.
            os.remove(sums)
        {"recipe": self._make, "tar": self._unpack, "files": self._take}[self.plan["kind"]]()
        staging_checks.check(self.folder, self.plan)
        staging_checks.seal(self.folder, self.plan)
        for name in FOLDERS:
            shutil.rmtree(os.path.join(self.work, name), ignore_errors=True)

    def _make(self):
        """Make the files from archives of raw texts."""
        texts, hashes = self._texts(), {}
        train = self.plan["train"]
        hashes.update(texts)
        cleaned = self._pass("cleaned", train, texts, self.plan["lengths"], text_cleaning.clean)
        mixed = self._pass("shuffled", train, cleaned, self.plan["seed"], text_cleaning.shuffle)
        self._compare_with_usual(mixed)
        hashes.update(mixed)
        self._encode(hashes, self._learn(mixed))

    def _texts(self):
        """Return {name: (path, sha256)} of the raw texts."""
        raw, wanted, known = self._at("raw"), {}, {}
        for sources in self.plan["texts"].values():
            for archive, member in sources:
                wanted.setdefault(archive, {})[member] = os.path.join(raw, archive, os.path.basename(member))
        for archive in self.plan["archives"]:
            path, members = self.fetcher.fetch(archive), wanted.get(archive["name"], {})
            follows_from = {"archive": sha256_of(path), "members": sorted(members)}
            name = "unpacked-" + archive["name"]
            known.update(self._unpacked(name, follows_from, path, members))
        found = {}
        for name, sources in sorted(self.plan["texts"].items()):
            paths = [wanted[archive][member] for archive, member in sources]
            target = self._at("texts", name)
            follows_from = [known[path] for path in paths]
            made = self.stages.run(
                "text-" + name, follows_from, [target], lambda p=paths, t=target: text_cleaning.gather(p, t)
            )
            found[name] = (target, made[target])
        return found

    def _unpacked(self, name, follows_from, path, members):
        return self.stages.run(
            name, follows_from, sorted(members.values()), lambda: staging_archive.take(path, members)
        )

    def _pass(self, what, names, before, setting, make):
        """Make files of equal names from some, all in one go; return {name: (path, sha256)}."""
        sources = [before[name][0] for name in names]
        targets = [self._at(what, name) for name in names]
        follows_from = {"files": [before[name][1] for name in names], "setting": setting}
        made = self.stages.run(what, follows_from, targets, lambda: make(sources, targets, setting))
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
        results = [prefix + ".model", prefix + ".vocab"]
        made = self.stages.run(
            "pieces", follows_from, results, lambda: self.tool.run([["learn", prefix, size, flags] + files])
        )
        return results[0], made[results[0]]

    def _encode(self, texts, model):
        """Cut every text into pieces, side by side, each with a stamp of its own."""
        missing = []
        for name, text in sorted(self.plan["encode"].items()):
            target, (source, sha256) = os.path.join(self.folder, name), texts[text]
            follows_from = [sha256, model[1]]
            if self.stages.made("encoded-" + name, follows_from, [target]) is None:
                missing.append((name, follows_from, source, target))
        self.tool.run([["encode", model[0], source, target] for _, _, source, target in missing])
        for name, follows_from, _, target in missing:
            self.stages.stamp("encoded-" + name, follows_from, [target])

    def _unpack(self):
        """Take finished files out of one tar."""
        path = self.fetcher.fetch(self.plan["archives"][0])
        staging_archive.take_flat(path, self.plan["files"], self.plan["optional"], self.folder)

    def _take(self):
        """Take finished files that were sent here."""
        for file in self.plan["sent"]:
            found = sha256_of(file["path"]) if os.path.exists(file["path"]) else "nothing"
            if found != file["sha256"]:
                other = "taking {}: its sha256 is {} instead of {}. Send it again: make up"
                raise Refused(other.format(file["path"], found, file["sha256"]))
            target = os.path.join(self.folder, file["name"])
            if os.path.lexists(target):
                os.remove(target)
            os.link(file["path"], target)


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
    with open(os.path.join(plan["work"], "lock"), "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("another staging of the same data is at work")
            return REFUSED
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
