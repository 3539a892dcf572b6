"""What the commands print and with which exit code they end, on inputs that need no machines."""

import base64
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from frozen import as_json, compare, with_names
from invoke import Context

import fabfile
from tools.chaos.accounts import AccountServer
from tools.chaos.market import Post
from tools.chaos.softlayer import DOMAIN, SIZE, SOFTLAYER

ROOT = Path(__file__).parents[2]
COMMANDS = fabfile.commands(tuple(fabfile.MODULES))
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIP1m8HkPs2YX3BPDd4rXyDKzwKEhIGpyqUXoMzFzbNQa"
DIFFERING = (("TIME", r"\\d{4}-\\d\\d-\\d\\d[ T]\\d\\d:\\d\\d(:[0-9.+:]+)?"), ("ADDRESS", r"127\\.0\\.0\\.1:\\d+"))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in which nothing was ever rented."""
    for name in ("MICROCLUSTER_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in ("SL_USERNAME", "SL_API_KEY", "PAPERSPACE_API_KEY", "PULUMI_BACKEND_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "160")
    return tmp_path


def fab(command: str, home: Path, capsys: pytest.CaptureFixture[str], **options: Any) -> tuple[int, str]:
    """Run a command; return its exit code and what it printed."""
    with pytest.raises(SystemExit) as end:
        COMMANDS[command].body(Context(), **options)
    said = capsys.readouterr()
    text = f"{said.out}{said.err}".replace(str(home), "HOME").replace(str(ROOT), "REPOSITORY")
    return end.value.code, with_names(text, DIFFERING)


@pytest.mark.parametrize("stack", ["local", "p100", "paperspace", "seawulf", "torchrun-v100"])
@pytest.mark.parametrize("command", ["explain", "plan"])
def test_what_a_command_prints_of_a_stack_is_frozen(command, stack, home, capsys) -> None:
    code, text = fab(command, home, capsys, stack=stack)
    compare(f"texts/{command}.{stack}.txt", f"{text}exit code {code}\n")


NOTHING_IS_RENTED = ("status", "receipt", "report", "stop", "logs", "watch", "fetch", "resume", "tensorboard", "sweep", "guard", "recover", "costs", "extend", "translate", "trust", "compare", "rotate")


def wanted(command: str, **options: Any) -> dict[str, Any]:
    """Return the options that the command has, of these and of those without which it does nothing."""
    known = {"node": "gpu-0", "file": "/nowhere", "hours": "1", "yes": True, **options}
    return {name: value for name, value in known.items() if name in {each.name for each in COMMANDS[command].get_arguments()}}


def test_every_command_ends_as_before_where_nothing_is_rented(home, capsys) -> None:
    """On a real account without a key, on a stack that does not exist, and on a stack file that is broken."""
    found = {
        f"{command} --stack {stack}": fab(command, home, capsys, **wanted(command, stack=stack))
        for command in NOTHING_IS_RENTED
        for stack in ("v100", "v1000")
    }
    compare("texts/exit-codes.json", as_json({words: {"code": code, "text": text} for words, (code, text) in found.items()}))
