"""Which Python runs the programs of the machines, and where the training image's own code is, which no package installs."""

import os
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from supervised_run import folder as folder  # noqa: PLC0414 - the fixture

from agent.kill_run import RUN_VARIABLE
from agent.run import context
from agent.supervise import health_rules
from microcluster.core.home import Home
from microcluster.core.polling import wait_until

# No clock decides over a test: the machines that run them are slow and have other work.
settings.register_profile("no clock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no clock")

# The programs of the machines run on this Python; another `python3` may be a script that takes ten times as long to start.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

# What the person who runs them has rented decides over none of them.
HOME = tempfile.TemporaryDirectory(prefix="microcluster-unit-")
os.environ |= {"MICROCLUSTER_CACHE": str(Home.of().cache), "MICROCLUSTER_HOME": HOME.name}

TRAINING = Path(__file__).parents[2] / "images" / "training"

sys.path += [str(TRAINING / folder) for folder in ("opt/OpenSeq2Seq", "opt/language-model", "corpus")]


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a wait look again at once."""
    monkeypatch.setitem(wait_until.__kwdefaults__, "sleep", lambda seconds: None)


@pytest.fixture
def run(folder, monkeypatch):
    """Return what opens the run in this process, which stands for its supervisor and asks again at once."""
    monkeypatch.setattr(context, "ASK_PAUSE_S", 0)
    monkeypatch.setenv(RUN_VARIABLE, folder.name)
    return lambda: context.Run(str(folder))


@pytest.fixture
def ended(run):
    """Return what lets a part of the supervisor act on the run, and gives (cause, sentence, last lines) of a bad end, or None."""

    def does(act):
        try:
            act(run())
        except health_rules.Failed as failed:
            cause, why, _, lines = failed.args
            return cause, why, lines
        return None

    return does
