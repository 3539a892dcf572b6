"""`fab fetch`: download a run, so that the machines can be cancelled."""

from microcluster.command_line.command import STACK, command
from microcluster.run.fetch import fetch_runs, show_unfetched


@command
def fetch(stack: str = STACK, as_json: bool = False, unfetched: bool = False, everything: bool = False) -> int:
    """Download best model, newest checkpoint, small and kept files, configuration, logs and curves to artifacts/STACK/RUN-WORD."""
    if unfetched:
        return show_unfetched(stack, as_json=as_json)
    return fetch_runs(stack, as_json=as_json, everything=everything)
