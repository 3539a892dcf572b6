"""One rented cluster for many programs: by its stack file each takes the place of the one before, one rank on each machine."""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from product import Product, install

from microcluster.core.polling import wait_until
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.remote import job
from microcluster.remote.host import Host
from microcluster.remote.steps import open_hosts
from tests.product import ASK_LIMIT_S, Networks

STACK = "lightning-local"
NODES = ("gpu-0", "gpu-1")
UP_LIMIT_S = 1200
RESET_LIMIT_S = 300
REQUIREMENTS = "[lightning==2.5.5, transformers==4.57.1, accelerate==1.15.0, jax==0.7.2]"
"""Requirements of all programs on the image of PyTorch, so that one image serves them."""


KILL_RANK = (
    "grep -slzE '^((OMPI_COMM_WORLD_)?LOCAL_RANK=0|NODE_RANK=[01])$' /proc/[0-9]*/environ | sed s/environ/cmdline/ "
    "| xargs -r grep -sLz ^launch.rank_wrapper$ | xargs -r grep -slzE '(^|/){script}$' | cut -d/ -f3 | xargs kill -9"
)
"""The rank of a machine, and neither the wrapper that waits for its end nor the preflight's."""
NOTHING_KILLED = 123


@dataclass(frozen=True)
class Renter(Product):
    """A copy of the project with the cluster of a stack, which its programs share."""

    stack: str = STACK

    def take(self, stack: str, last: int | None = None) -> None:
        """Give the rented stack the container and the job of another stack file, until step ``last``."""
        text = (self.folder / "stacks" / f"Pulumi.{stack}.yaml").read_text()
        text = text.replace("AC1_16X120X100", "AC1_8X60X100").replace("--devices 2", "--devices 1")
        text = text.replace("--batch_size 8", "--batch_size 8 --pace 0.2")  # To have time to kill a rank.
        text = re.sub(r"(--save[-_]\w+) 40", r"\1 20", text)
        if last is not None:
            text = re.sub(r"(maxSteps:) \d+", rf"\1 {last}", text)
        if "microcluster/torch:" in text:
            text = re.sub(r"^    requirements: .*\n", "", text, flags=re.MULTILINE)
            text = text.replace("    source:", f"    requirements: {REQUIREMENTS}\n    source:")
        self.write(text)

    def write(self, text: str) -> None:
        """Write the rented stack's file anew, with the salt that it has."""
        path = self.folder / "stacks" / f"Pulumi.{self.stack}.yaml"
        salt = re.compile(r"^encryptionsalt: .*\n", re.MULTILINE)
        path.write_text(salt.sub("", text) + "".join(salt.findall(path.read_text())))

    def brought_to_its_end(self) -> dict[str, Any]:
        """Bring the run to its end by `make up`, and return its status."""
        done = self.run(f"make up STACK={self.stack}", UP_LIMIT_S)
        assert done.returncode == 0, done.stdout + done.stderr
        return self.status(self.stack)

    @cached_property
    def hosts(self) -> dict[str, Host]:
        """The machines: what they are asked by an open connection costs a tenth of a command."""
        return dict(zip(NODES, open_hosts(self.cluster()), strict=False))

    def lose_a_rank(self, up: subprocess.Popen[bytes], script: str, step: int) -> None:
        """Kill the rank of the last machine at a step, with 0 as soon as there is one; return once `make up` has failed."""
        self.wait_while(up, "the job", lambda: "==> job" in self.said())
        known, machines = self.cluster(), list(self.hosts.values())
        words = ("sh", "-c", KILL_RANK.format(script=script))

        def is_killed() -> bool:
            return up.poll() is not None or machines[-1].run(words, accept=(0, NOTHING_KILLED)).exit_code == 0

        machines[-1].run(("true",))  # A connection takes longer than some steps.
        self.wait_while(up, f"step {step}", lambda: (job.observe(machines[0], known).step or 0) >= step, every_s=0.5)
        wait_until("a rank to kill", is_killed, timeout_s=UP_LIMIT_S)
        assert up.wait(UP_LIMIT_S) != 0

    def resumed_from(self, run: str) -> list[int]:
        """Return the steps of the checkpoints that a run has gone on from."""
        return [event["step"] for event in self.events(run) if event["event"] == "resuming"]

    def on(self, node: str, line: str) -> str:
        """Return what a line of shell that has to succeed prints on a machine."""
        return self.hosts[node].run(("sh", "-c", line)).stdout.strip()

    def cluster(self) -> ClusterFacts:
        """Return the cluster as the run that was declared last has it."""
        return ClusterFacts.from_json(json.dumps(self.outputs(self.stack)["microcluster"]))

    def events(self, run: str) -> list[dict[str, Any]]:
        shown = self.on(NODES[0], f"cat /data/runs/{run}/progress.jsonl")
        return [json.loads(line) for line in shown.splitlines()]

    def checks(self) -> dict[str, str]:
        """Return the verdicts of the preflight by what they are about."""
        shown = self.plain(f"fab status --stack {self.stack} --preflight --json", ASK_LIMIT_S)
        return {row["check"]: row["verdict"] for row in json.loads(shown.stdout)["checks"]}


@contextmanager
def renting(folder: Path, networks: Networks) -> Iterator[Renter]:
    """Copy the project into ``folder`` with an account on these networks, which the block's end removes with its machines."""
    product = install(folder, networks)
    try:
        yield Renter(product.folder, product.home, product.env)
    finally:
        product.run(".venv/bin/python -m emulator reset", RESET_LIMIT_S)
