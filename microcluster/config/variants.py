"""Variants of a stack: its job on every choice of machines that the account sells, each checked as a stack file."""

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from microcluster.config.stack import NAMESPACE, ConfigError, Stack, parse, path_of, read_values

CLUSTER, JOB = f"{NAMESPACE}:cluster", f"{NAMESPACE}:job"
MACHINE_COUNTS = (1, 2, 4)
"""Machine counts that `fab plan` compares with the stack file's own."""
Keys = dict[str, Any]


def variants(own: Stack) -> Iterator[tuple[Stack, Keys]]:
    """Return a stack for each choice of machines, ports and precisions that its rules allow, and the keys that make it.

    The keys are by their path, such as "cluster.nodes", and only those that ``own`` has otherwise.
    """
    values = read_values(path_of(own.name))
    precision = type(own.job).model_fields.get("precision")
    jobs = [{"precision": each} for each in get_args(precision.annotation)] if precision else [{}]
    for cluster in own.cluster.variants(MACHINE_COUNTS):
        for job in jobs:
            changed = {CLUSTER: values[CLUSTER] | cluster, JOB: values[JOB] | job}
            try:
                other = parse(own.name, values | changed)
            except ConfigError:  # For example a job that needs more GPUs.
                continue
            yield other, _other_keys("cluster", cluster, own.cluster) | _other_keys("job", job, own.job)


def _other_keys(section: str, keys: Mapping[str, Any], own: Any) -> Keys:
    before = own.model_dump(by_alias=True)
    return {f"{section}.{key}": value for key, value in keys.items() if before[key] != value}
