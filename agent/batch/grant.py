"""What the queue granted to a run: its nodes with their addresses, and until when; a run ends in order before that."""

import json
import os

from agent.batch import GRANTED
from agent.machine import write_whole

CAUSE = "walltime"
NOTHING_SAVED = "the walltime ends, and nothing was saved in it"
UNKNOWN = object()
WINDOW_SHARE, WINDOW_MOST_S = 0.2, 900
"""From so long before the end on, the first new checkpoint ends the run."""


class Grant:
    """Nodes by name and address, in rank order; ``ends_at`` is when the run has to have ended, by the first node's monotonic clock."""

    def __init__(self, job, names, addresses, ends_at):
        self.job, self.names, self.addresses, self.ends_at = job, names, addresses, ends_at

    def name_of(self, node):
        """Return the queue's name of a node by its address; a name stays what it is."""
        return dict(zip(self.addresses, self.names)).get(node, node)

    def filled(self, text):
        """Return a text with the addresses in place of what stands for them while nobody knows the nodes."""
        for number, address in enumerate(self.addresses):
            text = text.replace(placeholder(number), address)
        return text


def placeholder(node):
    """Return what stands for a node's address until the queue grants it."""
    return "{node-" + str(node) + "}"


def read(folder):
    """Return the grant of a run, or None before there is one."""
    try:
        with open(os.path.join(folder, GRANTED)) as file:
            return Grant(**json.load(file))
    except FileNotFoundError:
        return None


def write(folder, grant):
    write_whole(os.path.join(folder, GRANTED), json.dumps(vars(grant)))


class Walltime:
    """What is known of the time: when the run has to have ended, and the newest checkpoint when the window began."""

    def __init__(self, ends_at, now):
        self.ends_at = ends_at
        self.begins_at = ends_at - min(WINDOW_MOST_S, WINDOW_SHARE * max(0.0, ends_at - now))
        self.before, self.first = None, UNKNOWN

    def verdict(self, now, newest):
        """Return why the run ends now, or an empty text; ``newest`` is the step of the newest whole checkpoint, or None."""
        if self.first is UNKNOWN:
            self.first = newest
        if now < self.begins_at:
            self.before = newest
            return ""
        if newest != self.before:
            return "the walltime ends; step {} was just saved, and the next submission goes on from it".format(newest)
        if now < self.ends_at:
            return ""
        if newest == self.first:
            return NOTHING_SAVED + ": let the program save more often, or ask for more time"
        return "the walltime ends; the next submission goes on from step {}".format(newest)
