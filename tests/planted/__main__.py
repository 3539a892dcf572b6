"""Bring defects back one after the other, each in a copy of the tracked files, and demand that its test fails there.

Ends with 1 if one was not caught.
"""

import os
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.planted.defects import DEFECTS, Defect
from tests.product import copy_project

PASSED, FAILED = 0, 1
"""How pytest ends. Anything else is no verdict: the test was not found, or the change has broken the import of it."""
TEST_LIMIT_S = 120
NOT_APPLIED, UNSOUND, CAUGHT, MISSED = "does not apply", "test fails without it", "caught", "NOT CAUGHT"


def main(words: Sequence[str]) -> int:
    """Try the chosen defects and print a table of them."""
    chosen = [each for each in DEFECTS if not words or any(word in each.name for word in words)]
    if not chosen:
        print(f"no defect is called {' or '.join(words)}; there are: {', '.join(each.name for each in DEFECTS)}")
        return 2
    flaws = {each: each.flaw() for each in chosen}
    sound: dict[str, bool] = {}
    verdicts = []
    print("| defect | changed file | test | verdict | seconds |\n|---|---|---|---|---|")
    for defect in chosen:
        began = time.monotonic()
        verdict = NOT_APPLIED if flaws[defect] else tried(defect, sound)
        verdicts.append(verdict)
        seconds = time.monotonic() - began
        print(f"| {defect.name} | `{defect.file}` | `{defect.test}` | {verdict} | {seconds:.1f} |", flush=True)
    for flaw in filter(None, flaws.values()):
        print(flaw)
    print(f"{verdicts.count(CAUGHT)} of {len(chosen)} caught")
    return int(set(verdicts) != {CAUGHT})


def tried(defect: Defect, sound: dict[str, bool]) -> str:
    """Run the test of a defect without it, unless ``sound`` knows the result, and with it."""
    with copied() as root:
        if defect.test not in sound:
            sound[defect.test] = ended(root, defect.test) == PASSED
        if not sound[defect.test]:
            return UNSOUND
    with copied() as root:
        defect.plant(root)
        code = ended(root, defect.test)
    return {FAILED: CAUGHT, PASSED: MISSED}.get(code, f"pytest ended with {code}")


@contextmanager
def copied() -> Iterator[Path]:
    """Copy the project into a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        root = Path(folder, "copy")
        copy_project(root)
        yield root


def ended(root: Path, test: str) -> int:
    """Run one test on the files below ``root``; return how pytest ended."""
    options = ["-q", "-x", "-p", "no:cacheprovider", "-o", f"timeout={TEST_LIMIT_S}", f"--basetemp={root.parent}/tmp"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "MICROCLUSTER_HOME": str(root.parent / "home")}
    argv = [sys.executable, "-m", "pytest", *options, test]
    return subprocess.run(argv, cwd=root, env=environment, capture_output=True, check=False).returncode


if __name__ == "__main__":
    parser = ArgumentParser("python -m tests.planted", description=__doc__)
    parser.add_argument("name", nargs="*", help="a defect, or a part of its name; without any, all of them")
    sys.exit(main(parser.parse_args().name))
