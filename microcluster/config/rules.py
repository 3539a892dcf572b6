"""Rules that concern several values of a stack file, and values that follow from others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from microcluster import catalog
from microcluster.config.errors import unknown_key
from microcluster.config.paths import problem_of_path
from microcluster.config.safe_yaml import shown
from microcluster.config.trainer import ONLY_STAND_IN, STAND_IN
from microcluster.jobs.image import LOCAL_REPOSITORY

DOCUMENTATION_CIDR = "203.0.113.7/32"
NVIDIAS_IMAGE = "nvcr.io/nvidia/tensorflow"
PYTHON_3_5 = re.compile(r"18\.\d\d-py3|19\.0[1-5]-py3")
"""The tags of NVIDIA's image with the Python for which templates/Dockerfile pins every package."""
UNPLANNED_STEPS = 200
"""Between checkpoints of the large model on what nobody has timed: about what the slowest that was timed gets."""
USUAL_STEPS = {"transformer-tiny": 300, "transformer-base": 50_000}
ACCOUNT_KEYS = ("configFile", "timeScale", "importMark")
CREDENTIALS = ("apiKey", "api_key", "key", "password", "username", "token", "secret")
LONGEST_TIME_SCALE = 1000


def complete(written: Mapping[str, Any], trainer: str | None) -> tuple[dict[str, Any], dict[str, str]]:
    """Fill in what follows from other values, and say why; what is invalid is left for the validation.

    Args:
        trainer: the OpenSeq2Seq in the local training image, None where that holds the stand-in alone.
    """
    sections = {name: dict(value) if isinstance(value, Mapping) else value for name, value in written.items()}
    cluster, job = sections.get("cluster"), sections.get("job")
    reasons: dict[str, str] = {}

    def follow(section: str, values: Any, key: str, value: Any, reason: str) -> None:
        if isinstance(values, dict) and key not in values:
            values[key] = value
            reasons[f"{section}.{key}"] = reason

    if isinstance(cluster, dict) and "image" not in cluster:
        follow("cluster", cluster, "os", catalog.newest_system(), f"newest system of the catalog of {catalog.AS_OF}")
    local = is_local(sections.get("container"))
    follow("job", job, "model", "transformer-tiny" if local else "transformer-base", "follows from container.image")
    if local and trainer is None:
        follow("job", job, "trainer", STAND_IN, ONLY_STAND_IN)
    elif isinstance(job, dict) and "trainer" not in job:
        reasons["job.trainer"] = f"not set: {trainer} in the local training image" if local else "not set: OpenSeq2Seq"
    model = job.get("model") if isinstance(job, dict) else None
    tiny = model == "transformer-tiny"
    if str(model) in USUAL_STEPS:
        follow("job", job, "maxSteps", USUAL_STEPS[str(model)], "follows from job.model")
    flavor = catalog.FLAVORS.get(str(cluster.get("flavor"))) if isinstance(cluster, dict) else None
    mixed = flavor is not None and flavor.gpu == "V100" and not tiny
    follow("job", job, "dataset", "debian-en-de" if tiny else "wmt16-en-de", "follows from job.model")
    follow("job", job, "precision", "mixed" if mixed else "fp32", "follows from cluster.flavor and job.model")
    precision = job.get("precision") if isinstance(job, dict) else None
    batch = 16 if tiny else 256 if precision == "mixed" else 128
    follow("job", job, "batchPerGpu", batch, "follows from job.model and job.precision (16 bits fit twice as much)")
    follow("job", job, "evalSteps", 100 if tiny else 4001, "follows from job.model")
    # Where planning knows the time of a step, `plan` puts in what follows from the money at risk.
    follow(
        "job",
        job,
        "checkpointSteps",
        100 if tiny else UNPLANNED_STEPS,
        "follows from job.model: nothing like it was timed",
    )
    return sections, reasons


