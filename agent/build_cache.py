"""Stages of a staging: each is skipped when its results are whole, so a killed staging goes on where it was.

A stage's stamp holds what its results follow from, and their sizes and hashes.
"""

import hashlib
import json
import os

from agent.staging_log import say
from agent.whole_file import write_whole

PIECE = 1 << 20


def sha256_of(path):
    return hash_of(path, "sha256")


def hash_of(path, kind):
    found = hashlib.new(kind)
    with open(path, "rb") as file:
        for piece in iter(lambda: file.read(PIECE), b""):
            found.update(piece)
    return found.hexdigest()


def write_json(path, value):
    write_whole(path, json.dumps(value, indent=1, sort_keys=True) + "\n")


def read_json(path):
    """Return what a file of ours holds, or None where there is none that can be read."""
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


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
        known = read_json(stamp) or {}
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
        found = dict((path, {"bytes": os.path.getsize(path), "sha256": sha256_of(path)}) for path in results)
        write_json(self._path(name), {"from": follows_from, "results": found})
        return dict((path, found[path]["sha256"]) for path in results)

    def _path(self, name):
        return os.path.join(self.folder, name + ".json")


def is_as(stamped):
    """Return whether a file still is what its stamp says."""
    path, known = stamped
    return os.path.isfile(path) and os.path.getsize(path) == known["bytes"] and sha256_of(path) == known["sha256"]
