"""Rules about several values of a stack file, and values that follow from others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from microcluster.catalog import softlayer as catalog
from microcluster.catalog.gpus import GPUS
from microcluster.config.data import data as finished_data
from microcluster.config.errors import unknown_key
from microcluster.config.safe_yaml import shown
from microcluster.config.validators import problem_of_path, run_or_reason
from microcluster.jobs.contract import JobKind
from microcluster.jobs.kind import KINDS, kind_of
from microcluster.jobs.values import Hardware, Origin

DOCUMENTATION_CIDR = "203.0.113.7/32"
ACCOUNT_KEYS = ("configFile", "timeScale")
CREDENTIALS = ("apiKey", "api_key", "key", "password", "username", "token", "secret")
LONGEST_TIME_SCALE = 1000


def complete(written: Mapping[str, Any], local_program: str | None) -> tuple[dict[str, Any], dict[str, str]]:
    """Fill in values that follow from others; return the sections and the reasons. Invalid values stay for the validation.

    Args:
        local_program: the trainer in the local image beside the stand-in.
    """
    sections = {name: dict(value) if isinstance(value, Mapping) else value for name, value in written.items()}
    found: dict[str, Origin] = {}
    cluster, job = sections.get("cluster"), sections.get("job")
    if isinstance(cluster, dict) and "image" not in cluster:
        found["cluster.os"] = Origin(catalog.OPERATING_SYSTEMS[0], f"newest system of the catalog of {catalog.AS_OF}")
    kind = kind_named(job)
    if kind:
        found["container.name"] = Origin(kind.name, "follows from job.kind")
        found |= kind.defaults(sections, Hardware(_precision(cluster), local_program))
    reasons = {}
    for path, origin in found.items():
        section, _, key = path.partition(".")
        values = sections.get(section)
        if isinstance(values, dict) and key not in values:
            reasons[path] = origin.reason
            if origin.value is not None:
                values[key] = origin.value
    return sections, reasons


def kind_named(job: Any) -> JobKind | None:
    """Return the kind that a ``job`` section names, or None."""
    named = job.get("kind") if isinstance(job, Mapping) else None
    return kind_of(named) if isinstance(named, str) and named in KINDS else None


def _precision(cluster: Any) -> str | None:
    """Return the fastest precision of the flavor's GPUs."""
    flavor = catalog.FLAVORS.get(str(cluster.get("flavor"))) if isinstance(cluster, dict) else None
    return GPUS[flavor.gpu].precision if flavor else None


def problems_between(written: Mapping[str, Any], *, ordering: bool) -> list[str]:
    """Check rules between values; the validation checks their types."""
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
            f"cluster/adminCidrs: {DOCUMENTATION_CIDR} is the documentation's address; use your own, which `curl ifconfig.me` prints"
        )
    return problems


def problems_of_job(written: Mapping[str, Any], *, ordering: bool) -> list[str]:
    """Check the job's texts, and the rules of its kind."""
    job = written.get("job")
    kind = kind_named(job)
    if not kind:
        return []
    problems = []
    for key, check in (("preflight", run_or_reason), ("data", finished_data)):
        if isinstance(job.get(key), str):
            try:
                check(job[key])
            except ValueError as problem:
                problems.append(f"job/{key}: {problem}")
    return problems + kind.problems(written, ordering=ordering)


def problems_of_account(written: Mapping[str, Any]) -> list[str]:
    """Check the provider's settings: with a misspelled one the environment would choose the account."""
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
            f"softlayer:{key}: does not belong in a stack file. Put user and key into a 0600 file and name it in "
            "softlayer:configFile, or export SL_USERNAME and SL_API_KEY"
        )
    return unknown_key(f"softlayer:{key}", key, ACCOUNT_KEYS)


def _is_time_scale(value: Any) -> bool:
    try:
        return not isinstance(value, bool) and 0 < float(value) <= LONGEST_TIME_SCALE
    except (TypeError, ValueError):
        return False
