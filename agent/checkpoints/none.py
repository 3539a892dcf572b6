"""No checkpoints: of a program that writes none. A run that ends early starts over."""

from agent.checkpoints import Checkpoints


class Format(Checkpoints):
    """A log folder without checkpoints."""

    def found(self):
        return []

    def files_of(self, name):
        return []

    def kinds_of(self, name):
        return {}

    def flaw_of(self, name):
        return name + " is no checkpoint"


def main(path):
    """Accept nothing: there is nothing to read back."""
    raise ValueError(path + ": this program writes no checkpoints")
