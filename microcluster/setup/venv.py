"""Makes ``.venv`` from ``requirements.lock``, with the standard library only: make first runs ``python3 -m microcluster.setup.venv``."""

import hashlib
import importlib.util
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from microcluster.core.files import locked
from microcluster.core.home import Home
from microcluster.core.plain_text import say
from microcluster.setup import packages, secret_env
from microcluster.setup.environment import PROJECT, VENV
from microcluster.setup.errors import FAILED, INTERRUPTED, CommandFailed, of_the_system
from microcluster.setup.process import Step, run_logged

LOCK_FILE = PROJECT / "requirements.lock"
STAMP = ".microcluster.json"
OLDEST, NEWEST = (3, 11), (3, 13)
"""Python series for which the lock file's packages exist."""
AGAIN = "Repeat the same command; it begins in a clean folder, and the old environment stays."


def wanted(place: Path) -> dict[str, str]:
    """Return the inputs of a ``.venv`` there; they are written into it last, so an interrupted one has none."""
    digest = hashlib.sha256(LOCK_FILE.read_bytes()).hexdigest()
    python = ".".join(map(str, sys.version_info[:3]))
    return {"lock": digest, "python": python, "place": str(place.resolve())}


def fits(found: Mapping[str, str], want: Mapping[str, str]) -> bool:
    """Whether an environment is as wanted; the Python's patch release may differ."""
    series = [str(of.get("python")).split(".")[:2] for of in (found, want)]
    return series[0] == series[1] and all(found.get(name) == want[name] for name in ("lock", "place"))


def ensure(home: Home) -> None:
    """Make ``.venv`` unless it fits already."""
    if _is_there():
        return
    home.make()
    say("==> python: this folder's virtual environment")
    busy = "    another make works on this folder's .venv; waiting for it"
    # Beside the folder: users with different homes may share a clone.
    with locked(VENV.with_name(".venv.lock"), lambda _: say(busy)):
        if not _is_there():
            _make(home)


def _is_there() -> bool:
    try:
        stamp = json.loads((VENV / STAMP).read_text())
    except (OSError, ValueError):
        return False
    return (VENV / "bin" / "python").exists() and fits(stamp, wanted(VENV))


def _make(home: Home) -> None:
    """Make a new one beside ``.venv``, a link that points to it when it is complete; on failure the old one stays."""
    if importlib.util.find_spec("ensurepip") is None:
        packages.install(("python3-venv",), "Python's venv module is missing", home)
    _remove_unused()
    new_folder = Path(tempfile.mkdtemp(prefix=f"{VENV.name}-", dir=VENV.parent))
    new_folder.chmod(0o755)
    install(new_folder, home)
    (new_folder / STAMP).write_text(json.dumps(wanted(new_folder)))
    _swap(new_folder)


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


def main() -> int:
    """Exit code 0 once ``.venv`` fits."""
    secret_env.withhold()  # pip needs no account, and runs code of packages.
    try:
        if not OLDEST <= sys.version_info[:2] <= NEWEST:
            raise CommandFailed(
                f"Python {sys.version.split()[0]} is not supported; 3.11 to 3.13 are. Name one: make PYTHON=python3.13"
            )
        ensure(Home.of())
        return 0
    except CommandFailed as error:
        code, text = error.exit_code, str(error)
    except OSError as error:
        code, text = FAILED, f"Making .venv: {of_the_system(error)}. Fix that, then repeat the same command."
    except KeyboardInterrupt:
        code, text = INTERRUPTED, f"\nStopped while making .venv. {AGAIN}"
    say(text, sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