def problems_between(written: Mapping[str, Any], *, ordering: bool) -> list[str]:
    """Check what concerns several values at once; values of the wrong type are the validation's business."""
    cluster = written.get("cluster")
    if not isinstance(cluster, Mapping):
        return []
    problems = []
    flavor = catalog.FLAVORS.get(str(cluster.get("flavor")))
    datacenter = cluster.get("datacenter")
    if (
        flavor
        and isinstance(datacenter, str)
        and datacenter in catalog.DATACENTERS
        and datacenter not in flavor.datacenters
    ):
        places, offered = ", ".join(flavor.datacenters), ", ".join(catalog.sold_in(str(datacenter)))
        problems.append(
            f"cluster/datacenter: {datacenter} does not sell {flavor.describe()}; sold in {places}. {datacenter} sells {offered}"
        )
    if flavor and not flavor.san:
        problems.append(
            f"cluster/flavor: {flavor.name} has local disks, which take no SAN data disk; use {flavor.name.replace('ACL', 'AC')}"
        )
    for one, other in (("os", "image"), ("router", "privateVlan")):
        if cluster.get(one) is not None and cluster.get(other) is not None:
            problems.append(f"cluster/{other}: cannot be given together with cluster/{one}; leave one of them out")
    cidrs = cluster.get("adminCidrs")
    if ordering and isinstance(cidrs, list) and DOCUMENTATION_CIDR in cidrs:
        problems.append(
            f"cluster/adminCidrs: {DOCUMENTATION_CIDR} is the documentation's address; put in your own, as `curl ifconfig.me` shows it"
        )
    return problems + _problems_of_trainer(written) + (_problems_of_image(written) if ordering else [])


def _problems_of_trainer(written: Mapping[str, Any]) -> list[str]:
    job = written.get("job")
    if not isinstance(job, Mapping) or job.get("trainer") != STAND_IN or is_local(written.get("container")):
        return []
    return [
        f"job/trainer: only the local training image ({LOCAL_REPOSITORY}) holds the stand-in; leave trainer out, and "
        "OpenSeq2Seq trains"
    ]


def _problems_of_image(written: Mapping[str, Any]) -> list[str]:
    """Refuse to rent machines for a base on which the training image cannot be built; a preview may name it."""
    container = written.get("container")
    named = str(container.get("image")) if isinstance(container, Mapping) else ""
    repository, _, tag = named.partition(":")
    if repository != NVIDIAS_IMAGE or "@" in named or PYTHON_3_5.fullmatch(tag):
        return []
    return [
        f"container/image: {named} has another Python than 3.5, for which templates/Dockerfile pins the job's packages; "
        f"use {NVIDIAS_IMAGE}:19.05-py3"
    ]


def is_local(container: Any) -> bool:
    """Return whether a section names the image that is built from images/training, in whatever registry."""
    named = str(container.get("image")) if isinstance(container, Mapping) else ""
    return repository(named) == LOCAL_REPOSITORY


def repository(image: str) -> str:
    """Return the repository that an image reference names, without registry, tag and digest."""
    return image.partition("/")[2].partition("@")[0].partition(":")[0]


def problems_of_account(written: Mapping[str, Any]) -> list[str]:
    """Check the provider's own settings: a misspelt one would leave the choice of the account to the environment."""
    problems = [_strange_setting(key) for key in written if key not in ACCOUNT_KEYS]
    file = problem_of_path(written["configFile"]) if written.get("configFile") is not None else None
    if file:
        problems.append(f"softlayer:configFile: {file}")
    scale = written.get("timeScale", 1)
    if not _is_time_scale(scale):
        problems.append(f"softlayer:timeScale: {shown(scale)} is no number above 0 and up to {LONGEST_TIME_SCALE}")
    return problems


def _strange_setting(key: str) -> str:
    if key in CREDENTIALS:
        return (
            f"softlayer:{key}: does not belong into a stack file. Put user and key into a 0600 file and name it in "
            "softlayer:configFile, or export SL_USERNAME and SL_API_KEY"
        )
    return unknown_key(f"softlayer:{key}", key, ACCOUNT_KEYS)


def _is_time_scale(value: Any) -> bool:
    try:
        return not isinstance(value, bool) and 0 < float(value) <= LONGEST_TIME_SCALE
    except (TypeError, ValueError):
        return False
