"""Make ``.venv`` from ``requirements.lock``, with the standard library alone: ``python3 -m setup.venv`` is the first thing make runs."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from setup.environment import PROJECT, VENV, Home
from setup.errors import FAILED, INTERRUPTED, SetupError, of_the_system
from setup.packages import install
from setup.process import Step, run_logged
from setup.progress import say

LOCK_FILE = PROJECT / "requirements.lock"
STAMP = VENV / ".microcluster.json"
OLDEST = (3, 11)
AGAIN = "Repeat the same command; it begins again from a clean folder."


@dataclass(frozen=True)
class Stamp:
    """What a finished ``.venv`` was made of; written last, so that an interrupted one has none."""

    lock: str
    python: str
    place: str


def wanted() -> Stamp:
    """The stamp of a ``.venv`` that fits this folder, this lock file and this Python."""
    digest = hashlib.sha256(LOCK_FILE.read_bytes()).hexdigest()
    return Stamp(digest, ".".join(map(str, sys.version_info[:3])), str(VENV.resolve()))


def found() -> Stamp | None:
    """The stamp of the ``.venv`` that is there, if it was ever finished and nothing was taken out since."""
    if not (VENV / "bin" / "python").exists():
        return None
    try:
        return Stamp(**json.loads(STAMP.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def to_clear(there: Stamp | None, want: Stamp) -> bool:
    """Whether the folder must be made anew: unfinished, of another Python, or moved. Otherwise pip brings it up to date."""
    return there is None or (there.python, there.place) != (want.python, want.place)


def ensure(home: Home) -> None:
    """Make or update ``.venv`` unless it fits already."""
    if found() == wanted():
        return
    home.make()
    say("==> python: this folder's virtual environment")
    with _alone():
        if found() != wanted():
            _make(home)


def _make(home: Home) -> None:
    want = wanted()
    clear = to_clear(found(), want)
    STAMP.unlink(missing_ok=True)
    environment = dict(os.environ)
    if clear:
        _have_venv_module(home)
        argv = (sys.executable, "-m", "venv", "--clear", str(VENV))
        run_logged(Step("making .venv", "10 s", argv, home.logs / "venv.log", AGAIN), environment)
    argv = (str(VENV / "bin" / "python"), "-m", "pip", "install", "--require-hashes", "-r", str(LOCK_FILE))
    hint = f"When it could not reach its package index, see to the network first. {AGAIN}"
    run_logged(Step("installing the Python packages", "1 min", argv, home.logs / "pip.log", hint), environment)
    unfinished = STAMP.with_suffix(".tmp")
    unfinished.write_text(json.dumps(asdict(want)))
    unfinished.rename(STAMP)


def _have_venv_module(home: Home) -> None:
    if importlib.util.find_spec("ensurepip") is None:
        install(("python3-venv",), "Python's venv module is missing", home)


@contextmanager
def _alone() -> Iterator[None]:
    # Beside the folder and not in a home: users with homes of their own may share a clone.
    with VENV.resolve().with_name(".venv.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("    another make works on this folder's .venv; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    """Exit code 0 once ``.venv`` fits."""
    try:
        if sys.version_info < OLDEST:
            raise SetupError(
                f"Python {sys.version.split()[0]} is too old. Install 3.11 or newer, or name one: make PYTHON=python3.11"
            )
        ensure(Home.of(os.environ))
    except SetupError as error:
        say(str(error), sys.stderr)
        return error.exit_code
    except OSError as error:
        say(f"Making .venv: {of_the_system(error)}. See to it, then repeat the same command.", sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        say(f"\nStopped while making .venv. {AGAIN}", sys.stderr)
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
