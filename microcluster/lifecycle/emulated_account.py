"""The emulated account on this machine: Docker, images, the emulator and the image in its registry."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.home import Home
from core.waiting import wait_until
from emulator.process import port_owner
from emulator.settings import SETTINGS_FILE, Settings, SettingsError
from emulator.vendors import load_settings
from microcluster.accounts.registry import account_of
from microcluster.setup import docker
from microcluster.setup.environment import PYTHON, child_environment
from microcluster.setup.errors import MISTAKE, SetupError
from microcluster.setup.process import Step, output_of, run_in_view, run_logged
from microcluster.setup.progress import Stages

QUICK_S = 60
RECLAIM_LIMIT_S = 90
TRAINING = "training"
BUILT_AS, OFFERED_AS = "microcluster/{}:current", "microcluster/{}:local"
"""An image's name in Docker, and in the emulated registry; stacks/Pulumi.local.yaml uses it."""


@dataclass(frozen=True)
class Emulated:
    """An emulated account: its name in the registry of accounts, and the folder with its records."""

    name: str
    state: Path


@dataclass(frozen=True)
class Rented:
    """What the emulated account holds now."""

    running: bool
    machines: int
    open_billing_items: int
    being_reclaimed: int = 0
    """Cancelled machines that are not gone yet; they are not billed."""

    @property
    def nothing(self) -> bool:
        return not self.machines and not self.open_billing_items


def start(account: Emulated, home: Home, stages: Stages, image: str | None = TRAINING) -> None:
    """Start the emulator and build all that its machines need.

    Args:
        image: the local image that the stack's container builds on, None where it is not one of ours.
    """
    refuse_taken_port(account)
    image, of = image or TRAINING, account_of(account.name)
    prepare_images(home, stages, of.emulated_by or (() if image == TRAINING else ("machine", image)))
    with stages.stage("emulator", f"the emulated {of.title} account, on this machine"):
        _emulator("start", account, home)
        if not _settings(account).registry_name:
            return
        argv = _argv("publish", account, BUILT_AS.format(image), OFFERED_AS.format(image))
        hint = "Repeat the same command; when it fails again, `make images` builds the image."
        step = Step(
            f"putting the {image} image into the emulated registry",
            "15 s the first time",
            argv,
            home.logs / "publish.log",
            hint,
        )
        run_logged(step, child_environment(home))


def answer(account: Emulated, home: Home, stages: Stages) -> None:
    """Start the emulator, unless it runs, without the images that only new machines need."""
    if rented(account, home).running:
        return
    refuse_taken_port(account)
    with stages.stage("emulator", f"the emulated {account_of(account.name).title} account, on this machine"):
        docker.ensure(home)
        _emulator("start", account, home)


def refuse_taken_port(account: Emulated) -> None:
    """Raise if another program listens on every address on the registry's port."""
    settings = _settings(account)
    port = settings.registry_port
    owner = port_owner(port, everywhere=True) if settings.registry_name else None
    if owner:
        raise SetupError(
            f"Starting the emulated account: its registry needs port {port}, but process {owner} uses it on every address. "
            "If that is the service of Debian's package docker-registry and nobody uses it, "
            "`service docker-registry stop` frees the port, and `update-rc.d docker-registry disable` keeps it free. "
            f"Or choose another port: `registry_port = {port + 1}` in {account.state / SETTINGS_FILE}, and the same number in "
            "`container.image` of the stack file. Then repeat."
        )


def _settings(account: Emulated) -> Settings:
    try:
        return load_settings(account.state, {}, account.name)
    except SettingsError as wrong:
        raise SetupError(str(wrong), MISTAKE) from wrong


def prepare_images(home: Home, stages: Stages, names: tuple[str, ...] = ()) -> None:
    """Install Docker and build the images of these names, by default those of the local stack."""
    with stages.stage("docker", "for the emulated machines"):
        docker.ensure(home)
    with stages.stage("images", "for the emulated machines and the training"):
        if run_in_view((str(PYTHON), "-m", "microcluster.setup.images", *names), child_environment(home)):
            raise SetupError(
                "The images are incomplete, for the reason above. Repeat the command; finished parts are kept."
            )


def rented(account: Emulated, home: Home) -> Rented:
    """Ask the emulator, or read its records when it does not run."""
    status = output_of(_argv("status", account, "--json"), child_environment(home), QUICK_S)
    if status:
        return parse_status(json.loads(status))
    if account.state.exists():
        raise SetupError(
            f"The emulated account cannot be read. Its records are in {account.state}; "
            f"`.venv/bin/python -m emulator status {account.name}` shows the problem."
        )
    return Rented(running=False, machines=0, open_billing_items=0)


def parse_status(status: Mapping[str, Any]) -> Rented:
    """Parse ``python -m emulator status --json``."""
    cancelled = [machine["state"] == "cancelled" for machine in status["machines"]]
    return Rented(status["running"], cancelled.count(False), status["open_billing_items"], cancelled.count(True))


def stop(account: Emulated, home: Home) -> None:
    """Stop the emulator and its registry after the last machine is gone; its records stay."""
    if rented(account, home).being_reclaimed:
        wait_until(
            "the end of cancelled machines",
            lambda: not rented(account, home).being_reclaimed,
            timeout_s=RECLAIM_LIMIT_S,
            usual_s=10,
        )
    _emulator("stop", account, home)


def _emulator(verb: str, account: Emulated, home: Home) -> None:
    if run_in_view(_argv(verb, account), child_environment(home)):
        raise SetupError(
            f"The emulator could not {verb}, for the reason above. Its log is {account.state / 'emulator.log'}."
        )


def _argv(verb: str, account: Emulated, *more: str) -> tuple[str, ...]:
    return (str(PYTHON), "-m", "emulator", verb, *more, account.name, "--state", str(account.state))
