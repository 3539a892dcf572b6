"""One stack file in, one cluster and one job out."""

import sys

import pulumi

from components.cluster import TrainingClusterArgs, declare_cluster
from components.job import TrainingJob, TrainingJobArgs
from microcluster.config import stack as config
from microcluster.core.home import Home
from microcluster.lifecycle import renamed

ALREADY_LOGGED = 32
"""With this exit code Pulumi's language host adds no message of its own."""


def main() -> None:
    stack = config.load()
    renamed.settle(Home.of(), stack.name)
    keys = config.keys_of(stack.name)
    args = TrainingClusterArgs(stack, keys)
    cluster = declare_cluster("cluster", args)
    job = TrainingJob("job", TrainingJobArgs(args, cluster))
    pulumi.export("pricePerHour", cluster.price_per_hour)
    pulumi.export("costs", cluster.costs)
    pulumi.export("plan", job.plan)
    pulumi.export("atRisk", job.at_risk)
    pulumi.export("guard", job.guard)
    pulumi.export("run", job.run)
    pulumi.export("rental", cluster.rental)
    pulumi.export("microcluster", job.facts)


try:
    main()
except config.ConfigError as error:
    pulumi.log.error(str(error))
    sys.exit(ALREADY_LOGGED)
