"""Rules about several values of a stack file, and values that follow from others."""

from collections.abc import Mapping
from typing import Any

from microcluster.accounts.registry import account_of, name_in
from microcluster.accounts.shared.cluster_section import AccountFacts, ClusterSection
from microcluster.config.sections import StackFile
from microcluster.config.validation_messages import unknown_key
from microcluster.core.catalog.gpus import GPUS
from microcluster.core.catalog.images import why_unusable
from microcluster.core.home import problem_of_path
from microcluster.core.plain_text import printable, shown
from microcluster.jobs.image import named_image
from microcluster.jobs.job_section import Hardware, Origin, Section
from microcluster.jobs.kinds import KINDS, kind_named, kind_of
from microcluster.planning.run_cost import budget_hours, smallest_budget

TIME_SCALE = "timeScale"
"""The setting of every account: the unit of all waits of its provider."""
LONGEST_TIME_SCALE = 1000
FIRST_TRAINING_H = 1
"""Hours of training that the smallest budget pays, after preparation and data."""
USUAL_NODES = 2
"""Nodes of a cluster whose stack file does not say how many."""
HOST = "host"
"""The runtime of machines on which processes run without a container."""


def complete(written: Mapping[str, Any], local_programs: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, str]]:
    """Fill in values that follow from others; return the sections and the reasons. Invalid values stay for the validation.

    Args:
        local_programs: the trainers in the local image beside the stand-ins.
    """
    sections = {name: dict(value) if isinstance(value, Mapping) else value for name, value in written.items()}
    origins: dict[str, Origin] = {}
    cluster, job = sections.get("cluster"), sections.get("job")
    named = name_in(cluster)
    if named and isinstance(cluster, dict):
        origins |= account_of(named).section.defaults(cluster)
    kind = kind_named(job)
    if kind:
        origins["container.name"] = Origin(job["kind"], "follows from job.kind")
        origins |= kind.defaults(sections, _hardware(cluster, local_programs))
    reasons = {}
    for path, origin in origins.items():
        section, _, key = path.partition(".")
        values = sections.get(section)
        if isinstance(values, dict) and key not in values:
            reasons[path] = origin.reason
            if origin.value is not None:
                values[key] = origin.value
    if named and account_of(named).runtime == HOST:
        sections["container"] = None
    return sections, reasons


def _hardware(cluster: Any, local_programs: tuple[str, ...] = ()) -> Hardware:
    """Return the machine facts for a job kind: the fastest precision of the GPUs, and their number."""
    named = name_in(cluster)
    written = cluster.get("nodes", USUAL_NODES) if isinstance(cluster, dict) else None
    nodes = written if isinstance(written, int) else None
    hardware = account_of(named).section.size_of(cluster) if named and isinstance(cluster, dict) else None
    if not hardware:
        return Hardware(local_programs=local_programs, nodes=nodes)
    gpu = GPUS.get(hardware.gpu)
    return Hardware(gpu.precision if gpu else None, local_programs, nodes, hardware.gpus * nodes if nodes else None)


def problems_of_sections(written: Mapping[str, Any], completed: Mapping[str, Any], *, ordering: bool) -> list[str]:
    """Check the rules of the account and of the job's kind, between values and between sections; the validation checks types."""
    cluster, kind, found_problems = written.get("cluster"), kind_named(written.get("job")), []
    if kind:
        found_problems += kind.problems(completed, _hardware(completed.get("cluster")), ordering=ordering)
    named = name_in(cluster)
    if named:
        account = account_of(named)
        if isinstance(cluster, Mapping):
            found_problems += account.section.problems(cluster, ordering=ordering)
            found_problems += _problems_of_image(account.section, cluster, named_image(written))
        found_problems += _problems_of_runtime(account, kind, written)
    if "guard" in written and written["guard"] is None:  # Whoever wrote it believes that it guards.
        found_problems.append("guard: has no keys and would guard nothing; for example lease: 30")
    return found_problems


