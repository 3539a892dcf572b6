"""Traces of a product: its account's containers, its machines' processes, its run's files."""

import contextlib
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from product import Product

from emulator.softlayer.settings import Settings


def supervisor_of(product: Product) -> str:
    """Return the number of the launcher's last supervisor, whether it has ended or not."""
    return product.plain("fab ssh --stack local gpu-0 -- 'cat /data/runs/*/supervisor.pid'", 60).stdout.strip()


def labelled(product: Product, kind: str) -> list[str]:
    """Return the containers, networks or volumes of this product's account."""
    return of_account(account_of(product), kind)


def account_of(product: Product) -> str:
    """Return the name in the labels of everything that this product's account has."""
    return Settings(state=(product.home / "emulator").resolve()).account_name


def of_account(account: str, kind: str) -> list[str]:
    listing = {"container": "ps -aq", "network": "network ls -q", "volume": "volume ls -q"}[kind]
    answer = subprocess.run(
        ["docker", *listing.split(), "--filter", f"label=microcluster.emulator={account}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return answer.stdout.split()


def runs(product: Product, *words: str) -> bool:
    """Return whether a process with these words in its line runs for this product, here or on one of its machines."""
    found = [one for one in processes() if all(word in one.words for word in words)]
    home = f"MICROCLUSTER_HOME={product.home}".encode()
    machines = labelled(product, "container") if found else []
    return any(home in one.environment or any(machine in one.groups for machine in machines) for one in found)


@dataclass(frozen=True)
class Process:
    """A process of this computer, or of one of its machines: its line, its environment and its control groups."""

    words: str
    environment: list[bytes]
    groups: str


def processes() -> Iterator[Process]:
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            environment = (folder / "environ").read_bytes().split(b"\0")
            yield Process(words, environment, (folder / "cgroup").read_text())


def processes_of(run: str) -> list[str]:
    """Return the processes with the run's mark on this computer, those of its machines and their containers among them."""
    return [one.words for one in processes() if f"MICROCLUSTER_RUN={run}".encode() in one.environment]


def to_be_kept(best: set[str]) -> set[str]:
    """Choose the files of the model with the lowest loss, and of the newest one."""
    names = {each: re.search(r"val_loss=([\d.]+)-step-(\d+)\.", each) for each in best}
    models = {(float(found[1]), int(found[2])) for found in names.values()}
    kept = {min(models, key=lambda model: (model[0], -model[1])), max(models, key=lambda model: model[1])}
    return {each for each, found in names.items() if (float(found[1]), int(found[2])) in kept}


def curves_of(product: Product, run: str) -> list[str]:
    """Return the names of the files that TensorBoard draws from, and the beginnings of the two that `fab report` does."""
    wanted = (
        f"cd /data/runs/{run} && ls in_container/logdir/events.* && head -n 1 progress.jsonl && head -n 1 samples.jsonl"
    )
    return product.plain(f"fab ssh --stack local gpu-0 -- '{wanted}'").stdout.splitlines()


def best_models(product: Product, run: str) -> set[str]:
    """Return the hash and the name of every file of the best models that the launcher has."""
    hashes = f"cd /data/runs/{run}/in_container/logdir/best_models && sha256sum val_loss=*"
    return set(product.plain(f'fab ssh --stack local gpu-0 -- "{hashes}"').stdout.splitlines())


def guests_of(product: Product) -> dict[str, str]:
    return {host["name"]: host["guest_id"] for host in product.outputs()["microcluster"]["hosts"]}
