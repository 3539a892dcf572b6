"""Looking at a run over a connection that gets lost."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

import pytest
from fake_machine import FACTS
from test_launchers_plan import PAYLOAD

from microcluster.remote import job
from microcluster.remote.host import Completed, Host, UnreachableError


class Losing(Host):
    """This computer, whose first answers are lost."""

    def __init__(self, losses: int) -> None:
        super().__init__(FACTS, "root", "/nowhere")
        self.losses = losses

    def run(self, argv: Sequence[str], *, stdin: str = "", timeout_s: float = 30.0, accept: Sequence[int] = (0,)):  # noqa: ARG002
        if self.losses:
            self.losses -= 1
            raise UnreachableError("running `python3` on gpu-0: no answer after 30.0 s.")
        done = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=timeout_s, check=True)
        return Completed(done.returncode, done.stdout, done.stderr)


def test_one_lost_look_at_a_run_is_taken_again():
    assert job.observe(Losing(1), PAYLOAD).state == "absent"


def test_a_launcher_that_stays_silent_is_said():
    with pytest.raises(UnreachableError, match="no answer after"):
        job.observe(Losing(2), PAYLOAD)
