"""The product as a person has it, with what a test asks of it while its commands go on."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker

from emulator.machines.networks import containers_of, is_served, overlapping
from emulator.shared.settings import Settings
from microcluster.core.polling import wait_until
from tests import product
from tests.product import ASK_LIMIT_S, ROOT, SHARED, Networks

TRAINS_LIMIT_S = 1100


class Product(product.Product):
    """One copy of the project with everything that belongs to its user."""

    @contextmanager
    def begun(self, command: str) -> Iterator[subprocess.Popen[bytes]]:
        """Start a command in a session of its own, which ends with the block; what it says comes into ``up.log``."""
        with (self.home / "up.log").open("wb") as output:
            running = subprocess.Popen(
                ["bash", "-c", f"exec {command}"],
                cwd=self.folder,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            yield running
        finally:
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGKILL)
            running.wait()

    def wait_while(
        self, running: subprocess.Popen[bytes], what: str, done: Callable[[], object], every_s: float = 1.0
    ) -> None:
        """Wait until something is true while a command runs that ``begun`` has started."""

        def is_done() -> bool:
            assert running.poll() is None, self.said()
            return bool(done())

        wait_until(what, is_done, timeout_s=TRAINS_LIMIT_S, every_s=every_s)

    def recover(self, stack: str) -> None:
        """Bring a stack's records in order after a killed `up`, once all that it had started has noticed its end."""

        def is_recovered() -> bool:
            answer = self.plain(f"fab recover --stack {stack} --yes")
            assert answer.returncode == 0 or "is busy" in answer.stderr, answer.stdout + answer.stderr
            return answer.returncode == 0

        wait_until("the end of what the killed command had started", is_recovered, timeout_s=ASK_LIMIT_S)

    def status(self, stack: str) -> dict[str, Any]:
        """Return what `fab status` knows, nothing before there is a run."""
        answer = self.plain(f"fab status --stack {stack} --json", ASK_LIMIT_S)
        return json.loads(answer.stdout) if answer.stdout.startswith("{") else {}

    def fetched(self, stack: str, status: dict[str, Any]) -> Path:
        """Return the folder to which `make up` has brought a finished run."""
        return self.folder / "artifacts" / stack / f"{status['run']}-{status['word']}"

    def reported(self, stack: str, status: dict[str, Any]) -> dict[str, Any]:
        """Return the report that `make up` has written of a run."""
        return json.loads((self.fetched(stack, status) / "report.json").read_text())

    def said(self) -> str:
        """Return what the command of ``begun`` has said so far."""
        return (self.home / "up.log").read_text()

    def shown_step(self) -> int:
        """Return the newest step that the `make up` of ``begun`` has shown, 0 before there is one; asking costs it no time."""
        shown = re.findall(r"^running, \w+ (\d+) of", self.said(), re.MULTILINE)
        return int(shown[-1]) if shown else 0

    def facts(self, verb: str) -> dict[str, Any]:
        """Return what a verb prints with ``--json``."""
        answer = self.plain(f"fab {verb} --stack local --json", ASK_LIMIT_S)
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return json.loads(answer.stdout)


def install(folder: Path, networks: Networks = SHARED) -> Product:
    """Copy the project into ``folder``, with an emulated account on these networks."""
    remove_killed(networks)
    copied = product.install(folder, networks)
    return Product(copied.folder, copied.home, copied.env)


def emulator(vendor: str, state: Path, word: str, *more: str) -> str:
    """Run a command of an emulator for an account that belongs to no product; return what it said."""
    argv = (sys.executable, "-m", "emulator", word, vendor, *more, "--state", str(state))
    return subprocess.run(argv, cwd=ROOT, check=True, timeout=180, capture_output=True, text=True).stdout


def account_key(state: Path) -> str:
    """Return the key of an emulated account."""
    return (state / Settings.KEY_FILE).read_text().split()[-1]


def remove_killed(networks: Networks) -> None:
    """Remove what tests that were killed have left on these networks, machines and all."""
    client = docker.from_env()
    for subnet in (*networks.private, networks.public):
        for network in overlapping(client, subnet):
            if not is_served(network):
                for machine in containers_of(client, network):
                    machine.remove(force=True)
                network.remove()
