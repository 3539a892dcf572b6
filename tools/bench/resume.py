"""Measure the preflight of two machines and the way from a killed rank back to training: ``python -m tools.bench.resume``.

Every figure is read from the run's own records, whose clock is this computer's.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console
from rich.table import Table

from core.waiting import wait_until
from microcluster.analysis.run_state import Outcome
from microcluster.jobs import cluster_facts
from microcluster.jobs.openseq2seq import Job
from microcluster.jobs.run_spec import decided
from microcluster.remote import job, steps
from microcluster.remote.host import Host
from microcluster.remote.parallel import on_all
from tools.bench.cluster import cluster, shell

PORT_MBPS = 1000
SAVE_STEPS, LONG_ENOUGH = 20, 50
LIMIT_S = 300
PREFLIGHT_AIM_S = 60
TRAINER = Job(
    kind="openseq2seq",
    model="transformer-tiny",
    maxSteps=100_000,
    precision="fp32",
    batchPerGpu=16,
    evalSteps=10_000,
    checkpointSteps=SAVE_STEPS,
    dataset="debian-en-de",
)

Event = dict[str, Any]


@dataclass(frozen=True)
class Figures:
    """What the run's records say, in seconds, part by part."""

    preflight: dict[str, float]
    resume: dict[str, float]
    steps_lost: int


def measure(console: Console) -> None:
    """Train on two machines, kill a rank, go on at once, and print both tables."""
    with cluster(2, PORT_MBPS, offering=True) as made:
        hosts, known = made.hosts, replace(made.facts, job=TRAINER)
        known = decided(known)[0]
        steps.bring_image(hosts, known)
        on_all(hosts, lambda host: steps.start_container(host, known))
        try:
            show(console, _crashed_and_resumed(hosts, known))
        finally:
            job.stop_job(hosts, known)


def _crashed_and_resumed(hosts: Sequence[Host], known: cluster_facts.ClusterFacts) -> Figures:
    launcher = hosts[0]
    job.start_job(hosts, known)
    _wait(launcher, known, "the first steps", lambda seen: (seen.step or 0) >= LONG_ENOUGH)
    killed = time.time()
    shell(hosts[1], f"kill -KILL {_rank(hosts[1], known)}")
    ended = _wait(launcher, known, "the end", lambda seen: seen.state == "failed")
    again = time.time()
    job.start_job(hosts, known)
    _wait(launcher, known, "the next steps", lambda seen: bool(_since(launcher, known, again, "train")))
    checked = json.loads(shell(launcher, f"cat /data/runs/{known.run}/preflight.json"))
    moments = [
        ("the ranks' end is noticed and all are ended", _first(launcher, known, killed, "end")),
        ("`fab resume` has a supervisor", _first(launcher, known, again, "phase")),
        (
            "checkpoint found and read back, programs and data compared",
            _first(launcher, known, again, "phase", "preflight"),
        ),
        ("preflight", _first(launcher, known, again, "phase", "training")),
        ("ranks start, read the checkpoint, make a step", _first(launcher, known, again, "train")),
    ]
    spans, before = {}, killed
    for name, moment in moments:
        spans[name] = moment - (again if before < again < moment else before)
        before = moment
    restored = _since(launcher, known, again, "resuming")[-1]["step"]
    return Figures({**checked["seconds_of"], "in all": checked["seconds"]}, spans, (ended.step or 0) - restored)


def _wait(launcher: Host, known: cluster_facts.ClusterFacts, what: str, done: Callable[[Outcome], bool]) -> Outcome:
    def look() -> Outcome | None:
        seen = job.observe(launcher, known)
        return seen if done(seen) else None

    return wait_until(what, look, timeout_s=LIMIT_S)


def _rank(host: Host, known: cluster_facts.ClusterFacts) -> str:
    """Return the process of a machine's last rank."""
    mark, rank = f"^MICROCLUSTER_RUN={known.run}$", "^OMPI_COMM_WORLD_LOCAL_RANK=1$"
    return shell(
        host, f"grep -slz '{mark}' /proc/[0-9]*/environ | xargs grep -slz '{rank}' | head -1 | cut -d/ -f3"
    ).strip()


def _since(launcher: Host, known: cluster_facts.ClusterFacts, moment: float, kind: str) -> list[Event]:
    lines = shell(launcher, f"cat /data/runs/{known.run}/progress.jsonl").splitlines()
    events = [json.loads(line) for line in lines if line.endswith("}")]
    return [event for event in events if event["event"] == kind and event["t"] >= moment]


def _first(
    launcher: Host, known: cluster_facts.ClusterFacts, moment: float, kind: str, phase: str | None = None
) -> float:
    return next(event["t"] for event in _since(launcher, known, moment, kind) if phase in (None, event.get("phase")))


def show(console: Console, figures: Figures) -> None:
    """Print where the seconds went."""
    checks = Table("preflight of two machines, four ranks", "seconds")
    for name, seconds in sorted(figures.preflight.items(), key=lambda part: part[1]):
        checks.add_row(name, f"{seconds:.1f}")
    console.print(checks)
    console.print(f"(aim: below {PREFLIGHT_AIM_S} s)")
    back = Table("from a killed rank to the first step after it", "seconds")
    for name, seconds in figures.resume.items():
        back.add_row(name, f"{seconds:.1f}")
    back.add_row("in all", f"{sum(figures.resume.values()):.1f}")
    console.print(back)
    console.print(f"steps to be made again: {figures.steps_lost}, with a checkpoint every {SAVE_STEPS}")


if __name__ == "__main__":
    measure(Console())
