"""The emulated account on this computer: Docker, images, the emulator by its command, and the image in its registry."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from microcluster.accounts.registry import AccountSettings, account_of
from microcluster.core.home import Home
from microcluster.core.polling import wait_until
from microcluster.setup import docker_install, engine
from microcluster.setup import images as local_images
from microcluster.setup.environment import FAB, PYTHON, child_environment
from microcluster.setup.errors import MISTAKE, CommandFailed, UserMistake
from microcluster.setup.process import STOPPED_BY_LIMIT, Step, asked, run_beside, run_in_view, run_logged
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
    """Machines and billing items of the emulated account now."""

    running: bool
    machines: int
    open_billing_items: int
    being_reclaimed: int = 0
    """Cancelled machines that are not gone yet; they are not billed."""

    @property
    def nothing(self) -> bool:
        return not self.machines and not self.open_billing_items


def of_account(account: AccountSettings, home: Home) -> Emulated | None:
    """Return the emulated account that these settings open; None for a real account.

    An emulator writes its credentials file into its own state folder, so the path decides.
    """
    state = Path(account.config_file).parent if account.config_file else None
    emulated = state and state.name.partition("-")[0] == "emulator" and state.is_relative_to(home.root)
    return Emulated(account.name, state) if state and emulated else None


def start(account: Emulated, home: Home, stages: Stages, image: str | None = TRAINING) -> None:
    """Start the emulator and build all that its machines need.

    Args:
        image: the local image that the stack's container builds on, None where it is not one of ours.
    """
    status = _status(account, home)
    refuse_taken_port(account, status)
    image, of = image or TRAINING, account_of(account.name)
    prepare_images(home, stages, _images_of(account, image))
    with stages.stage("emulator", f"the emulated {of.title} account, on this machine"):
        _command("start", account, home)
        if not status["registry"]:
            return
        words = ("--cache", str(home.cache / "saved"), BUILT_AS.format(image), OFFERED_AS.format(image))
        argv = _argv("publish", account, *words)
        hint = "Repeat the same command; when it fails again, `make images` builds the image."
        what = f"putting the {image} image into the emulated registry"
        run_logged(Step(what, "15 s the first time", argv, home.logs / "publish.log", hint), child_environment(home))


def answer(account: Emulated, home: Home, stages: Stages) -> None:
    """Start the emulator, unless it runs, without the images that only new machines need."""
    status = _status(account, home)
    if status["running"]:
        return
    refuse_taken_port(account, status)
    with stages.stage("emulator", f"the emulated {account_of(account.name).title} account, on this machine"):
        docker_install.ensure(home)
        _command("start", account, home)


def refuse_taken_port(account: Emulated, status: Mapping[str, Any]) -> None:
    """Raise if another program listens on every address on the registry's port."""
    if status["registry_port_owner"]:
        port = int(status["registry"].rpartition(":")[2])
        raise CommandFailed(
            f"Starting the emulated account: its registry needs port {port}, but process {status['registry_port_owner']} uses it on "
            "every address. If that is the service of Debian's package docker-registry and nobody uses it, "
            "`service docker-registry stop` frees the port, and `update-rc.d docker-registry disable` keeps it free. "
            f"Or choose another port: `registry_port = {port + 1}` in {account.state / 'settings.toml'}, and the same number in "
            "`container.image` of the stack file. Then repeat."
        )


def prepare_images(home: Home, stages: Stages, names: tuple[str, ...] = ()) -> None:
    """Install Docker and build the images of these names, by default those of the local stack."""
    with stages.stage("docker", "for the emulated machines"):
        docker_install.ensure(home)
    with stages.stage("images", "for the emulated machines and the training"):
        local_images.ensure(names or local_images.IMAGES, home)


def install_with_engine(account: Emulated, home: Home, stages: Stages, image: str | None = TRAINING) -> None:
    """Build the Pulumi engine, which computes, beside Docker and the images of ``start``, which wait for packages."""
    refuse_taken_port(account, _status(account, home))
    docker_install.refuse_without_root()
    only = [word for name in _images_of(account, image or TRAINING) for word in ("--only", name)]
    commands = {"engine": (str(FAB), "engine"), "images": (str(FAB), "images", *only)}
    with stages.stage("install", "the Pulumi engine, and beside it Docker and the images"):
        run_beside(commands, child_environment(home), f"Nothing was ordered. {engine.AGAIN}")


def _images_of(account: Emulated, image: str) -> tuple[str, ...]:
    return account_of(account.name).emulated_by or ("machine", image)


def rented(account: Emulated, home: Home) -> Rented:
    """Ask the emulator, or read its records when it does not run."""
    return parse_status(_status(account, home))


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
    _command("stop", account, home)


def _status(account: Emulated, home: Home) -> Mapping[str, Any]:
    completed = asked(_argv("status", account, "--json"), QUICK_S, child_environment(home))
    if completed.returncode == MISTAKE:
        raise UserMistake(completed.stderr.strip())
    if completed.returncode:
        why = f" ({completed.stderr})" if completed.returncode == STOPPED_BY_LIMIT else ""
        raise CommandFailed(
            f"The emulated account cannot be read{why}. Its records are in {account.state}; "
            f"`.venv/bin/python -m emulator status {account.name}` shows the problem."
        )
    return json.loads(completed.stdout)


def _command(word: str, account: Emulated, home: Home) -> None:
    if run_in_view(_argv(word, account), child_environment(home)):
        raise CommandFailed(
            f"The emulator could not {word}, for the reason above. Its log is {account.state / 'emulator.log'}."
        )


def _argv(word: str, account: Emulated, *more: str) -> tuple[str, ...]:
    return (str(PYTHON), "-m", "emulator", word, *more, account.name, "--state", str(account.state))
