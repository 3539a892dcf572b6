"""Everything that runs on rented machines.

The folder is sent as a whole to ``<run>/agent`` on every machine, and ``python3 <run>/agent PROGRAM ARGUMENT...`` calls the ``main``
of one module, on the machine itself or in its training container. So all of it is Python 3.5, uses only the standard library
and imports only itself. A module that is also sent alone, on standard input or as an argument, imports nothing of the package.

``run`` is the run itself: its document, its records, and how commands run on its nodes. Above it, ``formats`` reads logs and checkpoints
and copies these, ``data`` makes what ranks read, ``nodes`` measures machines, and ``launch`` starts ranks. On top ``supervise`` carries a run
from its preparation to its end, ``records`` answers those who look at it, and ``batch`` is a run on nodes that a queue grants.
"""

import os
from typing import List

IN_CONTAINER = "in_container"
"""A link in a run's folder on a machine to what its container sees as that folder, where there is one."""


def program(folder: str, name: str, *arguments: str) -> List[str]:
    """Return the argv that runs one program of ``__main__`` in a run's folder."""
    return ["python3", folder + "/agent", name] + list(arguments)


def inside(folder: str) -> str:
    """Return what a run's processes see as its folder. They may leave anything there: only what runs as they do may write or remove it."""
    there = os.path.join(folder, IN_CONTAINER)
    return there if os.path.islink(there) else folder
