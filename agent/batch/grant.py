"""What the queue granted to a run: its nodes with their addresses, and until when."""

import json
import os

from agent.batch import GRANTED
from agent.whole_file import write_whole


class Grant:
    """Nodes by name and address, in rank order; ``ends_at`` is when the run has to have ended, by the first node's monotonic clock."""

    def __init__(self, job, names, addresses, ends_at):
        self.job, self.names, self.addresses, self.ends_at = job, names, addresses, ends_at

    def name_of(self, address):
        known = dict(zip(self.addresses, self.names))
        return known.get(address)

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
