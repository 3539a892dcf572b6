"""The variables with secrets, taken out of this process on its first line, so that what it starts does not inherit them."""

import ctypes
import os

from microcluster.accounts.registry import ACCOUNTS

REGISTRY_KEY = "NGC_API_KEY"
NAMES = (*(name for each in ACCOUNTS.values() for name in each), REGISTRY_KEY, "WANDB_API_KEY")
"""Environment variables with secrets: for us, the user's program, and other tools for the same accounts."""
_KEPT: dict[str, str] = {}


def withhold() -> None:
    """Move these variables from the environment into memory, for the few functions that need them."""
    for name in NAMES:
        if name in os.environ:
            _blank(name)
            _KEPT[name] = os.environ.pop(name)


def kept() -> dict[str, str]:
    """Return the withheld variables, for a child that needs the account, and for reading the account ourselves."""
    return dict(_KEPT)


def _blank(name: str) -> None:
    """Overwrite the value where it lies: taking a variable away leaves it readable in ``/proc/<pid>/environ``."""
    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_void_p
    place = libc.getenv(os.fsencode(name))
    if place:
        ctypes.memset(place, 0, len(os.fsencode(os.environ[name])))
