"""A cluster at the emulated Paperspace: a killed up, a drive that hangs, a lost machine, a kept drive, and nothing else left to pay."""

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import docker
import pytest
import requests
from image_containers import need
from product import Product, account_key, install

from emulator.paperspace.settings import BOX_IMAGE, DRIVE_IMAGE
from microcluster.core.polling import wait_until
from tests.product import ASK_LIMIT_S, free_port, write_settings

pytestmark = [pytest.mark.containers, pytest.mark.timeout(1800)]

STACK = "paperspace-local"
SUBNETS, PUBLIC, OPERATOR = ("10.64.131.0/24", "10.64.132.0/24"), "198.18.66.0/26", "198.18.66.1"
ENOUGH_STEPS, MORE_STEPS, ENDLESS = 30, 30, 10_000
UP_LIMIT_S = 1200
LEFT = "grep -slz ^MICROCLUSTER_RUN= /proc/[0-9]*/environ | wc -l"


@dataclass
class Team:
    """The product, and what its account says when it is asked past the product."""

    product: Product
    port: int

    def ask(self, method: str, path: str) -> Any:
        address, key = (
            f"http://127.0.0.1:{self.port}/v1{path}",
            {"Authorization": f"Bearer {account_key(self.product.home / 'emulator-paperspace')}"},
        )
        answer = requests.request(method, address, headers=key, timeout=ASK_LIMIT_S)
        answer.raise_for_status()
        return answer.json()

    def machines(self) -> dict[str, str]:
        """Return the ids of the account's machines by name, nothing before it runs."""
        try:
            return {each["name"].split(".")[0]: each["id"] for each in self.ask("GET", "/machines")["items"]}
        except (requests.ConnectionError, FileNotFoundError):
            return {}

    def drive(self) -> docker.models.containers.Container:
        """Return the container of the drive."""
        account = json.loads(self.product.run(".venv/bin/python -m emulator status paperspace --json").stdout)[
            "account"
        ]
        labels = {"ancestor": DRIVE_IMAGE, "label": f"microcluster.emulator={account}"}
        [found] = docker.from_env().containers.list(filters=labels)
        return found


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    need(BOX_IMAGE, DRIVE_IMAGE, command="fab images --only ml-in-a-box drive")
    product, port = install(tmp_path_factory.mktemp("paperspace")), free_port()
    write_settings(product.home / "emulator-paperspace", port, SUBNETS, PUBLIC)
    product.edit_stack("198.18.64.1/32", f"{OPERATOR}/32", STACK)
    product.edit_stack("machineType: P4000x2", "machineType: P4000x2\n    keepDrive: true", STACK)
    product.edit_stack("--steps {maxSteps}", "--steps {maxSteps} --pace 0.2", STACK)
    product.edit_stack("maxSteps: 240", f"maxSteps: {ENDLESS}", STACK)
    yield Team(product, port)
    product.run(".venv/bin/python -m emulator reset paperspace", 300)


@pytest.fixture(scope="module")
def ordered(team: Team) -> dict[str, str]:
    """The machines that an up had ordered when it was killed."""
    with team.product.begun(f"make up STACK={STACK}") as up:
        team.product.wait_while(up, "the first order", team.machines)
        os.killpg(up.pid, signal.SIGKILL)
    team.product.recover(STACK)
    return team.machines()


@pytest.fixture(scope="module")
def cut_off(team: Team, ordered: dict[str, str]) -> dict[str, Any]:
    """The run of the next up, from whose machines the drive was taken."""
    with team.product.begun(f"make up STACK={STACK}") as up:
        team.product.wait_while(up, f"step {ENOUGH_STEPS}", lambda: team.product.shown_step() >= ENOUGH_STEPS)
        drive = team.drive()
        drive.pause()
        try:
            assert up.wait(UP_LIMIT_S) != 0
            return team.product.status(STACK) | {"machines": team.machines(), "said": team.product.said()}
        finally:
            drive.unpause()


@pytest.fixture(scope="module")
def finished(team: Team, cut_off: dict[str, Any]) -> dict[str, Any]:
    """The run that the next up carried to its end, though one of its machines was deleted before."""
    lost = cut_off["machines"]["gpu-1"]
    team.ask("PATCH", f"/machines/{lost}/stop")
    wait_until("the machine to stop", lambda: team.ask("GET", f"/machines/{lost}")["state"] == "off", timeout_s=120)
    team.ask("DELETE", f"/machines/{lost}")
    last = cut_off["step"] + MORE_STEPS
    team.product.edit_stack(f"maxSteps: {ENDLESS}", f"maxSteps: {last}", STACK)
    again = team.product.run(f"make up STACK={STACK}", UP_LIMIT_S)
    assert again.returncode == 0, again.stdout + again.stderr
    return team.product.status(STACK) | {"machines": team.machines(), "last": last}


@pytest.fixture(scope="module")
def down(team: Team, finished: dict[str, Any]) -> str:
    """Output of `make down`."""
    answer = team.product.run(f"make down STACK={STACK} FETCH=1", UP_LIMIT_S)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


def test_an_up_after_a_killed_one_adopts_what_that_one_had_ordered(ordered, cut_off) -> None:
    assert sorted(cut_off["machines"]) == ["gpu-0", "gpu-1"]
    assert ordered.items() <= cut_off["machines"].items()


def test_a_drive_that_hangs_ends_the_run_with_its_cause(cut_off) -> None:
    assert (cut_off["state"], cut_off["cause"]) == ("failed", "drive-lost")
    assert "gpu-0 and gpu-1" in cut_off["reason"]
    assert "(drive-lost)" in cut_off["said"]


def test_a_deleted_machine_is_replaced_and_the_run_resumes_from_the_drive(team: Team, cut_off, finished) -> None:
    assert (finished["state"], finished["step"], finished["run"]) == ("finished", finished["last"], cut_off["run"])
    before, after = cut_off["machines"], finished["machines"]
    assert (after["gpu-0"] == before["gpu-0"], after["gpu-1"] == before["gpu-1"]) == (True, False)
    shown = team.product.plain(f"fab ssh --stack {STACK} gpu-0 -- cat /data/runs/{finished['run']}/progress.jsonl", 60)
    events = [json.loads(line) for line in shown.stdout.splitlines()]
    assert [event["step"] >= ENOUGH_STEPS - 20 for event in events if event["event"] == "resuming"] == [True]
    assert {event["to"] for event in events if event["event"] == "copied"} == {"the drive"}
    losses = [event["loss"] for event in events if event["event"] == "train"]
    assert losses[-1] < losses[0] - 1


def test_the_next_up_changes_nothing_and_no_process_is_left(team: Team, finished) -> None:
    again = team.product.run(f"make up STACK={STACK}", UP_LIMIT_S)
    assert again.returncode == 0, again.stdout + again.stderr
    _, _, after = again.stdout.partition("Resources:\n")
    counted = after.split("\n\n")[0].split("Duration:")[0].splitlines()
    assert counted and all("unchanged" in line for line in counted), again.stdout
    for node in ("gpu-0", "gpu-1"):
        assert team.product.plain(f"fab ssh --stack {STACK} {node} -- '{LEFT}'", 60).stdout.strip() == "0"


def test_the_drive_that_is_kept_stays_and_everything_else_is_proven_closed(team: Team, down: str) -> None:
    assert "kept" in down
    assert team.machines() == {}
    assert len(team.ask("GET", "/shared-drives")["items"]) == 1
