"""Measure how long image and data take from one machine to all of 2, 4 and 8: ``python -m tests.bench.fan_out``.

An image of 1 GB and data of 2 GB over ports of 1 Gb/s are played at a tenth of both, so that the link decides and not the two
cores that encrypt for all machines. Each time stands beside what the same bytes would take once at the speed that the same link
showed a moment before; "host by host" is what the product does after a chain broke, and did before there was one.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.mpirun import RSH_AGENT
from microcluster.remote import job
from microcluster.remote.host import Host
from microcluster.remote.parallel import on_all
from microcluster.remote.ssh_mesh import ensure_known_hosts, ensure_rank_files, rank_public_key
from microcluster.remote.training_image import distribute
from tests.bench.cluster import cluster, shell

PORT_MBPS = 100
IMAGE_BYTES, DATA_BYTES = 100_000_000, 200_000_000
SIZES = (2, 4, 8)
FOLDER, DATA = "/data/runs/bench", "/data/bench"
STREAMS = "8"
PROBE_PORT = "4443"


@dataclass(frozen=True)
class Thing:
    """A payload for the machines: its bytes, its way to all of them, and its removal from one."""

    name: str
    size: int
    bring: Callable[[Sequence[Host]], object]
    forget: Callable[[Host], object]


def measure(console: Console) -> None:
    """Bring both things to all sizes of cluster, and print what each way took beside what the link alone would take."""
    with cluster(max(SIZES), PORT_MBPS) as (known, hosts):
        link = prepare(known, hosts)
        title = f"ports of {PORT_MBPS} Mb/s, of which the link carries {link:.0f}"
        table = Table("what", "MB", "machines", "way", "seconds", "once over the link", "times", title=title)
        for thing in (data(hosts[0]), layer(hosts[0], known)):
            fan_out(thing, hosts[1:], link, table)
    console.print(table)


def prepare(known: ClusterFacts, hosts: Sequence[Host]) -> float:
    """Let the machines reach each other as containers do; return the megabits per second that the first link carries."""
    container, key = known.container, known.rank_key_file
    assert container and key

    def ready(host: Host) -> None:
        ensure_rank_files(host, container, key)
        ensure_known_hosts(host, hosts, container.ssh_port, rank_public_key(key).strip())
        shell(host, f"mkdir -p {FOLDER}; setsid sh /run/microcluster/start.sh > /dev/null 2>&1 < /dev/null &")
        job.place(host, FOLDER, {})

    on_all(hosts, ready)
    words = f"{hosts[1].facts.private_address} {PROBE_PORT} {STREAMS}"
    act = {id(hosts[0]): "send", id(hosts[1]): "receive"}
    said = on_all(hosts[:2], lambda host: shell(host, f"python3 {FOLDER}/agent nodes.links {act[id(host)]} {words}"))
    return float(said[0])


def data(launcher: Host) -> Thing:
    """Make a data set on the launcher; bringing it is what the supervisor does with the data before the ranks start, hashes included."""
    half = DATA_BYTES // 2
    shell(launcher, f"mkdir -p {DATA} && cd {DATA} && for f in a b; do head -c {half} /dev/urandom > $f; done")
    shell(launcher, f"cd {DATA} && sha256sum a b > SHA256SUMS")

    way = json.dumps(RSH_AGENT.split())

    def bring(targets: Sequence[Host]) -> None:
        addresses = [host.facts.private_address for host in targets]
        words = ("python3", f"{FOLDER}/agent", "data.distribute_data", DATA, way, *addresses)
        said = launcher.run(words, timeout_s=1800).stdout
        assert " broke: " not in said, said

    return Thing("data", DATA_BYTES, bring, lambda host: shell(host, f"rm -rf {DATA}"))


def layer(launcher: Host, known: ClusterFacts) -> Thing:
    """Make an image of one layer on the launcher, which nothing can make smaller."""
    container, key = known.container, known.rank_key_file
    assert container and key
    tag = container.tag
    shell(launcher, f"cd /data && head -c {IMAGE_BYTES} /dev/urandom > layer && tar -c layer | docker import - {tag}")

    def bring(targets: Sequence[Host]) -> None:
        distribute(launcher, targets, container, key)

    return Thing("image", IMAGE_BYTES, bring, lambda host: shell(host, f"docker image rm {tag}"))


def fan_out(thing: Thing, others: Sequence[Host], link: float, table: Table) -> None:
    """Bring it to every number of machines in one chain and host by host, and take it away again; fill the table."""
    once_s = thing.size * 8 / link / 1e6
    for count in SIZES:
        targets = others[: count - 1]
        ways = {"chain": [targets]}
        if count > 2:  # A chain of one link is the same.
            ways["host by host"] = [[target] for target in targets]
        for way, turns in ways.items():
            began = time.monotonic()
            for turn in turns:
                thing.bring(turn)
            seconds = time.monotonic() - began
            row = (thing.name, f"{thing.size / 1e6:.0f}", str(count), way, f"{seconds:.1f}")
            table.add_row(*row, f"{once_s:.1f}", f"{seconds / once_s:.2f}")
            on_all(targets, thing.forget)


if __name__ == "__main__":
    measure(Console())
