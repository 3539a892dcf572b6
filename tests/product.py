"""The product as a person has it: a copy of the project, a home and an account of its own, and the two commands."""

import contextlib
import json
import os
import random
import shutil
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from microcluster.core.home import Home

ROOT = Path(__file__).parents[1]
COMMAND_LIMIT_S = 1200
FIRST_PORT = 10_000
ASK_LIMIT_S = 120


@dataclass(frozen=True)
class Networks:
    """The networks of an account; no two that live at the same time may share any."""

    private: tuple[str, ...]
    public: str
    operator: str
    """This computer, as the public network sees it."""


SHARED = Networks(("10.114.7.0/26", "10.114.8.0/26"), "198.51.100.64/26", "198.51.100.65")
OF_THE_WHOLE_WAY = Networks(("10.115.7.0/26", "10.115.8.0/26"), "198.18.69.0/26", "198.18.69.1")
OF_THE_GALLERY = Networks(("10.116.7.0/26", "10.116.8.0/26"), "198.18.70.0/26", "198.18.70.1")
OF_THE_CLONES = Networks(("10.117.7.0/26", "10.117.8.0/26"), "198.18.71.0/26", "198.18.71.1")


@dataclass(frozen=True)
class Product:
    """One copy of the project with everything that belongs to its user."""

    folder: Path
    home: Path
    env: dict[str, str]

    def run(self, command: str, limit_s: float = COMMAND_LIMIT_S) -> subprocess.CompletedProcess[str]:
        """Run a shell line in the project's folder and return what it said."""
        return subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )

    def plain(self, command: str, limit_s: float = COMMAND_LIMIT_S) -> subprocess.CompletedProcess[str]:
        """Run a line as a person does who has sourced env.sh."""
        return self.run(f". ./env.sh && {command}", limit_s)

    def outputs(self, stack: str = "local") -> dict[str, Any]:
        """Return a stack's outputs, the cluster facts parsed."""
        answer = self.plain(f"pulumi stack output --json -s {stack}", ASK_LIMIT_S)
        values = json.loads(answer.stdout)
        cluster = values["microcluster"]
        return values | {"microcluster": json.loads(cluster) if isinstance(cluster, str) else cluster}

    def edit_stack(self, old: str, new: str, stack: str = "local") -> None:
        """Change a stack file as with a text editor."""
        path = self.folder / "stacks" / f"Pulumi.{stack}.yaml"
        text = path.read_text()
        assert old in text, f"{old!r} is not in {path}"
        path.write_text(text.replace(old, new))


def free_port() -> int:
    """Choose a port that nobody else is given by chance until it is bound, or bound again: one below those for clients."""
    first_given = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in random.sample(range(FIRST_PORT, first_given), 100):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("a hundred ports were taken")


def write_settings(state: Path, port: int, private: tuple[str, ...], public: str) -> None:
    """Write the settings of an emulated account."""
    state.mkdir(parents=True)
    networks = f'private_subnets = {json.dumps(private)}\npublic_subnet = "{public}"\n'
    (state / "settings.toml").write_text(f"port = {port}\n{networks}")


def copy_project(target: Path, *left_out: str) -> None:
    """Copy the project's files as they are now, but for those whose paths begin in one of these ways."""
    argv = ("git", "ls-files", "-co", "--exclude-standard")
    listed = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file() and not name.startswith(left_out):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    (target / ".venv").symlink_to(ROOT / ".venv")


def install(folder: Path, networks: Networks = SHARED) -> Product:
    """Copy the project into ``folder``, with an emulated account on these networks."""
    project, home = folder / "project", folder / "home"
    copy_project(project)
    write_settings(home / "emulator", free_port(), networks.private, networks.public)
    for stack in (project / "stacks").glob("Pulumi.*.yaml"):
        stack.write_text(stack.read_text().replace("203.0.113.1/32", f"{networks.operator}/32"))
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PULUMI_", "SL_"))}
    own = {
        "MICROCLUSTER_HOME": str(home),
        "MICROCLUSTER_CACHE": str(Home.of().cache),
        "OPENSEQ2SEQ_SOURCE": "none",
        "TEXAR_SOURCE": "none",
    }
    return Product(project, home, env | own)  # The stand-in trains everywhere, wherever the tests run.
