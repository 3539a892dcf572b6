"""What the commands print and with which exit code they end, on inputs that need no machines."""

import re
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from frozen import as_json, compare, with_names
from invoke import Context

import fabfile
from microcluster.config import stack as config
from tests.chaos.accounts import AccountServer
from tests.chaos.market import Post
from tests.chaos.paperspace import MARK, PAPERSPACE, PUBLIC_KEY
from tests.chaos.softlayer import SOFTLAYER, guest_template

ROOT = Path(__file__).parents[2]
COMMANDS = fabfile.commands(tuple(fabfile.MODULES))
OF_THE_RUN = (
    "status",
    "report",
    "stop",
    "logs",
    "watch",
    "fetch",
    "resume",
    "tensorboard",
    "translate",
    "trust",
    "ssh",
)
OF_THE_ACCOUNT = ("receipt", "sweep", "costs", "guard", "extend", "compare", "rotate")
QUICK = {"clock_rate": 1, "provisioning_s": 0.1}
DIFFERING = (
    ("TIME", r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:[0-9.+:]+)?"),
    ("ADDRESS", r"127\.0\.0\.1:\d+"),
    ("ACCOUNT", r"(?<=account )\d{6}"),
    ("AGE", r"(?<=UTC )\([0-9a-z ]+\)"),
)
KEY_FILES = {
    "refused-key": ("(?m)^api_key = .*", "api_key = another"),
    "no-rights": ("(?m)^username = .*", "username = limited"),
}
"""Line of the account's key file that a situation changes."""
DRAWN = ((r" {2,}", " "), (r"━+", "━"), (r"─+", "─"))
"""The width of a table follows what stands in it."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in which nothing was ever rented."""
    for name in ("MICROCLUSTER_HOME", "MICROCLUSTER_CACHE", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in ("SL_USERNAME", "SL_API_KEY", "PAPERSPACE_API_KEY", "PULUMI_BACKEND_URL"):
        monkeypatch.delenv(name, raising=False)
    for module in list(sys.modules.values()):  # What a person has fetched is no input.
        if hasattr(module, "ARTIFACTS"):
            monkeypatch.setattr(module, "ARTIFACTS", tmp_path / "artifacts")
    return tmp_path


def fab(command: str, home: Path, capsys: pytest.CaptureFixture[str], **options: Any) -> tuple[int, str]:
    """Run a command; return its exit code and what it printed."""
    with pytest.raises(SystemExit) as end:
        COMMANDS[command].body(Context(), **options)
    said = capsys.readouterr()
    text = (
        re.sub(r"Stacks: [a-z0-9, -]+\.", "Stacks: STACKS.", f"{said.out}{said.err}")
        .replace(str(home), "HOME")
        .replace(str(ROOT), "REPOSITORY")
    )
    text = with_names(text, DIFFERING)
    for run, one in DRAWN:
        text = re.sub(run, one, text)
    return end.value.code, re.sub("(?m) +$", "", text)


@pytest.mark.parametrize("stack", ["local", "p100", "paperspace", "seawulf", "torchrun-v100"])
@pytest.mark.parametrize("command", ["explain", "plan"])
def test_what_a_command_prints_of_a_stack_is_frozen(command, stack, home, capsys) -> None:
    code, text = fab(command, home, capsys, stack=stack)
    compare(f"texts/{command}.{stack}.txt", f"{text}exit code {code}\n")


def table(commands: Iterable[str], home: Path, capsys: pytest.CaptureFixture[str], stack: str) -> dict[str, Any]:
    """Return {command: its exit code and what it printed}, of the named ones on a stack."""
    found = {}
    for command in commands:
        options = {"node": "gpu-0", "file": "/nowhere", "hours": "1", "runs": ["a", "b"], "stack": stack}
        known = {each.name for each in COMMANDS[command].get_arguments()}
        code, text = fab(command, home, capsys, **{name: value for name, value in options.items() if name in known})
        found[command] = {"exit code": code, "text": text.splitlines()}
    return found


def test_every_command_refuses_a_stack_that_does_not_exist(home, capsys) -> None:
    names = ("preview", "up", "down", "plan", "explain", "recover", *OF_THE_RUN, *OF_THE_ACCOUNT)
    compare("texts/ends.unknown-stack.json", as_json(table(names, home, capsys, "v1000")))


def test_a_stack_that_is_not_up_and_has_no_keys_ends_each_command_as_before(home, capsys) -> None:
    compare("texts/ends.nothing-set-up.json", as_json(table((*OF_THE_RUN, *OF_THE_ACCOUNT), home, capsys, "v100")))


def test_an_account_without_a_key_is_unknown(home, capsys) -> None:
    give_keys(home, "v100")
    compare("texts/ends.no-account-key.json", as_json(table(OF_THE_ACCOUNT, home, capsys, "v100")))


LOCAL = (config.STACKS / "Pulumi.local.yaml").read_text()
BROKEN = {
    "no-yaml": "config: [\n",
    "empty": "",
    "unknown-key": LOCAL.replace("flavor:", "flavour:"),
    "unknown-account": LOCAL.replace("  microcluster:cluster:\n", "  microcluster:cluster:\n    account: softlayr\n"),
    "secret": LOCAL.replace("config:\n", "config:\n  softlayer:apiKey: x\n", 1),
    "no-job": LOCAL.partition("  microcluster:job:")[0],
    "steps": LOCAL.replace("    kind: openseq2seq", "    maxSteps: -1\n    kind: openseq2seq"),
}


def test_a_broken_stack_file_is_the_users_mistake_for_every_command(home, monkeypatch, capsys) -> None:
    monkeypatch.setattr(config, "STACKS", home / "stacks")
    config.STACKS.mkdir()
    found = {}
    for name, text in BROKEN.items():
        (config.STACKS / f"Pulumi.{name}.yaml").write_text(text)
        found[name] = table(("explain", "plan", "preview", "receipt", "status"), home, capsys, name)
    assert {end["exit code"] for ends in found.values() for end in ends.values()} == {2}
    compare("texts/ends.broken-stack-file.json", as_json(found))


@pytest.mark.parametrize("situation", ["empty-account", "refused-key", "rented", "no-rights"])
def test_an_emulated_account_ends_each_command_that_asks_it_as_before(situation, home, capsys) -> None:
    give_keys(home, "local")
    server = AccountServer()
    market = replace(SOFTLAYER, settle=rent if situation == "rented" else lambda post: None)
    try:
        with server.opened(home / "emulator", market, **QUICK, restricted_user="limited"):
            if situation in KEY_FILES:
                file = home / "emulator" / "softlayer.conf"
                file.write_text(re.sub(*KEY_FILES[situation], file.read_text()))
            found = table(OF_THE_ACCOUNT, home, capsys, "local")
    finally:
        server.close()
    compare(f"texts/ends.{situation}.json", as_json(found))


def give_keys(home: Path, stack: str) -> None:
    """Give a stack the key pair whose mark is known."""
    PAPERSPACE.prepare(home)
    folder = (home / "keys" / "test").rename(home / "keys" / stack)
    (folder / "id_ed25519.pub").write_text(f"{PUBLIC_KEY}\n")


def rent(post: Post) -> None:
    """Order a guest with the mark of the stack."""
    guest = guest_template(f"local-{MARK}.microcluster")
    post("/rest/v3.1/SoftLayer_Virtual_Guest/createObject.json", {"parameters": [guest]})
