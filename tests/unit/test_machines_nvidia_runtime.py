"""The machines' nvidia runtime brings the GPU tool into a container and becomes runc."""

import importlib.util
import json
from pathlib import Path

import pytest

STUB = Path(__file__).parents[2] / "images/machine/nvidia_container_runtime.py"


@pytest.fixture
def runtime(monkeypatch):
    """The runtime with what it becomes in ``became``."""
    loaded = importlib.util.spec_from_file_location("nvidia_container_runtime", STUB)
    module = importlib.util.module_from_spec(loaded)
    loaded.loader.exec_module(module)
    module.became = []
    monkeypatch.setattr(module.os, "execvp", lambda file, argv: module.became.append(argv))
    return module


def test_a_container_that_is_made_gets_the_tool_read_only(runtime, tmp_path):
    given = {"mounts": [{"destination": "/proc"}], "hostname": "x", "process": {"args": ["sh"]}}
    (tmp_path / "config.json").write_text(json.dumps(given))
    arguments = ["--root", "/run", "create", "--bundle", str(tmp_path), "abc"]
    runtime.main(arguments)
    config = json.loads((tmp_path / "config.json").read_text())
    assert [mount["destination"] for mount in config["mounts"]] == ["/proc", *runtime.BROUGHT]
    assert all("ro" in mount["options"] for mount in config["mounts"][1:])
    assert config["hostname"] == "x"
    assert runtime.became == [["runc", *arguments]]


def test_every_other_command_is_passed_on_as_it_is(runtime):
    runtime.main(["state", "abc"])
    assert runtime.became == [["runc", "state", "abc"]]
