"""`fab fetch`: download a run, so that the machines can be cancelled."""

from typing import Annotated

from microcluster.command_line.command import STACK, AsJson, Option, StackName, command
from microcluster.run.fetch import fetch_runs, show_unfetched


@command
def fetch(
    stack: StackName = STACK,
    as_json: AsJson = False,
    unfetched: Annotated[bool, Option("only list what is not fetched yet, of every run on the machines")] = False,
    everything: Annotated[
        bool, Option("also older checkpoints, what was put aside, large files, and earlier runs on the machines")
    ] = False,
) -> int:
    """Download best model, newest checkpoint, small and kept files, configuration, logs and curves to artifacts/STACK/RUN-WORD."""
    if unfetched:
        return show_unfetched(stack, as_json=as_json)
    return fetch_runs(stack, as_json=as_json, everything=everything)
