"""Measure how long image and data take from one machine to all of 2, 4 and 8: ``python -m tools.bench.fan_out``.

An image of 1 GB and data of 2 GB over ports of 1 Gb/s are played at a tenth of both, so that the link decides and not the two
cores that encrypt for all machines. Each time stands beside what the same bytes would take once at the speed that the same link
showed a moment before; "host by host" is what the product does after a chain broke, and did before there was one.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from microcluster.jobs.mpirun import RSH_AGENT
from microcluster.remote import job
from microcluster.remote.host import Host
from microcluster.remote.parallel import on_all
from microcluster.remote.ssh_mesh import ensure_known_hosts, ensure_rank_files
from microcluster.remote.training_image import distribute
from tools.bench.cluster import Cluster, cluster, shell

PORT_MBPS = 100
IMAGE_BYTES, DATA_BYTES = 100_000_000, 200_000_000
SIZES = (2, 4, 8)
FOLDER, DATA = "/data/runs/bench", "/data/bench"
STREAMS = "8"
PROBE_PORT = "4443"


@dataclass(frozen=True)
class Thing:
    """What is brought to machines: its bytes, the ways to bring it, and how a machine gets rid of it again."""

    name: str
    size: int
    ways: Mapping[str, Callable[[Sequence[Host]], None]]
    forget: Callable[[Host], object]


@dataclass(frozen=True)
class Figure:
    """What one way of one thing took."""

    what: str
    machines: int
    way: str
    seconds: float
    once_s: float
    """What its bytes take over the measured link."""


def measure(console: Console) -> None:
    """Bring both things to all sizes of cluster, and print the table."""
    with cluster(max(SIZES), PORT_MBPS) as made:
        link = prepare(made)
        figures = [figure for thing in (data(made), layer(made)) for figure in fan_out(thing, made.hosts[1:], link)]
    show(console, figures, link)


def prepare(made: Cluster) -> float:
    """Let the machines reach each other as containers do; return the megabits per second that the first link carries."""
    known, hosts = made.facts, made.hosts
    container, key = known.container, known.rank_key_file
    assert container and key

    def ready(host: Host) -> None:
        ensure_rank_files(host, container, key)
        ensure_known_hosts(host, hosts, container.ssh_port)
        shell(host, f"mkdir -p {FOLDER}; setsid sh /run/microcluster/start.sh > /dev/null 2>&1 < /dev/null &")
        job.place(host, FOLDER, {})

    on_all(hosts, ready)
    words = f"{hosts[1].facts.private_address} {PROBE_PORT} {STREAMS}"
    act = {id(hosts[0]): "send", id(hosts[1]): "receive"}
    said = on_all(hosts[:2], lambda host: shell(host, f"python3 {FOLDER}/agent nodes.links {act[id(host)]} {words}"))
    return float(said[0])


def data(made: Cluster) -> Thing:
    """Make a data set on the launcher; bringing it is what the supervisor does with the data before the ranks start, hashes included."""
    launcher = made.hosts[0]
    half = DATA_BYTES // 2
    shell(launcher, f"mkdir -p {DATA} && cd {DATA} && for f in a b; do head -c {half} /dev/urandom > $f; done")
    shell(launcher, f"cd {DATA} && sha256sum a b > SHA256SUMS")

    def spread(targets: Sequence[Host]) -> None:
        way = json.dumps(RSH_AGENT.split())
        addresses = [host.facts.private_address for host in targets]
        said = launcher.run(
            ("python3", f"{FOLDER}/agent", "data.distribute_data", DATA, way, *addresses), timeout_s=1800
        ).stdout
        assert " broke: " not in said, said

    def one_by_one(targets: Sequence[Host]) -> None:
        for target in targets:
            spread([target])

    ways = {"chain": spread, "host by host": one_by_one}
    return Thing("data", DATA_BYTES, ways, lambda host: shell(host, f"rm -rf {DATA}"))


def layer(made: Cluster) -> Thing:
    """Make an image of one layer on the launcher, which nothing can make smaller."""
    launcher = made.hosts[0]
    container, key = made.facts.container, made.facts.rank_key_file
    assert container and key
    tag = container.tag
    shell(launcher, f"cd /data && head -c {IMAGE_BYTES} /dev/urandom > layer && tar -c layer | docker import - {tag}")

    def chain(targets: Sequence[Host]) -> None:
        distribute(launcher, targets, container, key)

    def one_by_one(targets: Sequence[Host]) -> None:
        for target in targets:
            chain([target])

    ways = {"chain": chain, "host by host": one_by_one}
    return Thing("image", IMAGE_BYTES, ways, lambda host: shell(host, f"docker image rm {tag}"))


def fan_out(thing: Thing, others: Sequence[Host], link: float) -> list[Figure]:
    """Bring it in every way to every number of machines, and take it away again."""
    figures = []
    for count in SIZES:
        for way, bring in thing.ways.items():
            if count == 2 and way != "chain":
                continue  # A chain of one link is the same.
            began = time.monotonic()
            bring(others[: count - 1])
            seconds = time.monotonic() - began
            figures.append(Figure(thing.name, count, way, seconds, thing.size * 8 / link / 1e6))
            on_all(others[: count - 1], thing.forget)
    return figures


def show(console: Console, figures: Sequence[Figure], link: float) -> None:
    """Print the figures beside what the link alone would take."""
    title = f"ports of {PORT_MBPS} Mb/s, of which the link carries {link:.0f}"
    table = Table("what", "MB", "machines", "way", "seconds", "once over the link", "times", title=title)
    size = {"data": DATA_BYTES, "image": IMAGE_BYTES}
    for each in figures:
        row = (each.what, f"{size[each.what] / 1e6:.0f}", str(each.machines), each.way, f"{each.seconds:.1f}")
        table.add_row(*row, f"{each.once_s:.1f}", f"{each.seconds / each.once_s:.2f}")
    console.print(table)


if __name__ == "__main__":
    measure(Console())
