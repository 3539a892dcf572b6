"""``make test``: say what will run and for how long, then run every suite of tests within its time limit."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import FileLock

from microcluster.core.home import Home
from microcluster.core.plain_text import duration, say
from microcluster.lifecycle import emulated_account
from microcluster.setup import docker_install, engine, images, venv
from microcluster.setup.environment import FAB, PYTHON, child_environment
from microcluster.setup.errors import INTERRUPTED, CommandFailed
from microcluster.setup.process import STOPPED_BY_LIMIT, asked, run_in_view, start, stop_group
from microcluster.setup.progress import Stages

MINUTE_S = 60
FAILED = 1
SERIES = ("3.11", "3.13")
"""The oldest and the newest that we support: what works on both needs nothing that is new, and nothing that is gone."""
QUICK_S = 20
MEMORY, ROOM_BYTES = Path("/dev/shm"), 4 << 30  # noqa: S108 - the suite's folder in it has a name of its own
"""The tests without machines make and delete fifty thousand small files, 700 MB; some disks get slow of it."""
LOCK_DIGITS = 12
SHOW = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"


@dataclass(frozen=True)
class Suite:
    """One folder of tests, or several with blanks between their names; the limit is what remains of CI's time beside the other stages."""

    name: str
    what: str
    usual_min: int
    limit_min: int
    spread: tuple[str, ...] = ()
    """How pytest-xdist spreads the tests over processes."""
    series: str = ""
    """Another Python than our own."""
    left_out: str = ""
    """A pattern of files that are not run."""

    @property
    def title(self) -> str:
        return f"{self.name} on {self.series}" if self.series else self.name

    def argv(self, python: Path) -> tuple[str, ...]:
        left_out = (f"--ignore-glob={self.left_out}",) if self.left_out else ()
        return (str(python), "-m", "pytest", *self.spread, *left_out, *(f"tests/{each}" for each in self.name.split()))


BY_FILE = ("--dist", "loadfile", "--no-loadscope-reorder")
"""An emulated account is shared by the tests of one file; files begin in the order of their names, not those of most tests."""
WAITING = ("-n", "8", *BY_FILE)
"""More processes than cores: one waits while the other computes, and the files that wait longest come first."""
OF_MACHINES = "*/test_agent_*"
UNIT = Suite("unit", "single modules, without network and account", 1, 12, WAITING, left_out=OF_MACHINES)
"""What other Pythons run. The agent runs by the machines' own Python: its tests are not run again, as e2e has machines of both series."""
QUICK = Suite("integration unit", "single modules, and the providers against emulated accounts", 3, 20, WAITING)
WHOLE = Suite(
    "commands integration unit", "single modules, providers against emulated accounts, whole commands", 4, 30, WAITING
)
CHAOS = Suite(
    "chaos guarded hostile saved",
    "a provider that is killed at every call, guards of careless people, machines that lie, strangers' programs",
    7,
    29,
)
E2E = Suite("e2e", "clusters of containers, up and down", 24, 60, ("-n", "3"))
"""Machines are shared by the tests of one group, see tests/e2e/conftest.py."""


def why_no_containers() -> str | None:
    """Return why container tests cannot run here, even after set-up, or None."""
    if os.geteuid() != 0:
        return "machines need root (loop devices, network namespaces)"
    if not docker_install.answers() and docker_install.find_dockerd() is None and not Path("/usr/bin/apt-get").exists():
        return "no Docker daemon answers, and set-up can install one on Debian and Ubuntu only"
    return None


def test(home: Home) -> int:
    """Run all tests that can run here; with FAST=1 the quick suites on our own Python alone."""
    fast = bool(os.environ.get("FAST"))
    others = {} if fast else other_pythons()
    obstacle = None if fast else why_no_containers()
    if obstacle and os.environ.get("CI"):
        raise CommandFailed(f"The container tests cannot run: {obstacle}. In CI they must: give it root and Docker.")
    suites = planned(others, fast=fast, containers=not obstacle)
    say("\n".join(plan_text(suites, fast=fast)))
    stages = Stages()
    engine.ensure(home, stages)
    left_out = {E2E.name: obstacle} if obstacle else {}
    failed = []
    with _images_meanwhile(home) if E2E in suites else nullcontext():
        for suite in suites:
            try:
                python = _prepare(suite, others, home, stages)
            except CommandFailed as error:
                if os.environ.get("CI") or not suite.series:
                    raise
                left_out[suite.title] = str(error)
                continue
            if not _passes(suite, python, home, stages):
                failed.append(suite.title)
    say(f"Time: {stages.summary()}.")
    for title, reason in left_out.items():
        say(f"Left out: {title}: {reason}.")
    tried = "unit and integration tests" if fast else "tests that can run here"
    say(f"Failed: {', '.join(failed)}." if failed else f"All {tried} have passed. Next: `make up`.")
    return FAILED if failed else 0


