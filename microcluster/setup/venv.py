"""Makes ``.venv`` from ``requirements.lock``, with the standard library only: make first runs ``python3 -m microcluster.setup.venv``."""

import fcntl
import hashlib
import importlib.util
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from core.home import Home
from microcluster.setup import packages, secret_env
from microcluster.setup.environment import PROJECT, VENV
from microcluster.setup.errors import FAILED, INTERRUPTED, SetupError, of_the_system
from microcluster.setup.process import Step, run_logged
from microcluster.setup.progress import say

LOCK_FILE = PROJECT / "requirements.lock"
STAMP = ".microcluster.json"
OLDEST, NEWEST = (3, 11), (3, 13)
"""Python series for which the lock file's packages exist."""
AGAIN = "Repeat the same command; it begins in a clean folder, and the old environment stays."


@dataclass(frozen=True)
class Stamp:
    """The inputs of a finished ``.venv``; written last, so an interrupted one has none."""

    lock: str
    python: str
    place: str

    def fits(self, want: "Stamp") -> bool:
        """Whether it is as wanted; the Python's patch release may differ."""
        return (self.lock, self.place, self._series) == (want.lock, want.place, want._series)

    @property
    def _series(self) -> str:
        return ".".join(self.python.split(".")[:2])


def wanted(place: Path) -> Stamp:
    """Return the stamp for this lock file and this Python."""
    digest = hashlib.sha256(LOCK_FILE.read_bytes()).hexdigest()
    return Stamp(digest, ".".join(map(str, sys.version_info[:3])), str(place.resolve()))


def found() -> Stamp | None:
    """Return the stamp of the present ``.venv``, or None if it is unfinished."""
    if not (VENV / "bin" / "python").exists():
        return None
    try:
        return Stamp(**json.loads((VENV / STAMP).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def ensure(home: Home) -> None:
    """Make ``.venv`` unless it fits already."""
    if _fits():
        return
    home.make()
    say("==> python: this folder's virtual environment")
    with _alone():
        if not _fits():
            _make(home)


def _fits() -> bool:
    there = found()
    return there is not None and there.fits(wanted(VENV))


def _make(home: Home) -> None:
    """Make a new one beside ``.venv``, a link that points to it when it is complete; on failure the old one stays."""
    _have_venv_module(home)
    _remove_unused()
    made = Path(tempfile.mkdtemp(prefix=f"{VENV.name}-", dir=VENV.parent))
    made.chmod(0o755)
    install(made, home)
    (made / STAMP).write_text(json.dumps(asdict(wanted(made))))
    _swap(made)


def install(folder: Path, home: Home, python: str = sys.executable) -> None:
    """Make a virtual environment of ``python`` in ``folder`` with the locked packages."""
    environment = dict(os.environ)
    argv = (python, "-m", "venv", "--clear", str(folder))
    run_logged(Step("making the environment", "10 s", argv, home.logs / "venv.log", AGAIN), environment)
    argv = (str(folder / "bin" / "python"), "-m", "pip", "install", "--require-hashes", "-r", str(LOCK_FILE))
    hint = f"If the package index could not be reached, check the network. {AGAIN}"
    run_logged(Step("installing the Python packages", "1 min", argv, home.logs / "pip.log", hint), environment)


def _swap(made: Path) -> None:
    engine = VENV / "bin" / "pulumi"
    if engine.is_symlink():
        (made / "bin" / "pulumi").symlink_to(os.readlink(engine))
    link = VENV.with_name(f"{VENV.name}-link")
    link.symlink_to(made.name)
    if VENV.is_dir() and not VENV.is_symlink():
        VENV.rename(VENV.with_name(f"{VENV.name}-before"))
    link.replace(VENV)


def _remove_unused() -> None:
    """Remove unfinished environments and the previous one, which may have been in use at the swap."""
    for path in VENV.parent.glob(f"{VENV.name}-*"):
        if path.is_symlink():
            path.unlink()
        elif path.resolve() != VENV.resolve():
            shutil.rmtree(path)


def _have_venv_module(home: Home) -> None:
    if importlib.util.find_spec("ensurepip") is None:
        packages.install(("python3-venv",), "Python's venv module is missing", home)


@contextmanager
def _alone() -> Iterator[None]:
    # Beside the folder: users with different homes may share a clone.
    with VENV.with_name(".venv.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("    another make works on this folder's .venv; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    """Exit code 0 once ``.venv`` fits."""
    secret_env.withhold()  # pip needs no account, and runs code of packages.
    try:
        if not OLDEST <= sys.version_info[:2] <= NEWEST:
            raise SetupError(
                f"Python {sys.version.split()[0]} is not supported; 3.11 to 3.13 are. Name one: make PYTHON=python3.13"
            )
        ensure(Home.of())
    except SetupError as error:
        say(str(error), sys.stderr)
        return error.exit_code
    except OSError as error:
        say(f"Making .venv: {of_the_system(error)}. Fix that, then repeat the same command.", sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        say(f"\nStopped while making .venv. {AGAIN}", sys.stderr)
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
