"""``make test``: set-up, then every test, each stage with a time limit and its minutes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from microcluster.home import Home
from microcluster.lifecycle import emulated_account
from microcluster.plain_text import duration
from microcluster.setup import docker, pulumi_install, pythons
from microcluster.setup.environment import PYTHON, child_environment
from microcluster.setup.errors import SetupError
from microcluster.setup.process import STOPPED_BY_LIMIT, run_in_view
from microcluster.setup.progress import Stages, say

MINUTE_S = 60
FAILED = 1


@dataclass(frozen=True)
class Suite:
    """One folder of tests; the limit is what remains of CI's 90 minutes beside the other stages."""

    name: str
    usual: str
    limit_s: int
    spread: tuple[str, ...] = ()
    """How pytest-xdist spreads the tests over processes."""
    python: Path = PYTHON
    stage: str = ""

    @property
    def argv(self) -> tuple[str, ...]:
        return (str(self.python), "-m", "pytest", *self.spread, f"tests/{self.name}")


UNIT = Suite("unit", "2 min", 8 * MINUTE_S, ("-n", "3"))
INTEGRATION = Suite("integration", "5 min", 22 * MINUTE_S, ("-n", "3", "--dist", "loadfile"))
"""An emulated account is shared by the tests of one file."""
CHAOS = Suite("chaos", "2 min", 10 * MINUTE_S)
E2E = Suite("e2e", "20 min", 42 * MINUTE_S, ("-n", "2"))
"""Machines are shared by the tests of one group, see tests/e2e/conftest.py."""


def test(home: Home) -> int:
    """Run all tests that can run here; container tests are never left out in CI."""
    stages = Stages()
    pulumi_install.ensure(home, stages)
    failed = [suite.name for suite in (UNIT, INTEGRATION, CHAOS) if not _passes(suite, home, stages)]
    failed += [suite.stage for suite in _on_other_pythons(home, stages) if not _passes(suite, home, stages)]
    obstacle = docker.why_no_containers()
    if obstacle and os.environ.get("CI"):
        raise SetupError(f"The container tests cannot run: {obstacle}. In CI they must: give it root and Docker.")
    if not obstacle:
        emulated_account.prepare_images(home, stages)
        failed += [] if _passes(E2E, home, stages) else [E2E.name]
    say(f"Time: {stages.summary()}.")
    if obstacle:
        say(f"Left out: e2e, the container tests: {obstacle}.")
    say(f"Failed: {', '.join(failed)}." if failed else "All tests that can run here have passed. Next: `make up`.")
    return FAILED if failed else 0


def _on_other_pythons(home: Home, stages: Stages) -> Iterator[Suite]:
    for series, program in pythons.others().items():
        with stages.stage(f"python {series}", "its environment for the unit tests (usually 1 min the first time)"):
            try:
                python = pythons.prepared(series, program, home)
            except SetupError as error:
                if os.environ.get("CI"):
                    raise
                say(f"Left out: the unit tests on Python {series}: {error}")
                continue
        yield replace(UNIT, python=python, stage=f"{UNIT.name} on {series}")


def _passes(suite: Suite, home: Home, stages: Stages) -> bool:
    limit = duration(suite.limit_s)
    with stages.stage(suite.stage or suite.name, f"tests (usually {suite.usual}, at most {limit})"):
        code = run_in_view(suite.argv, child_environment(home), suite.limit_s)
    if code == STOPPED_BY_LIMIT:
        say(
            f"The {suite.name} tests were not over after {limit} and were stopped. Next: `{' '.join(suite.argv)} -v` shows where they hang."
        )
    return code == 0