def planned(series: Iterable[str], *, fast: bool, containers: bool) -> list[Suite]:
    """Choose the suites in their order; ``series`` are the other Pythons that are installed here."""
    if fast:
        return [QUICK]
    others = [replace(UNIT, series=each) for each in series]
    return [WHOLE, CHAOS, *others, *([E2E] if containers else [])]


def plan_text(suites: Sequence[Suite], *, fast: bool) -> list[str]:
    """Return the table of what runs, with its usual minutes on two quiet cores."""
    whole = sum(suite.usual_min for suite in suites)
    lines = [f"  {suite.title:<25} {suite.usual_min:>3} min  {suite.what}" for suite in suites]
    hint = [] if fast else ["`make test FAST=1` runs unit and integration tests alone."]
    return [f"Tests that run now, usually {whole} min in all, and what they use:", *lines, *hint]


def other_pythons(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the installed and working Pythons of ``SERIES`` other than our own."""
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = {series: next(_running(series, environment), None) for series in SERIES if series != ours}
    return {series: program for series, program in found.items() if program}


def prepared_python(series: str, program: str, home: Home) -> Path:
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


@contextmanager
def _images_meanwhile(home: Home) -> Iterator[None]:
    """Build the images beside the suites that need none: it mostly waits for packages. What fails of it fails again, and is shown, before e2e."""
    only = [word for name in images.ALL for word in ("--only", name)]
    home.logs.mkdir(parents=True, exist_ok=True)
    with (home.logs / "images.log").open("wb") as log:
        argv = (str(FAB), "images", *only)
        building = start(argv, child_environment(home), stdout=log, stderr=subprocess.STDOUT)
    try:
        yield
    finally:
        if building.poll() is None:
            stop_group(building)


def _prepare(suite: Suite, others: dict[str, str], home: Home, stages: Stages) -> Path:
    """Have what a suite needs beside the engine; return its Python."""
    if suite is E2E:
        emulated_account.prepare_images(home, stages, images.ALL)
    if not suite.series:
        return PYTHON
    with stages.stage(f"python {suite.series}", "its environment for the unit tests (usually 1 min the first time)"):
        return prepared_python(suite.series, others[suite.series], home)


def _passes(suite: Suite, python: Path, home: Home, stages: Stages) -> bool:
    argv, limit_s = suite.argv(python), suite.limit_min * MINUTE_S
    what = f"tests (usually {suite.usual_min} min, at most {suite.limit_min} min)"
    with stages.stage(suite.title, what), _small_files(suite) as place:
        code = run_in_view(argv, suite_environment(home) | place, limit_s)
    if code == STOPPED_BY_LIMIT:
        say(
            f"The {suite.title} tests were not over after {duration(limit_s)} and were stopped. "
            f"Next: `{' '.join(argv)} -v` shows where they hang."
        )
    return code == 0


@contextmanager
def _small_files(suite: Suite) -> Iterator[dict[str, str]]:
    """Have the temporary files of tests without machines in memory, if it has room for them."""
    if suite.spread != WAITING or not MEMORY.is_dir() or shutil.disk_usage(MEMORY).free < ROOM_BYTES:
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="microcluster-tests-", dir=MEMORY) as folder:
        yield {"TMPDIR": folder}


def suite_environment(home: Home) -> dict[str, str]:
    """Return the environment of the suites, in which Python may keep what it compiles: they start it thousands of times."""
    return {name: text for name, text in child_environment(home).items() if name != "PYTHONDONTWRITEBYTECODE"}


def _running(series: str, environment: Mapping[str, str]) -> Iterator[str]:
    name = f"python{series}"
    on_path = shutil.which(name, path=environment.get("PATH"))
    # pyenv's shims on PATH run only for active versions; the programs are in its own folder.
    root = Path(environment.get("PYENV_ROOT") or "~/.pyenv").expanduser()
    programs = [on_path] if on_path else []
    programs += map(str, sorted(root.glob(f"versions/{series}.*/bin/{name}")))
    for program in programs:
        answer = asked((program, "-c", SHOW), QUICK_S, environment)
        if answer.returncode == 0 and answer.stdout.strip() == series:
            yield program


def main() -> int:
    """Run the tests; a failure is a sentence and an exit code, and a SIGTERM ends them as Ctrl-C does."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return test(Home.of())
    except CommandFailed as failed:
        say(str(failed), sys.stderr)
        return failed.exit_code
    except KeyboardInterrupt:
        say("\nInterrupted; what was installed is kept. To test again: make test", sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
