"""`fab explain`: every value of a stack and where it came from."""

from microcluster.command_line.command import STACK, AsJson, StackName, command
from microcluster.command_line.parts import print_json
from microcluster.config import stack as config
from microcluster.core.plain_text import note
from microcluster.display.console import show_table


@command
def explain(stack: StackName = STACK, as_json: AsJson = False) -> int:
    """Print every value of the stack with its source, and the expected time and cost of the run."""
    known = config.read_file(stack)
    try:
        known = config.with_files(known)
    except config.ConfigError as problem:  # What is on this computer only.
        note(str(problem))
    origins, environment = known.origins, config.environment_of(stack)
    if environment:
        origins = (
            *origins,
            (
                "environment",
                environment,
                "stack file, for Pulumi's service; resolved when the engine runs, not known here",
            ),
        )
    if known.forecast and known.forecast.warning:
        note(known.forecast.warning)
    if as_json:
        print_json({path: {"value": value, "source": source} for path, value, source in origins})
        return 0
    show_table(("value", "is", "because"), [(path, str(value), source) for path, value, source in origins])
    return 0
