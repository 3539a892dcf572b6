"""Pulumi's state file as it may lie there after a crash: whole, cut off, empty, gone; and what stands in for it."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from microcluster.core.home import Home
from microcluster.lifecycle import pulumi, pulumi_state
from microcluster.lifecycle.pulumi_state import BrokenStateError, Held, Snapshot
from microcluster.setup.errors import CommandFailed

URN = "urn:pulumi:local::microcluster::{kind}::{name}"
GUEST = "softlayer:index:VirtualGuest"


def resource(kind: str, name: str, id: str | None = None) -> dict[str, Any]:
    return {"type": kind, "urn": URN.format(kind=kind, name=name)} | ({"id": id} if id else {})


def content(*resources: dict[str, Any], pending: tuple[dict[str, Any], ...] = ()) -> bytes:
    operations = [{"resource": each, "type": "creating"} for each in pending]
    latest = {"resources": list(resources), "pending_operations": operations}
    return json.dumps({"version": 3, "checkpoint": {"latest": latest}}).encode()


STACK = resource(pulumi.STACK, "stack") | {"outputs": {"run": "f29e"}}
ONE = content(STACK, resource(GUEST, "gpu-0", "1031"))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    place = Home(tmp_path, tmp_path / "cache")
    place.make()
    pulumi_state.path_of("local", place).parent.mkdir(parents=True)
    return place


def write(home: Home, text: bytes, name: str = "local.json") -> Path:
    path = pulumi_state.path_of("local", home).with_name(name)
    path.write_bytes(text)
    return path


def back_up(home: Home, text: bytes, at: int) -> None:
    folder = home.state / ".pulumi" / "backups" / "microcluster" / "local"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"local.{at}.json").write_bytes(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (ONE, Snapshot(2, (Held(GUEST, "gpu-0", "1031"),), outputs={"run": "f29e"})),
        (
            content(resource(pulumi.STACK, "stack"), pending=(resource(GUEST, "gpu-1"),)),
            Snapshot(1, (Held(GUEST, "gpu-1", None),), pending_creates=1),
        ),
        (
            content(resource(GUEST, "gpu-0", "7"), pending=(resource(GUEST, "gpu-0"),)),
            Snapshot(1, (Held(GUEST, "gpu-0", "7"),), pending_creates=1),
        ),
        (b'{"version":3,"checkpoint":{"stack":"x"}}', pulumi_state.NOTHING),
    ],
    ids=["whole", "an order under way counts as held", "a repeated one once", "a new stack"],
)
def test_a_state_lists_the_accounts_objects_and_the_stacks_outputs(text: bytes, found: Snapshot) -> None:
    assert pulumi_state.parse(text) == found


@pytest.mark.parametrize("at", range(0, len(ONE) - 1, 7))
def test_a_state_that_is_cut_off_anywhere_is_known_to_be(at: int) -> None:
    with pytest.raises(BrokenStateError):
        pulumi_state.parse(ONE[:at])


@pytest.mark.parametrize(
    "text", [b"", b" \n", b"[1]", b"null", b"{}", b'{"checkpoint": 3}', b"\x00" * 64, b"\xff\xfe{"]
)
def test_what_is_no_state_is_known_to_be_none(text: bytes) -> None:
    with pytest.raises(BrokenStateError):
        pulumi_state.parse(text)


@pytest.mark.parametrize("broken", [b"", ONE[:40], b"\x00" * 400])
def test_a_broken_or_missing_state_is_replaced_by_the_write_before_it(home, broken):
    path = write(home, broken)
    write(home, ONE, "local.json.bak")
    back_up(home, content(), 5)
    assert "restored from local.json.bak" in pulumi_state.repair("local", home)[-1]
    assert path.read_bytes() == ONE
    (aside,) = path.parent.glob("local.json.broken-*")
    assert aside.read_bytes() == broken
    assert pulumi_state.repair("local", home) == [], "a readable one is left as it is"
    path.unlink()
    assert pulumi_state.repair("local", home)[0].endswith("it is gone")
    assert path.read_bytes() == ONE


def test_the_newest_backup_stands_in_where_the_write_before_is_broken_too(home: Home) -> None:
    path = write(home, b"{")
    write(home, b"{", "local.json.bak")
    for at, text in ((999, content()), (1000, ONE), (1001, b"")):
        back_up(home, text, at)
    pulumi_state.repair("local", home)
    assert path.read_bytes() == ONE


def test_without_any_readable_copy_the_stack_begins_empty(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home, b"{")
    made: list[str] = []
    done = subprocess.CompletedProcess((), 0, "", "")
    monkeypatch.setattr(pulumi_state.pulumi, "answer", lambda home, *words, limit_s: made.append(words[2]) or done)
    assert "began an empty state" in pulumi_state.repair("local", home)[-1]
    assert made == ["local"]


def test_what_reads_a_broken_state_names_the_command_that_mends_it(home: Home) -> None:
    write(home, ONE[:50])
    with pytest.raises(CommandFailed, match=r"it is no Pulumi state.*fab recover --stack local"):
        pulumi_state.known("local", home)
    assert pulumi_state.known("p100", home) == pulumi_state.NOTHING, "it is not in the way of another stack"
