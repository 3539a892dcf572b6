"""The stages of a staging and what it says: each is skipped when its results are whole, so a killed staging goes on where it was.

A stage's stamp holds what its results follow from, and their sizes and hashes.
"""

import json
import os
import sys
import time

from agent.machine import hash_of, read_json, write_whole

MARK = "staging: "
"""How a line begins that `fab watch` shows as what is being done."""
SAY_EVERY_S = 10


class Refused(Exception):
    """The data cannot be used; the argument is a full sentence with the next step."""


def say(text):
    sys.stdout.write(MARK + text + "\n")
    sys.stdout.flush()


class Progress:
    """Tells every few seconds how far a piece of work is, and at its end how long it took."""

    def __init__(self, what, total, unit, scale=1, clock=time.monotonic):
        self.what, self.total, self.unit, self.scale, self.clock = what, total, unit, scale, clock
        self.began = self.printed_at = clock()
        say(what + " ...")

    def at(self, done):
        if self.clock() - self.printed_at >= SAY_EVERY_S:
            self.printed_at = self.clock()
            say(self.what + ": " + self._amount(done) + ", " + self._age() + " so far")

    def over(self, done):
        self.total = None
        say(self.what + ": " + self._amount(done) + " in " + self._age())

    def _amount(self, done):
        parts = [str(done // self.scale)] + (["of", str(self.total // self.scale)] if self.total else [])
        return " ".join(parts + [self.unit])

    def _age(self):
        return str(int(self.clock() - self.began)) + " s"


def write_json(path, value):
    write_whole(path, json.dumps(value, indent=1, sort_keys=True) + "\n")


class Stages:
    """The stamps of one staging in their folder."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)

    def run(self, name, follows_from, results, make):
        """Have the files ``results`` (paths), which ``make`` makes; return {path: sha256} of them.

        What the results follow from, as JSON, has to change when they do: the hashes of what goes in, and every setting.
        """
        made = self.made(name, follows_from, results)
        if made is None:
            make()
            made = self.stamp(name, follows_from, results)
        return made

    def made(self, name, follows_from, results):
        """Return {path: sha256} of results that are whole and follow from this, else None and have room made for them."""
        stamp = self._path(name)
        known = read_json(stamp)
        stamped = known.get("results", {})
        if (
            known.get("from") == follows_from
            and sorted(stamped) == sorted(results)
            and all(map(is_as, stamped.items()))
        ):
            say(name + ": is there already")
            return dict((path, stamped[path]["sha256"]) for path in results)
        if os.path.exists(stamp):
            os.remove(stamp)
        for path in results:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        return None

    def stamp(self, name, follows_from, results):
        """Write down that the results are made; return {path: sha256} of them."""
        found = dict((path, {"bytes": os.path.getsize(path), "sha256": hash_of(path)}) for path in results)
        write_json(self._path(name), {"from": follows_from, "results": found})
        return dict((path, found[path]["sha256"]) for path in results)

    def _path(self, name):
        return os.path.join(self.folder, name + ".json")


def is_as(stamped):
    """Return whether a file still is what its stamp says."""
    path, known = stamped
    return os.path.isfile(path) and os.path.getsize(path) == known["bytes"] and hash_of(path) == known["sha256"]
