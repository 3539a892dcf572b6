"""Measure how long a folder of 1 GB with 20,000 files takes to a host, beside rsync: ``python -m tests.bench.send_folder``.

Both go over OpenSSH to an sshd of this computer (openssh-server and rsync have to be installed), in turn, each into an empty folder,
and once more when nothing has changed. The medians of a few pairs are printed, with their ratio. Nothing of the folder is known before:
the first time of ours counts its hashes.
"""

import contextlib
import os
import random
import shlex
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from microcluster.config.folder_reader import read_tree
from microcluster.core.polling import wait_until
from microcluster.jobs import cluster_facts
from microcluster.jobs.folder_tree import list_of
from microcluster.remote.host import Host
from microcluster.remote.openssh import ssh_argv
from microcluster.remote.tree_transfer import send_tree

FILES, BYTES, FOLDERS = 20_000, 10**9, 200
PAIRS = 5
SEED = 1


def measure(console: Console) -> None:
    """Send the folder both ways, and print the seconds of each."""
    with tempfile.TemporaryDirectory() as scratch, _home(Path(scratch)), _sshd(Path(scratch)) as host:
        folder = Path(scratch) / "folder"
        _fill(folder)
        table = Table(
            "way", "first time, s", "unchanged, s", title=f"{FILES:,} files, {BYTES / 1e9:g} GB, {PAIRS} pairs"
        )
        ways = {"rsync": _rsync, "reading and sending its tree": _ours}
        seconds = {name: ([], []) for name in ways}
        for number in range(PAIRS):
            for name, way in ways.items():
                act = way(host, folder, f"{scratch}/there-{number}-{name.partition(' ')[0]}")
                for column in seconds[name]:
                    column.append(_seconds(act))
            list_of(folder, is_data=False).unlink()
        medians = {name: [median(column) for column in columns] for name, columns in seconds.items()}
        for name, columns in medians.items():
            table.add_row(name, *(f"{took:.1f}" for took in columns))
        table.add_row("ratio", *(f"{ours / theirs:.2f}" for theirs, ours in zip(*medians.values(), strict=True)))
        console.print(table)


def _seconds(act: Callable[[], object]) -> float:
    began = time.monotonic()
    act()
    return time.monotonic() - began


def _rsync(host: Host, folder: Path, target: str) -> Callable[[], object]:
    *words, login = ssh_argv(host, [host])
    argv = ("rsync", "-a", "--delete", "-e", shlex.join(words), f"{folder}/", f"{login}:{target}/")
    return lambda: subprocess.run(argv, check=True)


def _ours(host: Host, folder: Path, target: str) -> Callable[[], object]:
    return lambda: send_tree(host, read_tree(folder), target)


def _fill(folder: Path) -> None:
    drawn = random.Random(SEED)  # noqa: S311 - no secret
    for number in range(FILES):
        path = folder / f"{number % FOLDERS:03d}" / f"{number}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(drawn.randbytes(BYTES // FILES))


@contextlib.contextmanager
def _home(scratch: Path) -> Iterator[None]:
    before = os.environ.get("MICROCLUSTER_HOME")
    os.environ["MICROCLUSTER_HOME"] = str(scratch / "home")
    try:
        yield
    finally:
        os.environ.pop("MICROCLUSTER_HOME")
        os.environ.update({"MICROCLUSTER_HOME": before} if before else {})


@contextlib.contextmanager
def _sshd(scratch: Path) -> Iterator[Host]:
    """Yield this computer as a host behind an sshd of its own."""
    for name in ("host", "mine"):
        subprocess.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", scratch / name), check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    lines = (
        f"Port {port}",
        "ListenAddress 127.0.0.1",
        f"HostKey {scratch / 'host'}",
        f"AuthorizedKeysFile {scratch / 'mine.pub'}",
    )
    (scratch / "sshd_config").write_text(
        "\n".join((*lines, "StrictModes no", f"PidFile {scratch / 'pid'}", "UsePAM no")) + "\n"
    )
    Path("/run/sshd").mkdir(exist_ok=True)
    server = subprocess.Popen(("/usr/sbin/sshd", "-D", "-f", scratch / "sshd_config", "-E", scratch / "sshd.log"))
    facts = cluster_facts.HostFacts(
        "gpu-0", "1", "127.0.0.1", "", " ".join((scratch / "host.pub").read_text().split()[:2])
    )
    host = Host(facts, os.environ.get("USER", "root"), str(scratch / "mine"), port=port)
    try:
        wait_until("sshd", lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0, timeout_s=10)
        yield host
    finally:
        host.close()
        server.terminate()
        server.wait()


if __name__ == "__main__":
    measure(Console())
