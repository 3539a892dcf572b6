"""Measure the preflight of two machines and the way from a killed rank back to training: ``python -m tests.bench.resume``.

Every figure is read from the run's own records, whose clock is this computer's.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console
from rich.table import Table

from microcluster.analysis.run_state import Outcome
from microcluster.core.home import Home
from microcluster.core.polling import wait_until
from microcluster.jobs import cluster_facts
from microcluster.jobs.openseq2seq import Job
from microcluster.jobs.run_spec import decided
from microcluster.remote import job, steps
from microcluster.remote.host import Host
from microcluster.remote.parallel import on_all
from tests.bench.cluster import cluster, shell

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
class Records:
    """The launcher's state of a run."""

    launcher: Host
    known: cluster_facts.ClusterFacts

    def wait(self, what: str, done: Callable[[Outcome], bool]) -> Outcome:
        """Return the run's state once it is as ``done`` says."""

        def look() -> Outcome | None:
            seen = job.observe(self.launcher, self.known)
            return seen if done(seen) else None

        return wait_until(what, look, timeout_s=LIMIT_S)

    def since(self, moment: float, kind: str) -> list[Event]:
        """Return the events of a kind from a moment on."""
        lines = self.read("progress.jsonl").splitlines()
        events = [json.loads(line) for line in lines if line.endswith("}")]
        return [event for event in events if event["event"] == kind and event["t"] >= moment]

    def phase(self, moment: float, name: str) -> float:
        """Return when a phase began after a moment."""
        return next(event["t"] for event in self.since(moment, "phase") if event["phase"] == name)

    def read(self, file: str) -> str:
        """Return the text of a file of the run."""
        return shell(self.launcher, f"cat /data/runs/{self.known.run}/{file}")


def measure(console: Console) -> None:
    """Train on two machines, kill a rank, go on at once, and print where the seconds went."""
    with cluster(2, PORT_MBPS, offering=True) as (facts, hosts):
        known = decided(replace(facts, job=TRAINER))
        steps.bring_image(hosts, known, Home.of().digests)
        on_all(hosts, lambda host: steps.start_container(host, known))
        try:
            _crash_and_resume(console, hosts, known)
        finally:
            job.stop_job(hosts, known)


def _crash_and_resume(console: Console, hosts: Sequence[Host], known: cluster_facts.ClusterFacts) -> None:
    records = Records(hosts[0], known)
    job.start_job(hosts, known)
    records.wait("the first steps", lambda seen: (seen.step or 0) >= LONG_ENOUGH)
    killed = time.time()
    shell(hosts[1], f"kill -KILL {_rank(hosts[1], known)}")
    ended = records.wait("the end", lambda seen: seen.state == "failed")
    again = time.time()
    job.start_job(hosts, known)
    records.wait("the next steps", lambda seen: bool(records.since(again, "train")))

    checked_s = json.loads(records.read("preflight.json"))["seconds"]
    console.print(f"preflight of two machines, four ranks: {checked_s:.1f} s (aim: below {PREFLIGHT_AIM_S} s)")

    noticed = records.since(killed, "end")[0]["t"]
    supervised = records.since(again, "phase")[0]["t"]
    compared = records.phase(again, "preflight")
    training = records.phase(again, "training")
    stepped = records.since(again, "train")[0]["t"]
    spans = {
        "the ranks' end is noticed and all are ended": noticed - killed,
        "`fab resume` has a supervisor": supervised - again,
        "checkpoint found and read back, programs and data compared": compared - supervised,
        "preflight": training - compared,
        "ranks start, read the checkpoint, make a step": stepped - training,
    }
    spans["in all"] = sum(spans.values())
    table = Table("from a killed rank to the first step after it", "seconds")
    for name, seconds in spans.items():
        table.add_row(name, f"{seconds:.1f}")
    console.print(table)
    lost = (ended.step or 0) - records.since(again, "resuming")[-1]["step"]
    console.print(f"steps to be made again: {lost}, with a checkpoint every {SAVE_STEPS}")


def _rank(host: Host, known: cluster_facts.ClusterFacts) -> str:
    """Return the process of a machine's last rank."""
    mark, rank = f"^MICROCLUSTER_RUN={known.run}$", "^OMPI_COMM_WORLD_LOCAL_RANK=1$"
    return shell(
        host, f"grep -slz '{mark}' /proc/[0-9]*/environ | xargs grep -slz '{rank}' | head -1 | cut -d/ -f3"
    ).strip()


if __name__ == "__main__":
    measure(Console())
