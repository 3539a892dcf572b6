"""How many checkpoints of earlier attempts stay on a machine, and which."""

import os

KEPT = 2
"""The newest one, and the one before in case that it is bad."""


def prune(checkpoints, stays=None, kept=KEPT):
    """Remove what earlier attempts have left and return the names: a new attempt may know nothing of their checkpoints.

    The newest regular ones stay, the best model and the newest one, and ``stays``, which is gone on from. No process of the
    run may be at work.
    """
    whole = [name for _, name in checkpoints.found() if checkpoints.is_whole(name, best=False)]
    best = checkpoints.best_whole()
    stay = [stays] + whole[:kept] + best[:1] + [checkpoints.best()]
    old = [name for name in whole + best if name not in stay]
    half = checkpoints.half_written()
    for name in old:
        checkpoints.remove(name)
    for file in half:
        os.remove(checkpoints.path(file))
    return old + half
