"""Unsaved work: a run that is only on machines whose data disks end with them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from microcluster.accounts.registry import machine_types
from microcluster.analysis.run_state import Outcome
from microcluster.command_line.apart import apart
from microcluster.command_line.parts import run_part
from microcluster.core.home import Home
from microcluster.core.plain_text import one_line, say
from microcluster.lifecycle import pulumi
from microcluster.run.fetch import fetch_runs, unfetched_runs
from microcluster.run.status import Observed, observed_or_none
from microcluster.setup.errors import CommandFailed, UserMistake
from microcluster.setup.progress import Stages, moment

Choice = Literal["fetch", "discard"] | None
"""Choice of a person for a run that would be lost."""
PREVIEW_S = 300
LOOK_LIMIT_S, DISCARD_LIMIT_S = 300, 60
"""Limits for listing the files of a run, and for that where it is discarded anyway; later it counts as unknown."""
SHOWN = 5
"""Number of files that are named; the rest are counted."""
LIVING = ("running", "stalled")
START_JOB = "step.start-job"
"""End of the command of the step that starts the run."""
AND = ". And "
NO_ANSWER = "its machines do not answer, so their data are unknown"
REMOVING = ("replace", "delete", "delete-replaced", "create-replacement")


def choice(*, fetch_first: bool, discard: bool) -> Choice:
    """Return what the options of a command say."""
    return "fetch" if fetch_first else "discard" if discard else None


def look(stack: str, seen: Observed | None) -> list[str]:
    """Say what would be lost with the machines of ``stack``: its run, and earlier ones on the same machines."""
    if seen is None:
        return [NO_ANSWER]
    cluster, outcome = seen
    if cluster is None or cluster.run is None:
        return []
    try:
        return judge(cluster.run, outcome, unfetched_runs(stack))
    except Exception:  # noqa: BLE001 - what does not say what it has is not taken for empty
        return [NO_ANSWER]


def what_would_be_lost(stack: str) -> list[str]:
    """Ask the machines, and say what would be lost with them."""
    return look(stack, observed_or_none(stack))


def judge(run: str, outcome: Outcome, listed: Sequence[Mapping[str, Any]]) -> list[str]:
    """Compare what the machines have with what was fetched, and say of each run what lies there only.

    A run without a whole checkpoint has all that it has made in its steps; one that shows no step either may compute all the same.
    """
    found = []
    for one in listed:
        own = one["run"] == run
        step, checkpoint = (outcome.step, max(outcome.checkpoints, default=None)) if own else (None, one["step"])
        begun = own and (step is not None or checkpoint is not None or outcome.state in LIVING)
        files = (*one["unfetched"], *(one["silent"] if one["gone_on"] and (begun or not own) else ()))
        if files or (begun and one["step"] is None and one["gone_on"]):
            made = "no step was read" if step is None else f"step {step}"
            what = f"run {run} lies on its machines only: {made}, "
            if not own:
                what = f"earlier run {one['run']} lies on its machines only: "
            found.append(what + _left(one, checkpoint, files))
    return found


def _left(one: Mapping[str, Any], checkpoint: int | None, files: Sequence[str]) -> str:
    """Say what a run has saved, what of it was fetched, and what was not."""
    saved = "without a checkpoint yet" if checkpoint is None else f"its newest checkpoint at {checkpoint}"
    fetched = "nothing of it was fetched"
    if one["fetched"] is not None:
        at = "" if one["fetched_step"] is None else f" at step {one['fetched_step']}"
        fetched = f"fetched last{at}, {moment(one['fetched'])}"
    more = f" and {len(files) - SHOWN} more" if len(files) > SHOWN else ""
    number = f"{one['sum']}: " if one["unfetched"] else ""
    return f"{saved}; {fetched}" + (f"; not fetched: {number}{', '.join(files[:SHOWN])}{more}" if files else "")


def save_before_destroy(stack: str, choice: Choice, stages: Stages) -> None:
    """Fetch the run first or discard it, as the user chose.

    Raises:
        UserMistake: something would be lost, and the user has not chosen.
    """
    stakes = apart(DISCARD_LIMIT_S if choice == "discard" else LOOK_LIMIT_S, what_would_be_lost, stack=stack)
    if stakes is None:
        stakes = [NO_ANSWER]
    if stakes:
        lost = f"Stack {stack} would lose something with its machines: {AND.join(stakes)}"
        _save(lost, stack, "make down", choice, stages)


def save_before_update(home: Home, stack: str, choice: Choice, stages: Stages) -> None:
    """Fetch the run first or discard it, before an update whose preview removes machines or ends the living run."""
    seen = observed_or_none(stack)
    cluster, outcome = seen or (None, Outcome("absent"))
    living = cluster.run if cluster and outcome.state in LIVING else None
    stakes = look(stack, seen)
    why = why_something_ends(home, stack, living) if stakes or living else None
    if why:
        lost = f"{why}; {AND.join(stakes) or f'all that run {living} has saved is fetched'}"
        _save(lost, stack, "make up", choice, stages)


def _save(lost: str, stack: str, command: str, choice: Choice, stages: Stages) -> None:
    if choice == "fetch":
        with stages.stage("fetch", "fetching what is only on the machines"):
            if run_part(fetch_runs, stack=stack, everything=True):
                raise CommandFailed(
                    f"Not everything could be fetched, for the reason above; the machines stay and cost money. "
                    f"`{command} STACK={stack} FETCH=1` tries again, `{command} STACK={stack} DISCARD=1` discards it."
                )
    elif choice == "discard":
        say(f"Discarding what was not fetched: {lost}.")
    else:
        raise UserMistake(
            f"{command}: {lost}. Nothing was changed; it still costs money. `{command} STACK={stack} FETCH=1` "
            f"fetches it first, `{command} STACK={stack} DISCARD=1` goes on without fetching."
        )


def why_something_ends(home: Home, stack: str, living: str | None) -> str | None:
    """Return why an update may remove machines or end the run ``living``; None when it does neither.

    The preview refreshes as the update will: a change made in the account may need a replacement.
    """
    failed = "what an update would replace cannot be told, for its preview failed"
    try:
        done = pulumi.answer(home, "preview", "--refresh", "--run-program", "--json", "-s", stack, limit_s=PREVIEW_S)
        preview = json.loads(done.stdout)
        machines, run = machines_taken(preview), run_ended(preview, living)
    except CommandFailed as error:
        return f"{failed}: {str(error).rstrip('.')}"
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        return f"{failed} ({type(error).__name__})"
    if done.returncode:
        return f"{failed}: {_reason(preview)}"
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
