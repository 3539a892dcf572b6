"""The `cluster` section before a site's queue: what can never run is refused before anybody is asked."""

import re

import pytest

from components.cluster import facts_of
from microcluster.config import stack as config
from microcluster.config.stack import ConfigError, Owner
from microcluster.jobs.cluster_facts import Queue

SEAWULF = {"account": "pbs", "site": "seawulf", "queue": "gpu", "walltime": "08:00:00", "folder": "/gpfs/me/runs"}
JOB = {
    **{"kind": "torchrun", "source": "examples/translation_torch", "script": "train.py", "maxSteps": 10},
    "checkpoints": r"(?P<step>\d+)",
}


def parsed(**changed: object) -> config.Stack:
    cluster = {key: value for key, value in {**SEAWULF, "processors": 20, **changed}.items() if value is not None}
    return config.parse("dev", {"microcluster:cluster": cluster, "microcluster:job": JOB, "pbs:sshConfig": "~/site"})


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        ({"nodes": 3}, "cluster/nodes: 3 is over the limit of 2 of queue gpu (seawulf"),
        ({"walltime": "09:00:00"}, "cluster/walltime: 09:00:00 is over the limit of 8 h of queue gpu"),
        ({"processors": 64}, "cluster/processors: 64 is over the limit of 28 of queue gpu"),
        ({"queue": "gpux"}, "cluster/queue: 'gpux' is no queue of seawulf; one of gpu, gpu-long"),
        ({"walltime": "8h"}, "cluster/walltime: '8h' is not HH:MM:SS"),
        ({"walltime": "00:01:00"}, "cluster/walltime: '00:01:00' is too short"),
        ({"site": "seawolf"}, "cluster/site: 'seawolf' is not a site in the catalog; did you mean 'seawulf'?"),
        ({"folder": "~/runs"}, "cluster/folder"),
        ({"modules": ["a; rm -rf ~"]}, "cluster/modules"),
    ],
)
def test_what_the_queue_would_never_run_is_refused_with_its_limit(changed, wanted):
    with pytest.raises(ConfigError, match=re.escape(wanted)):
        parsed(**changed)


def test_the_longer_queue_takes_what_the_shorter_one_refuses_and_without_a_site_the_live_one_alone_has_limits():
    assert parsed(queue="gpu-long", walltime="48:00:00").cluster.queue == "gpu-long"
    assert parsed(site=None, walltime="99:00:00", nodes=7).cluster.nodes == 7


def test_a_key_in_the_stack_file_is_refused_with_the_place_where_it_belongs():
    with pytest.raises(ConfigError, match="Name user and key in an OpenSSH configuration"):
        config.parse("dev", {"microcluster:cluster": SEAWULF, "microcluster:job": JOB, "pbs:password": "x"})


def test_the_facts_hold_what_is_asked_of_the_queue_and_where_the_run_lies():
    stack = parsed(modules=["torque/6.0.2"])
    facts = facts_of(stack, Owner("1f3a9c42", "", "/key", "/rank"))
    assert facts.queue == Queue("gpu", 2, 20, 8 * 3600, ("torque/6.0.2",))
    assert (facts.mount_point, facts.container) == ("/gpfs/me/runs", None)
