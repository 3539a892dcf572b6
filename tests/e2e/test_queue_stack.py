"""`make up STACK=mxnet-local`: the emulated site, a killed `up` whose job is found again, a training, a fetched model, node hours."""

import os
import signal
from collections.abc import Iterator

import pytest
from image_containers import need
from product import Product, install

from emulator.queue.settings import QUEUE_IMAGE
from tests.product import ASK_LIMIT_S, free_port, write_settings

pytestmark = [pytest.mark.containers, pytest.mark.timeout(1200)]

STACK, SUBNET, EPOCHS = "mxnet-local", "10.66.123.0/24", 4
UP_LIMIT_S = 900


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    need(QUEUE_IMAGE, command="fab images --only queue")
    product = install(tmp_path_factory.mktemp("site"))
    write_settings(product.home / "emulator-queue", free_port(), (SUBNET,), "198.18.68.0/28")
    product.edit_stack("maxSteps: 20", f"maxSteps: {EPOCHS}", STACK)
    yield product
    product.run(".venv/bin/python -m emulator reset queue", 300)


def jobs(product: Product) -> list[str]:
    """The jobs of the queue, as the person sees them on the login host; none before there is one."""
    answer = product.run(f"ssh -F {product.home}/emulator-queue/ssh_config login qstat", ASK_LIMIT_S)
    return [line.split()[0] for line in answer.stdout.splitlines() if "mc" in line]


@pytest.fixture(scope="module")
def submitted(product: Product) -> list[str]:
    """The jobs of the queue after an `up` was killed that had submitted one, and after `fab recover`."""
    with product.begun(f"make up STACK={STACK}") as up:
        product.wait_while(up, "a job in the queue", lambda: jobs(product))
        os.killpg(up.pid, signal.SIGKILL)
    product.recover(STACK)
    return jobs(product)


@pytest.fixture(scope="module")
def trained(product: Product, submitted: list[str]) -> str:
    """Output of the next `up`."""
    up = product.run(f"make up STACK={STACK}", UP_LIMIT_S)
    assert up.returncode == 0, up.stdout + up.stderr
    return up.stdout


def test_the_next_up_finds_a_killed_ones_job_and_trains_on(
    product: Product, submitted: list[str], trained: str
) -> None:
    assert len(submitted) == 1 and "submitted as job" not in trained
    status = product.status(STACK)
    assert (status["state"], status["step"]) == ("finished", EPOCHS)


def test_a_node_is_the_sites_own_and_the_login_host_is_open(product: Product, trained: str) -> None:
    refused = product.plain(f"fab ssh --stack {STACK} gpu-1 -- true", ASK_LIMIT_S)
    assert refused.returncode != 0 and "no machine gpu-1 to log in to; it has login" in refused.stdout + refused.stderr
    assert product.plain(f"fab ssh --stack {STACK} login -- hostname", ASK_LIMIT_S).stdout.strip() == "login"


def test_another_up_changes_nothing_and_down_prints_one_jobs_node_hours(product: Product, trained: str) -> None:
    assert "5 unchanged" in product.run(f"make up STACK={STACK}", UP_LIMIT_S).stdout
    down = product.run(f"make down STACK={STACK} FETCH=1", UP_LIMIT_S)
    assert down.returncode == 0, down.stdout + down.stderr
    assert down.stdout.count(" 2 nodes of queue gpu") == 1
    assert "node hours" in down.stdout and ": 0\n" in down.stdout.split("open billing items")[1]


def test_an_up_after_a_down_says_how_to_train_again(product: Product, trained: str) -> None:
    up = product.run(f"make up STACK={STACK}", UP_LIMIT_S)
    assert "nothing is trained now. To train it again: fab ssh" in up.stdout
