"""Measure how long the training image takes from one machine to all of 2, 4 and 8: ``python -m bench.fan_out``.

The machines are containers with 1 Gb/s ports that are shaped; what they have in common are this computer's cores and its disk.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

from emulator.machines import ContainerMachines, Disk, MachineSpec, key_of, publish
from launchers import image, payload
from remote import steps
from remote.hand_over import hand_over
from remote.image_build import ensure_built
from remote.on_all import on_all

ACCOUNT, SUBNET, PUBLIC, PORT = "acct-bench-fan-out", "10.113.30.0/26", "198.51.100.128/26", 5602
REGISTRY, NAME = "ngc.microcluster.internal", "microcluster/training:bench"
PORT_MBPS = 1000
SIZES = (2, 4, 8)


def main() -> None:
    console = Console()
    with tempfile.TemporaryDirectory(prefix="microcluster-bench-") as folder, machines(Path(folder)) as account:
        facts = [boot(account, Path(folder), number) for number in range(max(SIZES))]
        known = cluster(Path(folder), facts)
        hosts = steps.open_hosts(known)
        on_all(hosts, lambda host: steps.prepare_node(host, known) + steps.mount_volume(host, known))
        publish(Path(folder) / "state", "microcluster/training:current", NAME)
        assert known.container and known.rank_key_file
        ensure_built(hosts[0], known.container)
        tag = image.tag(known.container)
        size = int(hosts[0].run(("docker", "image", "inspect", "--format", "{{.Size}}", tag)).stdout)
        table = Table("machines", "rounds", "seconds", "at the port's speed", title=f"an image of {size / 1e9:.2f} GB")
        for count in SIZES:
            began = time.monotonic()
            hand_over(hosts[:1], hosts[1:count], known.container, known.rank_key_file)
            rounds, spent = len(image.rounds(hosts[:1], hosts[1:count])), time.monotonic() - began
            table.add_row(str(count), str(rounds), f"{spent:.0f}", f"{rounds * size * 8 / PORT_MBPS / 1e6:.0f}")
            on_all(hosts[1:count], lambda host: host.run(("docker", "image", "rm", tag)))
        console.print(table)


@contextmanager
def machines(folder: Path) -> Iterator[ContainerMachines]:
    """Yield an account of its own, of which nothing is left afterwards."""
    account = ContainerMachines(ACCOUNT, folder / "state", {1: SUBNET}, PUBLIC, REGISTRY, PORT)
    account.reset()
    account.open()
    try:
        yield account
    finally:
        account.reset()


def boot(account: ContainerMachines, folder: Path, number: int) -> payload.Host:
    """Start a machine and return it as the steps get to know it."""
    login, host = new_key(folder / "id_ed25519"), new_key(folder / f"host_{number}")
    given = {"ed25519_private": (folder / f"host_{number}").read_text(), "ed25519_public": host}
    spec = MachineSpec(
        *(700 + number, f"gpu-{number}", "bench.test", 1, f"10.113.30.{10 + number}", f"198.51.100.{140 + number}"),
        *(16, 120, "Tesla P100-PCIE-16GB", 2, (Disk(2, 20),), (login,)),
        user_data="#cloud-config\n" + json.dumps({"ssh_keys": given}),
        port_speed_mbps=PORT_MBPS,
    )
    account.boot(spec)
    return payload.Host(
        spec.hostname, str(spec.guest_id), spec.public_address or "", spec.private_address, host.strip()
    )


def cluster(folder: Path, facts: list[payload.Host]) -> payload.Payload:
    """Return the machines as one cluster."""
    (folder / "ngc_key").write_text(key_of(folder / "state"))
    new_key(folder / "rank_ed25519")
    return payload.Payload(
        *("bench", "1f3a9c42", tuple(facts)),
        key_file=str(folder / "id_ed25519"),
        rank_key_file=str(folder / "rank_ed25519"),
        slots=2,
        data_disk_gb=20,
        container=payload.Container(
            "openseq2seq", f"{REGISTRY}:{PORT}/{NAME}", registry_key_file=str(folder / "ngc_key")
        ),
    )


def new_key(path: Path) -> str:
    """Make a key pair unless it is there; return its public line."""
    if not path.exists():
        subprocess.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)), check=True)
    return path.with_name(f"{path.name}.pub").read_text()


if __name__ == "__main__":
    main()
