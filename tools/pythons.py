"""Other supported Pythons on this machine, with the locked packages, for the unit tests."""

import hashlib
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from filelock import FileLock

from core.home import Home
from microcluster.setup import venv
from microcluster.setup.process import output_of

SERIES = ("3.11", "3.12", "3.13")
QUICK_S = 20
LOCK_DIGITS = 12
SHOW = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"


def others(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the installed and working Pythons of the other supported series."""
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = {series: next(_running(series, environment), None) for series in SERIES if series != ours}
    return {series: program for series, program in found.items() if program}


def prepared(series: str, program: str, home: Home) -> Path:
    """Return the Python of an environment with the locked packages; it is made once for all clones."""
    digest = hashlib.sha256(venv.LOCK_FILE.read_bytes()).hexdigest()[:LOCK_DIGITS]
    folder = home.cache / "pythons" / f"{series}-{digest}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    finished = folder / venv.STAMP
    with FileLock(folder.with_suffix(".lock")):
        if not finished.exists():
            venv.install(folder, home, program)
            finished.touch()
    return folder / "bin" / "python"


def _running(series: str, environment: Mapping[str, str]) -> Iterator[str]:
    name = f"python{series}"
    on_path = shutil.which(name, path=environment.get("PATH"))
    # pyenv's shims on PATH run only for active versions; the programs are in its own folder.
    root = Path(environment.get("PYENV_ROOT") or "~/.pyenv").expanduser()
    for program in [*([on_path] if on_path else []), *map(str, sorted(root.glob(f"versions/{series}.*/bin/{name}")))]:
        if (output_of((program, "-c", SHOW), environment, QUICK_S) or "").strip() == series:
            yield program