def _problems_of_image(section: type[ClusterSection], cluster: Mapping[str, Any], image: str) -> list[str]:
    """Refuse an image that is known not to compute on the cluster's GPUs; of any other the preflight says whether it does."""
    gpu = GPUS.get(getattr(section.size_of(cluster), "gpu", ""))
    why = why_unusable(image, gpu, section.installed_driver(cluster)) if gpu else ""
    advice = "take an older tag, or another flavor: docs/image-and-data.md has what runs where"
    return [f"container/image: {printable(image)} cannot compute on {gpu.name}: {why}; {advice}"] if why else []


def _problems_of_runtime(account: AccountFacts, kind: type[Section] | None, written: Mapping[str, Any]) -> list[str]:
    """Refuse a kind that cannot run on the account's machines, and a container where none runs."""
    problems = []
    if account.runtime == HOST and written.get("container") is not None:
        problems.append(f"container: machines of the {account.title} account run no container; leave the section out")
    if kind and account.runtime not in kind.runtimes:
        able = ", ".join(name for name in KINDS if account.runtime in kind_of(name).runtimes)
        where = "on the machine itself" if account.runtime == HOST else "in a container"
        problems.append(
            f"job/kind: {written['job']['kind']} cannot run {where}, as in the {account.title} account; one of {able}"
        )
    return problems


def hours_to_first_training(cluster: ClusterSection, job: Section) -> float:
    """Return the hours from the order until an hour of training is over: the longest preparation and making of the data, and that hour."""
    return account_of(cluster.account).hours_before(job.workload())[2] + FIRST_TRAINING_H


def least_hours(cluster: ClusterSection, job: Section) -> int:
    """Return the started hours that a budget has to pay, the guard's reserve among them, whatever an hour costs."""
    by_month = bool(cluster.prices and cluster.prices.by_month)
    return budget_hours(hours_to_first_training(cluster, job), by_month=by_month)


def problems_of_budget(file: StackFile) -> list[str]:
    """Refuse dollars where nobody pays in them, and a budget that by the catalog's price may end before an hour of training is over."""
    budget = file.guard.budget if file.guard else None
    if not budget:
        return []
    account, prices = account_of(file.cluster.account), file.cluster.prices
    if not account.sells:
        return [
            f"guard/budget: nodes of the {account.title} account are not paid in dollars; limit node hours, for example lease: 30"
        ]
    if prices is None:
        return []
    hours = hours_to_first_training(file.cluster, file.job)
    least = smallest_budget(prices.per_hour, hours, by_month=prices.by_month)
    if budget >= least:
        return []
    return [
        f"guard/budget: ${budget:g} may end before an hour of training is over: preparation, data and that hour take up to "
        f"{hours:g} h at ${prices.per_hour:.2f}, and the guard keeps a started hour in reserve; at least {least:.2f}"
    ]


def problems_of_account(account: str, written: Mapping[str, Any]) -> list[str]:
    """Check the provider's settings ``NAME:...``: with a misspelled one the environment would choose the account."""
    setting, problems = account_of(account).key, []
    for key in written:
        if key in setting.mistaken:
            problems.append(f"{account}:{key}: does not belong in a stack file. {setting.advice}")
        elif key not in (setting.name, TIME_SCALE):
            problems.append(unknown_key(f"{account}:{key}", key, (setting.name, TIME_SCALE)))
    file = problem_of_path(written[setting.name]) if written.get(setting.name) is not None else None
    if file:
        problems.append(f"{account}:{setting.name}: {file}")
    scale = written.get(TIME_SCALE, 1)
    if not _is_time_scale(scale):
        problems.append(f"{account}:{TIME_SCALE}: {shown(scale)} is no number above 0 and up to {LONGEST_TIME_SCALE}")
    return problems


def _is_time_scale(value: Any) -> bool:
    try:
        return not isinstance(value, bool) and 0 < float(value) <= LONGEST_TIME_SCALE
    except (TypeError, ValueError):
        return False
