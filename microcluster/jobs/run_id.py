"""The name of a run, by which a second start finds the first one's checkpoints."""

import dataclasses
import hashlib
import json

from microcluster.jobs import image
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.kind import kind_of

RUN_ID_DIGITS = 12


def run_id(facts: ClusterFacts) -> str:
    """Return the twelve hex digits that name the run.

    They change with everything that makes a run another one, and with nothing else: not with max_steps, which may be
    raised to go on, and not with the hosts' addresses, which a preview does not know. The image's name stands for its
    Dockerfile, and with it for its base and for the version of what trains.
    """
    facts.require("job", "hosts")
    assert facts.job
    endless = dataclasses.replace(facts.job, max_steps=0)
    identity = {
        **kind_of(facts.job.kind).identity(endless, facts.mount_point),
        "image": image.tag(facts.container) if facts.container else None,
        "world": [len(facts.hosts), facts.slots],
    }
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:RUN_ID_DIGITS]
