"""The project as a person has it, with the paid part of its program alone: guests without the steps over ssh."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from microcluster.core.home import Home
from microcluster.setup.environment import child_environment
from tests.integration.conftest import AccountEmulator
from tests.product import copy_project

ROOT = Path(__file__).parents[2]
LIMIT_S = 120
UP = ("pulumi", "up", "--yes", "--skip-preview", "-s", "local")
UP_LIMIT_S = 240
LOCAL = "stacks/Pulumi.local.yaml"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIP1m8HkPs2YX3BPDd4rXyDKzwKEhIGpyqUXoMzFzbNQa"
"""The public key of the local stack in a home without a clone."""
CACHE = Home.of().cache
"""Looked up before a test takes the person's HOME away."""
PAID_PART = """
import pulumi
from microcluster.core.home import Home
from microcluster.config import stack as config
from microcluster.lifecycle import renamed
from components.cluster import TrainingClusterArgs
from components.softlayer import GpuNodeArgs, PrivateNetwork, PrivateNetworkArgs, guest_spec, key_spec
from microcluster.accounts.softlayer.declared import Ledger, SshKey, VirtualGuest
from microcluster.accounts.softlayer.specs import LedgerSpec

stack = config.load()
renamed.settle(Home.of(), stack.name)
args = TrainingClusterArgs(stack, config.keys_of(stack.name))
ledger = Ledger("ledger", LedgerSpec.declare(**args.whole_order))
after = pulumi.ResourceOptions(depends_on=[ledger], delete_before_replace=True)
key = SshKey("key", key_spec(args), after)
network = PrivateNetwork("network", PrivateNetworkArgs(args, ledger.backend_router_id), after)
for host in stack.cluster.hostnames:
    VirtualGuest(f"{host}-guest", guest_spec(GpuNodeArgs(args, host, key.id, network)), after)
"""


def fab(home: Path, *words: str, answer: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command of this project with a home of its own."""
    argv, env = [Path(sys.executable).with_name("fab"), *words], {**os.environ, "MICROCLUSTER_HOME": str(home)}
    env.pop("PULUMI_BACKEND_URL", None)  # `make test` sets that of the person, whose stack may be up.
    return subprocess.run(argv, cwd=ROOT, env=env, input=answer, capture_output=True, text=True, check=False)


@dataclass(frozen=True)
class RentedProject:
    """A clone, a home whose local stack is an emulated account, and the plain commands."""

    folder: Path
    home: Home
    env: dict[str, str]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the clone's folder."""
        return subprocess.run(
            words, cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command in a group of its own."""
        pipe = subprocess.PIPE
        return subprocess.Popen(
            words, cwd=self.folder, env=self.env, stdout=pipe, stderr=subprocess.STDOUT, text=True, process_group=0
        )

    def make(self, target: str) -> subprocess.CompletedProcess[str]:
        """Run what a target of the Makefile calls, on the local stack."""
        return self.run("fab", target)

    @property
    def state_file(self) -> Path:
        """Pulumi's state of the local stack."""
        return self.home.state / ".pulumi" / "stacks" / "microcluster" / "local.json"


def install(folder: Path, emulator: AccountEmulator, home: Home | None = None) -> RentedProject:
    """Copy the project into ``folder``; ``home`` is shared with another clone when it is given."""
    project = folder / "project"
    _copy(project)
    place = home or Home(folder / "home", CACHE)
    place.root.mkdir(parents=True, exist_ok=True)
    if not (place.root / "emulator").exists():
        (place.root / "emulator").symlink_to(emulator.state)
    base = {name: value for name, value in os.environ.items() if not name.startswith(("SL_", "PULUMI_"))}
    env = child_environment(place, base | {"HOME": str(place.root)})
    rented = RentedProject(project, place, env)
    made = rented.make("setup")
    assert made.returncode == 0, made.stdout + made.stderr
    return rented


def _copy(project: Path) -> None:
    copy_project(project, "tests/", "images/", "stacks/")  # Each stack costs a `pulumi stack init`.
    (project / "__main__.py").write_text(PAID_PART)
    stack = project / LOCAL
    stack.parent.mkdir()
    stack.write_text((ROOT / LOCAL).read_text().replace("config:\n", "config:\n  softlayer:timeScale: 0.05\n", 1))
