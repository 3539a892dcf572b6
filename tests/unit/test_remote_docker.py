"""Docker's storage, the training image and the training container on a machine in memory."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from fake_machine import FakeMachine

from launchers.payload import Container
from remote.container import ensure_container
from remote.docker_storage import ensure_docker_storage
from remote.host import RemoteError
from remote.image import _what_to_mend, ensure_image

IMAGE = "ngc.test:5000/training:standin"


@pytest.fixture
def container(tmp_path, monkeypatch):
    monkeypatch.delenv("NGC_API_KEY", raising=False)
    key = tmp_path / "ngc_key"
    key.write_text("right\n")
    return Container("openseq2seq", IMAGE, registry_key_file=str(key))


@pytest.fixture
def machine():
    return FakeMachine(registry={IMAGE: "sha256:1"})


def test_docker_moves_to_the_data_disk_and_keeps_its_other_settings(machine):
    assert ensure_docker_storage(machine, "/data")
    assert json.loads(machine.files["/etc/docker/daemon.json"]) == {
        "data-root": "/data/docker",
        "runtimes": {"nvidia": {}},
    }
    assert machine.docker_root == "/data/docker"
    assert not ensure_docker_storage(machine, "/data")


def test_a_restart_that_was_missed_is_made_up_for(machine):
    machine.files["/etc/docker/daemon.json"] = '{"data-root": "/data/docker"}'
    assert ensure_docker_storage(machine, "/data")
    assert machine.docker_root == "/data/docker"


def test_an_image_is_pulled_once(machine, container):
    assert ensure_image(machine, container)
    assert not ensure_image(machine, container)
    assert machine.changes == [f"pull {IMAGE}"]


def test_a_wrong_registry_key_is_named_with_the_place_to_mend_it(machine, container):
    machine.registry_key = "another"
    with pytest.raises(RemoteError, match="refused") as refused:
        ensure_image(machine, container)
    assert container.registry_key_file in str(refused.value)
    assert "right" not in str(refused.value)


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        (
            "Get https://r.test/v2/: dial tcp 10.1.1.1:5000: connect: connection refused",
            "Nothing is wrong with the key",
        ),
        ("login attempt to https://r.test/v2/ failed with status: 401 Unauthorized", "Put a valid key into /keys/ngc"),
    ],
)
def test_a_silent_registry_is_not_taken_for_a_wrong_key(said, hint, container):
    assert _what_to_mend(said, replace(container, registry_key_file="/keys/ngc")).startswith(hint)


def test_an_exported_key_does_not_reach_a_registry_whose_key_file_is_named(machine, container):
    assert ensure_image(machine, container, "of-another-account")


def test_without_a_file_the_key_is_what_the_person_has_exported(machine):
    assert ensure_image(machine, Container("openseq2seq", IMAGE), "right\n")


def test_a_missing_key_file_is_a_sentence(machine):
    lost = Container("openseq2seq", IMAGE, registry_key_file="/nowhere/key")
    with pytest.raises(RemoteError, match="/nowhere/key"):
        ensure_image(machine, lost)


def test_an_image_that_the_registry_does_not_have_is_named(machine, container):
    machine.registry.clear()
    with pytest.raises(RemoteError, match="pulling ngc.test:5000/training:standin"):
        ensure_image(machine, container)


def test_the_container_is_made_once_with_the_options_of_the_procedures(machine, container):
    machine.images[IMAGE] = "sha256:1"
    assert ensure_container(machine, container, "/data")
    assert not ensure_container(machine, container, "/data")
    made = machine.containers["openseq2seq"]
    assert made["HostConfig"] == {
        "Runtime": "nvidia",
        "NetworkMode": "host",
        "Binds": ["/data:/data", "/run/microcluster:/run/microcluster:ro"],
    }
    assert made["Config"] == {"Cmd": ["sh", "/run/microcluster/start.sh"], "Env": ["SSH_PORT=4444"]}


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [
        ("State", "Running", False),
        ("HostConfig", "Runtime", "runc"),
        ("HostConfig", "Binds", ["/data:/data"]),
        ("Config", "Env", ["SSH_PORT=22"]),
        ("Config", "Cmd", ["/run/microcluster/start.sh"]),
    ],
)
def test_a_container_that_differs_or_does_not_run_is_made_again(machine, container, part, key, value):
    machine.images[IMAGE] = "sha256:1"
    ensure_container(machine, container, "/data")
    machine.containers["openseq2seq"][part][key] = value
    assert ensure_container(machine, container, "/data")
    assert machine.changes[-2:] == ["remove openseq2seq", "run openseq2seq"]


def test_a_container_of_an_older_image_is_made_again(machine, container):
    machine.images[IMAGE] = "sha256:1"
    ensure_container(machine, container, "/data")
    machine.images[IMAGE] = "sha256:2"
    assert ensure_container(machine, container, "/data")
    assert machine.containers["openseq2seq"]["Image"] == "sha256:2"
