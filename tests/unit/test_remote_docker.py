"""Docker's storage and the training container on a machine in memory."""

import json
from dataclasses import replace

import pytest
from fake_machine import FakeMachine

from agent.run.context import TERMINALS_OF_THE_MACHINE
from microcluster.jobs.cluster_facts import Container
from microcluster.remote.docker import ensure_container, ensure_docker_storage
from microcluster.remote.errors import RemoteError

IMAGE = "ngc.test:5000/training:standin"
BUILT = "microcluster/openseq2seq:0123456789ab"
FOR_GPUS = ["NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"]
"""Without them the nvidia runtime brings no GPU into an image that does not set them itself."""


@pytest.fixture
def container():
    return Container("openseq2seq", IMAGE, tag=BUILT)


@pytest.fixture
def machine():
    return FakeMachine(images={BUILT: "sha256:1"})


def test_docker_moves_to_the_data_disk_and_keeps_its_other_settings(machine):
    assert ensure_docker_storage(machine, "/data")
    assert json.loads(machine.files["/etc/docker/daemon.json"]) == {
        "data-root": "/data/docker",
        "runtimes": {"nvidia": {}},
    }
    assert machine.docker_root == "/data/docker"
    assert not ensure_docker_storage(machine, "/data")
    machine.docker_root = "/var/lib/docker"  # A restart was missed.
    assert ensure_docker_storage(machine, "/data")
    assert machine.docker_root == "/data/docker"


def test_the_container_is_made_once_with_the_options_of_the_procedures(machine, container):
    assert ensure_container(machine, container, "/data")
    assert not ensure_container(machine, container, "/data")
    made = machine.containers["openseq2seq"]
    assert made["HostConfig"] == {
        "Runtime": "nvidia",
        "NetworkMode": "host",
        "Binds": ["/data/container:/data", "/data/sent:/data/sent:ro", "/run/microcluster:/run/microcluster:ro"],
        "ShmSize": 1 << 30,
        "Ulimits": [{"Name": "memlock", "Soft": -1, "Hard": -1}, {"Name": "stack", "Soft": 67108864, "Hard": 67108864}],
    }
    assert (made["Config"]["Cmd"], made["Config"]["Env"]) == (
        ["sh", "/run/microcluster/start.sh"],
        [*FOR_GPUS, "SSH_PORT=4444"],
    )
    assert machine.mounts[TERMINALS_OF_THE_MACHINE] == "/dev/pts"
    assert TERMINALS_OF_THE_MACHINE.startswith("/run/microcluster/"), "which the container sees"


@pytest.mark.parametrize("change", [{"runtime": "runc"}, {"ssh_port": 22}])
def test_a_container_with_other_options_image_or_kind_is_replaced(machine, container, change):
    ensure_container(machine, replace(container, **change), "/data")
    assert ensure_container(machine, container, "/data")
    assert machine.changes[-2:] == ["remove openseq2seq", "run openseq2seq"]
    assert ensure_container(machine, container, "/mnt")
    machine.images[BUILT] = "sha256:2"
    assert ensure_container(machine, container, "/mnt")
    assert machine.containers["openseq2seq"]["Image"] == "sha256:2"
    ensure_container(machine, Container("torchrun", IMAGE, tag=BUILT), "/mnt")
    assert ensure_container(machine, container, "/mnt")
    assert set(machine.containers) == {"openseq2seq"}, "the one of another kind leaves its port"
    assert not ensure_container(machine, container, "/mnt")


def test_a_container_with_a_run_at_work_is_left_unchanged(machine, container, capsys):
    ensure_container(machine, replace(container, ssh_port=22), "/data")
    machine.is_busy, before = True, list(machine.changes)
    assert not ensure_container(machine, container, "/data")
    assert machine.changes == before
    assert "a run is at work in it" in capsys.readouterr().err


@pytest.mark.parametrize(("part", "value"), [("State", {"Running": False}), ("Config", {"Labels": {}})])
def test_a_stopped_container_or_one_with_unknown_options_is_replaced(machine, container, part, value):
    ensure_container(machine, container, "/data")
    machine.containers["openseq2seq"][part] = value
    assert ensure_container(machine, container, "/data")


def test_a_container_whose_image_is_not_there_says_how_to_bring_it(machine, container):
    machine.images.clear()
    with pytest.raises(RemoteError, match="pulumi up --replace"):
        ensure_container(machine, container, "/data")
