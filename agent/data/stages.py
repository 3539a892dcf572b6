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

    def __init__(self, what, total, unit, scale=1):
        self.what, self.total, self.unit, self.scale = what, total, unit, scale
        self.began = self.printed_at = time.monotonic()
        self.done = 0
        say(what + " ...")

    def count(self, items):
        """Yield items as they are, and count them."""
        for self.done, item in enumerate(items, 1):
            self.at(self.done)
            yield item

    def at(self, done):
        if time.monotonic() - self.printed_at >= SAY_EVERY_S:
            self.printed_at = time.monotonic()
            say(self.what + ": " + self._amount(done) + ", " + self._age() + " so far")

    def over(self, done):
        self.total = None
        say(self.what + ": " + self._amount(done) + " in " + self._age())

    def _amount(self, done):
        parts = [str(done // self.scale)] + (["of", str(self.total // self.scale)] if self.total else [])
        return " ".join(parts + [self.unit])

    def _age(self):
        return str(int(time.monotonic() - self.began)) + " s"


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
        stamp = os.path.join(self.folder, name + ".json")
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


def hashes_of(paths):
    return dict((path, hash_of(path)) for path in paths)
