"""The run's folder of a stack, as the launcher gets it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from components.cluster import facts_of
from microcluster.config import stack as config
from microcluster.core.home import Owner
from microcluster.jobs.cluster_facts import HostFacts
from microcluster.jobs.openseq2seq import Job
from microcluster.jobs.run_spec import RunFolder, decided

OWNER = config.StackKeys(Owner("dev", "1f3a9c42"), "ssh-ed25519 AAAA", "key", "rank_key")


def launched(stack: config.Stack, *, on_machines: bool = False, first: int = 1, **changes: Any) -> RunFolder:
    """Return the folder of run abcdef012345 on nodes from 10.0.0.FIRST on."""
    facts = decided(facts_of(config.with_files(stack), OWNER))
    hosts = tuple(
        HostFacts(host.name, "1", "198.51.100.1", f"10.0.0.{first + number}", "k")
        for number, host in enumerate(facts.hosts)
    )
    made = {"hosts": hosts, "run": "abcdef012345", **({"container": None} if on_machines else {}), **changes}
    return RunFolder(replace(facts, **made))


def on_gpus(job: Mapping[str, object], image: str, *, ordering: bool = False, nodes: int = 2) -> config.Stack:
    """Return the checked stack of a job on nodes of two GPUs; None takes a key away."""
    cluster = {"datacenter": "lon06", "flavor": "AC1_16X120X100", "adminCidrs": ["198.51.100.7/32"], "nodes": nodes}
    section = {key: value for key, value in job.items() if value is not None}
    sections = {"cluster": cluster, "container": {"image": f"r.test/microcluster/{image}:local"}, "job": section}
    return config.parse("dev", {f"microcluster:{name}": one for name, one in sections.items()}, ordering=ordering)


def run_id(folder: RunFolder) -> str:
    """Return the id that the run would get."""
    return str(decided(folder.facts).run)


def transformer(**changes: object) -> Job:
    """Return the small Transformer's section."""
    usual = {
        "kind": "openseq2seq",
        "model": "transformer-tiny",
        "maxSteps": 300,
        "precision": "fp32",
        "batchPerGpu": 16,
    }
    usual |= {"evalSteps": 100, "checkpointSteps": 100, "dataset": "debian-en-de"}
    return Job.model_validate(usual | changes)
