"""How many checkpoints of earlier attempts stay on a machine, and which."""

import fnmatch
import os

from agent.checkpoints.entries import prefixes

KEPT = 2
"""The newest one, and the one before in case that it is bad."""


def prune(checkpoints, stays=None, keep=()):
    """Remove what earlier attempts have left and return the names: a new attempt may know nothing of their checkpoints.

    The newest regular ones stay, the best model and the newest one, what the program calls its best, what a pattern of ``keep`` names,
    ``stays``, which is gone on from, and all that there is a suspicion against. No process of the run may be at work.
    """
    found = checkpoints.found()
    whole = [name for _, name in checkpoints.regular() if not checkpoints.suspicion_of(name)]
    best, called_best = checkpoints.best_whole(), checkpoints.called_best()
    stay = [stays] + whole[:KEPT] + best[:1] + [checkpoints.best()]
    stay += [name for step, name in found if step in called_best]
    stay += [name for name in whole + best if any(is_kept(file, keep) for file in checkpoints.files_of(name))]
    old = [name for name in whole + best if name not in stay]
    half = checkpoints.half_written()
    for name in old:
        checkpoints.remove(name)
    for file in half:
        os.remove(checkpoints.path(file))
    return old + half


def is_kept(name, patterns):
    """Tell whether a pattern matches a file or a folder that it is in; `*` matches folders too, and `**/` also none."""
    wanted = [one.rstrip("/") for pattern in patterns for one in (pattern, pattern.replace("**/", ""))]
    return any(fnmatch.fnmatchcase(path, pattern) for path in prefixes(name) for pattern in wanted)
