"""Unsaved work: a run that is only on machines whose data disks end with them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from microcluster.accounts.registry import machine_types
from microcluster.home import Home
from microcluster.lifecycle import commands
from microcluster.plain_text import one_line
from microcluster.setup.environment import PROJECT, PULUMI, fetched_folder, with_account
from microcluster.setup.errors import MISTAKE, SetupError
from microcluster.setup.progress import Stages, moment, say

FETCH, DISCARD = "FETCH", "DISCARD"
PREVIEW_S = 300
REMOVING = ("replace", "delete", "delete-replaced", "create-replacement")


@dataclass(frozen=True)
class Stake:
    """A run that is further on its machines than in the fetched copy; without ``step`` the machines do not answer."""

    run: str | None
    step: int | None
    checkpoint: int | None
    fetched_step: int | None
    fetched: str | None

    def __str__(self) -> str:
        if self.run is None:
            return "its machines do not answer, so their data are unknown"
        saved = "without a checkpoint yet" if self.checkpoint is None else f"its newest checkpoint at {self.checkpoint}"
        home = (
            "nothing of it was fetched"
            if self.fetched is None
            else f"fetched last at step {self.fetched_step}, {moment(self.fetched)}"
        )
        step = "no step was read" if self.step is None else f"step {self.step}"
        return f"run {self.run} lies on its machines only: {step}, {saved}; {home}"


def look(home: Home, stack: str) -> Stake | None:
    """Return what would be lost with the machines of ``stack``, or None."""
    status = commands.status(home, stack)
    if status is None:
        return Stake(None, None, None, None, None)
    return judge(status, _manifest(stack, status.get("run"), status.get("word")))


def judge(status: Mapping[str, Any], manifest: Mapping[str, Any] | None) -> Stake | None:
    """Compare a run with its fetched copy."""
    step, checkpoint = status.get("step"), status.get("checkpoint")
    brought = manifest.get("step") if manifest else None
    if (step is None and checkpoint is None) or (
        checkpoint is not None and brought is not None and brought >= checkpoint
    ):
        return None
    return Stake(status["run"], step, checkpoint, brought, manifest.get("fetched") if manifest else None)


def save_before_destroy(home: Home, stack: str, environment: Mapping[str, str], stages: Stages) -> None:
    """Fetch the run first or discard it, as the user chose.

    Raises:
        SetupError: something would be lost, and the user has not chosen.
    """
    stake = look(home, stack)
    if stake:
        _save(stake, home, stack, "make down", environment, stages, "s")


def save_before_update(home: Home, stack: str, environment: Mapping[str, str], stages: Stages) -> None:
    """Do the same before an update whose preview removes machines."""
    stake = look(home, stack)
    why = why_machines_may_go(home, stack) if stake else None
    if stake and why:
        _save(stake, home, stack, "make up", environment, stages, f"{why}. S")


def _save(  # noqa: PLR0913, PLR0917
    stake: Stake, home: Home, stack: str, verb: str, environment: Mapping[str, str], stages: Stages, beginning: str
) -> None:
    if environment.get(FETCH):
        with stages.stage("fetch", "fetching the run before its machines are cancelled"):
            if commands.fab(home, "fetch", stack):
                raise SetupError(
                    f"The run could not be fetched, for the reason above; the machines stay and cost money. "
                    f"`{verb} STACK={stack} FETCH=1` tries again, `{verb} STACK={stack} DISCARD=1` discards it."
                )
        return
    if environment.get(DISCARD):
        say(f"Discarding what was not fetched: {stake}.")
        return
    raise SetupError(
        f"{verb}: {beginning}tack {stack} would lose something with its machines: {stake}. Nothing was changed; it still costs money. "
        f"`{verb} STACK={stack} FETCH=1` fetches it first, `{verb} STACK={stack} DISCARD=1` discards it.",
        MISTAKE,
    )


def why_machines_may_go(home: Home, stack: str) -> str | None:
    """Return why an update may remove machines; None when it removes none.

    The preview refreshes as the update will: a change made in the account may need a replacement.
    """
    argv = (str(PULUMI), "preview", "--refresh", "--run-program", "--json", "--non-interactive", "-s", stack)
    options = {"cwd": PROJECT, "env": with_account(home), "timeout": PREVIEW_S, "stdin": subprocess.DEVNULL}
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, **options)
        preview = json.loads(done.stdout)
        going = machines_taken(preview)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, subprocess.TimeoutExpired) as error:
        return f"what an update would replace cannot be told, for its preview failed ({type(error).__name__})"
    if done.returncode:
        return f"what an update would replace cannot be told, for its preview failed: {_reason(preview)}"
    return f"an update would replace or remove {', '.join(going)}" if going else None


def machines_taken(preview: Mapping[str, Any]) -> list[str]:
    """Return the machines that ``pulumi preview --json`` removes."""
    steps, machines = preview.get("steps") or [], tuple(machine_types())
    taken = {step["urn"] for step in steps if step["op"] in REMOVING and step["urn"].split("::")[2].endswith(machines)}
    return sorted(urn.rpartition("::")[2] for urn in taken)


def _reason(preview: Mapping[str, Any]) -> str:
    errors = [str(one.get("message")) for one in preview.get("diagnostics") or [] if one.get("severity") == "error"]
    return one_line(errors[0]).strip() if errors else "pulumi gave no reason"


def _manifest(stack: str, run: str | None, word: str | None) -> Mapping[str, Any] | None:
    """Return what was fetched of this training; another one of the same run has another word."""
    try:
        return json.loads((fetched_folder(stack, run, word) / "manifest.json").read_text())
    except (OSError, ValueError):
        return None
