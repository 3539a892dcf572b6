"""`fab ssh`: the words that reach a machine, and its training container."""

import os
import shlex
import sys
from dataclasses import replace

import pytest
from command_samples import CLUSTER
from fake_machine import FakeMachine

from microcluster.commands import ssh as module


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path) -> list[tuple[str, ...]]:
    """Return what `fab ssh` has become."""
    host, found = FakeMachine(), []
    host.key_file = str(tmp_path / "id")
    monkeypatch.setattr(module, "cluster_of", lambda stack: CLUSTER)
    monkeypatch.setattr(module, "host_named", lambda cluster, node: host)
    monkeypatch.setattr(module, "open_hosts", lambda cluster: [host])
    monkeypatch.setattr(os, "execvp", lambda program, argv: found.append(argv))
    return found


def test_a_command_runs_in_the_container_as_its_shell_reads_it(started, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["fab", "ssh", "gpu-0", "--container", "--", "echo $HOME;", "ls 'a b'"])
    module.ssh.code(node="gpu-0", stack="local", container=True)
    assert shlex.split(started[0][-1]) == ["docker", "exec", "-i", "openseq2seq", "bash", "-c", "echo $HOME; ls 'a b'"]


def test_without_a_command_it_is_a_shell_at_a_terminal(started, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["fab", "ssh", "gpu-0", "--container"])
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    module.ssh.code(node="gpu-0", stack="local", container=True)
    assert started[0][-1] == "docker exec -it openseq2seq bash" and "-t" in started[0]


def test_on_the_machine_itself_nothing_is_added(started, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["fab", "ssh", "gpu-0", "--", "true"])
    module.ssh.code(node="gpu-0", stack="local", container=False)
    assert started[0][-1] == "true" and "-t" not in started[0]


def test_a_job_without_a_container_has_none_to_enter(started, monkeypatch, capsys):
    monkeypatch.setattr(module, "cluster_of", lambda stack: replace(CLUSTER, container=None))
    assert module.ssh.code(node="gpu-0", stack="local", container=True) == 2
    assert "runs in no container. Leave out --container." in capsys.readouterr().err
