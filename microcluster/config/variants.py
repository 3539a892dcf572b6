"""The same job on other machines: every choice that the stack's account sells, each checked as a stack file of its own."""

from collections.abc import Iterator
from typing import get_args

from microcluster.config.stack import NAMESPACE, ConfigError, Stack, parse, path_of, read_values

CLUSTER, JOB = f"{NAMESPACE}:cluster", f"{NAMESPACE}:job"


def variants(own: Stack) -> Iterator[Stack]:
    """Return a stack for each choice of machines, ports and precisions that its rules allow."""
    values = read_values(path_of(own.name))
    precision = type(own.job).model_fields.get("precision")
    jobs = [{"precision": each} for each in get_args(precision.annotation)] if precision else [{}]
    for cluster in own.cluster.variants():
        for job in jobs:
            changed = {CLUSTER: values[CLUSTER] | cluster, JOB: values[JOB] | job}
            try:
                yield parse(own.name, values | changed)
            except ConfigError:  # For example a job that needs more GPUs.
                continue


def keys_that_differ(own: Stack, other: Stack) -> dict[str, object]:
    """Return the keys of the stack file, by path, that make the one the other."""
    found: dict[str, object] = {}
    for section in ("cluster", "job"):
        before, after = (getattr(each, section).model_dump(by_alias=True) for each in (own, other))
        changed = {f"{section}.{key}": value for key, value in after.items() if before.get(key) != value}
        # What follows from these keys is not said again.
        found |= {path: value for path, value in changed.items() if path not in ("job.checkpointSteps",)}
    return found
