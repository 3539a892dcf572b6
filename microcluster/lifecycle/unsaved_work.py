"""Unsaved work: a run that is only on machines whose data disks end with them."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.home import Home
from core.plain_text import one_line
from microcluster.accounts.registry import machine_types
from microcluster.lifecycle import commands
from microcluster.setup.environment import PROJECT, PULUMI, with_account
from microcluster.setup.errors import MISTAKE, SetupError
from microcluster.setup.progress import Stages, moment, say

FETCH, DISCARD = "FETCH", "DISCARD"
PREVIEW_S = 300
SHOWN = 5
"""Files that are named; the rest are counted."""
LIVING = ("running", "stalled")
START_JOB = "step.start-job"
"""How the command of the step ends that starts the run."""
REMOVING = ("replace", "delete", "delete-replaced", "create-replacement")


@dataclass(frozen=True)
class Stake:
    """A run that has more on its machines than was fetched; without ``run`` the machines do not answer.

    Attributes:
        files: what is on the machines only, and the machines of which that is not known, each in words.
        earlier: of another configuration, which was trained before on the same machines.
    """

    run: str | None
    step: int | None = None
    checkpoint: int | None = None
    fetched_step: int | None = None
    fetched: str | None = None
    files: tuple[str, ...] = ()
    earlier: bool = False

    def __str__(self) -> str:
        if self.run is None:
            return "its machines do not answer, so their data are unknown"
        step = "no step was read" if self.step is None else f"step {self.step}"
        saved = "without a checkpoint yet" if self.checkpoint is None else f"its newest checkpoint at {self.checkpoint}"
        at = "" if self.fetched_step is None else f" at step {self.fetched_step}"
        home = "nothing of it was fetched" if self.fetched is None else f"fetched last{at}, {moment(self.fetched)}"
        more = f" and {len(self.files) - SHOWN} more" if len(self.files) > SHOWN else ""
        files = f"; not fetched: {', '.join(self.files[:SHOWN])}{more}" if self.files else ""
        what = f"earlier run {self.run}" if self.earlier else f"run {self.run}"
        return f"{what} lies on its machines only: {'' if self.earlier else f'{step}, '}{saved}; {home}{files}"


def look(home: Home, stack: str, status: Mapping[str, Any] | None) -> tuple[Stake, ...]:
    """Return what would be lost with the machines of ``stack``: its run, and earlier ones on the same machines."""
    if status and status["run"] is None:
        return ()
    listed = commands.unfetched(home, stack) if status else None
    return (Stake(None),) if status is None or listed is None else judge(status, listed)


def judge(status: Mapping[str, Any], listed: Sequence[Mapping[str, Any]]) -> tuple[Stake, ...]:
    """Compare what the machines have with what was fetched.

    A run without a whole checkpoint has all that it has made in its steps; one that shows no step either may compute all the same.
    """
    found = []
    for one in listed:
        own = one["run"] == status["run"]
        step, checkpoint = (status["step"], status["checkpoint"]) if own else (None, one["step"])
        begun = own and (step is not None or checkpoint is not None or status["state"] in LIVING)
        files = (*one["unfetched"], *(one["silent"] if one["gone_on"] and (begun or not own) else ()))
        if files or (begun and one["step"] is None and one["gone_on"]):
            found.append(Stake(one["run"], step, checkpoint, one["fetched_step"], one["fetched"], files, not own))
    return tuple(found)


def save_before_destroy(home: Home, stack: str, environment: Mapping[str, str], stages: Stages) -> None:
    """Fetch the run first or discard it, as the user chose.

    Raises:
        SetupError: something would be lost, and the user has not chosen.
    """
    stakes = look(home, stack, commands.status(home, stack))
    if stakes:
        lost = f"Stack {stack} would lose something with its machines: {_all(stakes)}"
        _save(lost, home, stack, "make down", environment, stages)


def save_before_update(home: Home, stack: str, environment: Mapping[str, str], stages: Stages) -> None:
    """Do the same before an update whose preview removes machines, or ends the living run for another one."""
    status = commands.status(home, stack)
    living = status["run"] if status and status["state"] in LIVING else None
    stakes = look(home, stack, status)
    why = why_something_ends(home, stack, living) if stakes or living else None
    if why:
        lost = f"{why}; {_all(stakes) or f'all that run {living} has saved is fetched'}"
        _save(lost, home, stack, "make up", environment, stages)


def _all(stakes: Sequence[Stake]) -> str:
    return ". And ".join(map(str, stakes))


def _save(  # noqa: PLR0917
    lost: str, home: Home, stack: str, verb: str, environment: Mapping[str, str], stages: Stages
) -> None:
    if environment.get(FETCH):
        with stages.stage("fetch", "fetching what is only on the machines"):
            if commands.fab(home, "fetch", stack, "--everything"):
                raise SetupError(
                    f"Not everything could be fetched, for the reason above; the machines stay and cost money. "
                    f"`{verb} STACK={stack} FETCH=1` tries again, `{verb} STACK={stack} DISCARD=1` discards it."
                )
        return
    if environment.get(DISCARD):
        say(f"Discarding what was not fetched: {lost}.")
        return
    raise SetupError(
        f"{verb}: {lost}. Nothing was changed; it still costs money. "
        f"`{verb} STACK={stack} FETCH=1` fetches it first, `{verb} STACK={stack} DISCARD=1` goes on without fetching.",
        MISTAKE,
    )


def why_something_ends(home: Home, stack: str, living: str | None) -> str | None:
    """Return why an update may remove machines or end the run ``living``; None when it does neither.

    The preview refreshes as the update will: a change made in the account may need a replacement.
    """
    argv = (str(PULUMI), "preview", "--refresh", "--run-program", "--json", "--non-interactive", "-s", stack)
    options = {"cwd": PROJECT, "env": with_account(home), "timeout": PREVIEW_S, "stdin": subprocess.DEVNULL}
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, **options)
        preview = json.loads(done.stdout)
        machines, run = machines_taken(preview), run_ended(preview, living)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, subprocess.TimeoutExpired) as error:
        return f"what an update would replace cannot be told, for its preview failed ({type(error).__name__})"
    if done.returncode:
        return f"what an update would replace cannot be told, for its preview failed: {_reason(preview)}"
    going = [f"replace or remove {', '.join(machines)}"] if machines else []
    ended = [f"end run {run}, which is at work, and start another"] if run else []
    return f"an update would {' and '.join(going + ended)}" if going or ended else None


def machines_taken(preview: Mapping[str, Any]) -> list[str]:
    """Return the machines that ``pulumi preview --json`` removes."""
    steps, machines = preview.get("steps") or [], tuple(machine_types())
    taken = {step["urn"] for step in steps if step["op"] in REMOVING and step["urn"].split("::")[2].endswith(machines)}
    return sorted(urn.rpartition("::")[2] for urn in taken)


def run_ended(preview: Mapping[str, Any], living: str | None) -> str | None:
    """Return the living run where ``pulumi preview --json`` starts another one in its place; the first trigger of its step is the run."""
    inputs = [(step.get("newState") or {}).get("inputs") or {} for step in preview.get("steps") or []]
    runs = [each["triggers"][0] for each in inputs if str(each.get("create")).endswith(START_JOB)]
    return living if runs and living not in runs else None


def _reason(preview: Mapping[str, Any]) -> str:
    errors = [str(one.get("message")) for one in preview.get("diagnostics") or [] if one.get("severity") == "error"]
    return one_line(errors[0]).strip() if errors else "pulumi gave no reason"
