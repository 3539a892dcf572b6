"""Before up and down begin: what refuses them, who works on the stack, and what its account holds."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from emulator.shared.process import port_owner
from microcluster.accounts.registry import AccountSettings
from microcluster.commands import up
from microcluster.config import stack as config
from microcluster.core.home import Home
from microcluster.lifecycle import emulated_account, locks, pulumi_state
from microcluster.lifecycle.emulated_account import Emulated, Rented, parse_status
from microcluster.lifecycle.locks import alone_on
from microcluster.lifecycle.pulumi_state import NOTHING, Held, Snapshot
from microcluster.rental import down, recover
from microcluster.rental.down import has_machines
from microcluster.setup import engine
from microcluster.setup.environment import PROJECT
from microcluster.setup.errors import CommandFailed, UserMistake
from microcluster.setup.progress import Stages


def home(folder: Path) -> Home:
    made = Home(folder, folder / "cache")
    made.make()
    return made


def test_only_a_local_stack_has_an_emulator_which_lies_in_the_home(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path))
    assert emulated_account.of_account(config.read_account("local"), home(tmp_path)) == Emulated(
        "softlayer", tmp_path / "emulator"
    )
    assert emulated_account.of_account(config.read_account("p100"), home(tmp_path)) is None
    assert emulated_account.of_account(config.read_account("v100"), home(tmp_path)) is None
    monkeypatch.setattr(config, "STACKS", tmp_path)
    (tmp_path / "Pulumi.team.yaml").write_text("config: {'softlayer:configFile': ~/.softlayer-team}")
    assert emulated_account.of_account(config.read_account("team"), home(tmp_path)) is None, (
        "it is the file of a real account"
    )


@pytest.fixture
def without_key(tmp_path: Path, monkeypatch) -> Home:
    """Stacks that could be ordered, no key of an account, and an engine that must not be asked for."""
    (tmp_path / "stacks").mkdir()
    for name in ("local", "p100", "paperspace"):
        text = (config.STACKS / f"Pulumi.{name}.yaml").read_text()
        (tmp_path / "stacks" / f"Pulumi.{name}.yaml").write_text(text.replace("203.0.113.7", "11.0.0.7"))
    monkeypatch.setattr(config, "STACKS", tmp_path / "stacks")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("microcluster.setup.engine.ensure", None)
    monkeypatch.setattr("microcluster.setup.engine.ensure_any", None)
    return home(tmp_path / "home")


@pytest.mark.parametrize(("stack", "variable"), [("p100", "SL_API_KEY"), ("paperspace", "PAPERSPACE_API_KEY")])
def test_an_up_without_a_key_is_refused_before_the_engine_starts(without_key, stack, variable) -> None:
    with pytest.raises(UserMistake, match=f"Nothing was ordered: .*{variable}.* Then `make up STACK={stack}` again"):
        up.up.function(stack)
    assert not list(without_key.keys.glob("*")) and pulumi_state.known(stack, without_key) == NOTHING


@pytest.mark.parametrize("code", [0, 1], ids=["up", "refused"])
def test_an_up_reads_the_stack_file_once(without_key, monkeypatch, code) -> None:
    read, real = [], config.read_values
    monkeypatch.setattr(config, "read_values", lambda path: read.append(path.name) or real(path))
    monkeypatch.setattr("microcluster.setup.engine.ensure", lambda *_: None)
    monkeypatch.setattr("microcluster.lifecycle.emulated_account.start", lambda *_: None)
    monkeypatch.setattr("microcluster.lifecycle.emulated_account.install_with_engine", lambda *_: None)
    monkeypatch.setattr("microcluster.lifecycle.pulumi.run", lambda *_: code)
    monkeypatch.setattr(up, "run_part", lambda part, **_: 0)
    assert up.up.code(stack="local") == code
    assert read == ["Pulumi.local.yaml"]


@pytest.mark.parametrize(
    ("stack", "kind"), [("p100", "softlayer:index:VirtualGuest"), ("paperspace", "paperspace:index:Machine")]
)
def test_a_down_without_a_key_names_resources_that_may_be_billed(without_key, stack, kind) -> None:
    machine = {"urn": f"urn:pulumi:{stack}::microcluster::{kind}::gpu-0", "type": kind, "custom": True, "id": "101"}
    state = pulumi_state.path_of(stack, without_key)
    state.parent.mkdir(parents=True)
    state.write_text(json.dumps({"version": 3, "checkpoint": {"latest": {"resources": [machine]}}}))
    before = state.read_text()
    with pytest.raises(
        CommandFailed, match="Nothing was canceled, .*1 resource. may be billed: .*API_KEY.* `make down"
    ):
        down.take_down(without_key, stack)
    assert state.read_text() == before


@pytest.mark.parametrize(
    ("stack", "ends"),
    [("local", (0, "Nothing of stack local is up")), ("p100", (3, "but the account was not read.*SL_API_KEY"))],
)
def test_a_down_without_resources_fails_where_the_account_was_not_asked(
    without_key, monkeypatch, capsys, stack, ends
) -> None:
    code, said = ends
    monkeypatch.setattr(emulated_account, "rented", lambda *_: Rented(running=False, machines=0, open_billing_items=0))
    assert down.take_down(without_key, stack) == code
    assert re.search(said, capsys.readouterr().out)


BUILDING = """#!/bin/sh
cd {folder}; echo "$@" >> called; touch "$1"
for try in $(seq 600); do [ -e engine ] && [ -e images ] && break; sleep 0.1; done
[ -e engine ] && [ -e images ] && [ "$1" != "{fails}" ] || {{ echo "no $1"; exit 1; }}
"""
"""Script of a `fab` that builds nothing, and is over when both commands have begun."""


@pytest.fixture
def preparing(without_key, tmp_path, monkeypatch):
    """What prepares stack local by a fab of which one command may fail, and returns the calls of both."""
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(emulated_account, "FAB", tmp_path / "fab")

    def does(fails: str = "") -> list[str]:
        (tmp_path / "fab").write_text(BUILDING.format(folder=tmp_path, fails=fails))
        (tmp_path / "fab").chmod(0o755)
        (tmp_path / "called").touch()
        prepared = []
        monkeypatch.setattr(engine, "ensure", lambda *_: prepared.append("engine"))
        monkeypatch.setattr(up, "prepare_stacks", lambda *_: prepared.append("stacks"))
        monkeypatch.setattr(emulated_account, "start", lambda *_: prepared.append("account"))
        try:
            up._prepare(without_key, config.read_file("local"), Stages())
        finally:
            assert not prepared if fails else prepared == ["engine", "stacks", "account"]
        return sorted((tmp_path / "called").read_text().splitlines())

    return does


def test_an_absent_engine_is_built_beside_the_images(preparing) -> None:
    assert preparing() == ["engine", "images --only machine --only training"]


@pytest.mark.parametrize("fails", ["engine", "images"])
def test_an_engine_or_an_image_that_fails_is_one_sentence(preparing, capsys, fails) -> None:
    said = f"Preparing the {fails} failed .* Nothing was ordered. Repeat the same command; finished steps are kept.$"
    with pytest.raises(CommandFailed, match=said):
        preparing(fails)
    assert f"{fails} | no {fails}\n" in capsys.readouterr().out


def test_nothing_is_built_beside_an_engine_that_is_there(preparing, without_key) -> None:
    for part in (("cli", "host"), ("command",)):
        engine._place(*part, home=without_key).mkdir(parents=True)
    assert preparing() == []


def test_a_second_make_on_one_stack_learns_who_works_since_when(tmp_path: Path) -> None:
    with (
        alone_on("local", "make up", home(tmp_path)),
        pytest.raises(CommandFailed) as busy,
        alone_on("local", "make down", home(tmp_path)),
    ):
        pass
    with alone_on("local", "make up", home(tmp_path)), alone_on("p100", "make up", home(tmp_path)):
        pass  # That of one stack is not in the way of another.
    message = str(busy.value)
    assert f"process {os.getpid()} is doing `make up`" in message and f"kill -INT {os.getpid()}" in message
    assert time.strftime("%H:") in message


def test_a_make_that_was_killed_holds_no_lock(tmp_path: Path) -> None:
    script = f"""
import os
from pathlib import Path
from microcluster.core.home import Home
from microcluster.lifecycle.locks import alone_on
with alone_on("local", "make up", Home(Path({str(tmp_path)!r}), Path({str(tmp_path)!r}))):
    os.kill(os.getpid(), 9)
"""
    home(tmp_path)
    assert subprocess.run([sys.executable, "-c", script], cwd=PROJECT, check=False).returncode == -9
    with alone_on("local", "make down", home(tmp_path)):
        pass


def leave_pulumi_lock(place: Home, pid: int = 1, host: str = "x") -> Path:
    folder = place.state / ".pulumi" / "locks" / "organization" / "microcluster" / "local"
    folder.mkdir(parents=True)
    content = {"pid": pid, "username": "root", "hostname": host, "timestamp": "2026-11-21T13:40:08Z"}
    (folder / "c326045e.json").write_text(json.dumps(content))
    return folder / "c326045e.json"


def test_a_pulumi_that_ends_while_its_lock_is_looked_for_has_none(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(Path, "glob", lambda self, pattern: [tmp_path / "gone.json"])
    assert locks.pulumi_locks("local", home(tmp_path)) == ()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"7", b'{"pid": "x"}', b"\xff"])
def test_a_lock_that_was_cut_off_is_stale_and_names_nobody(tmp_path: Path, content: bytes) -> None:
    leave_pulumi_lock(home(tmp_path)).write_bytes(content)
    assert [(lock.pid, lock.is_stale) for lock in locks.pulumi_locks("local", home(tmp_path))] == [(0, True)]


def test_a_dead_pulumis_lock_is_repaired_unasked_and_failure_orders_nothing(tmp_path: Path, monkeypatch) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    leave_pulumi_lock(home(tmp_path), dead.pid, socket.gethostname())
    monkeypatch.setattr(recover.engine, "ensure_any", lambda home, stages: None)
    monkeypatch.setattr(recover, "run_part", lambda part, **options: 1)
    with pytest.raises(CommandFailed, match="Nothing was ordered or canceled.*`make up STACK=local` tries again"):
        recover.repair(home(tmp_path), "local", AccountSettings("softlayer"), "make up", Stages())


@pytest.mark.parametrize(
    ("torn", "said"),
    [
        (True, r"cut off in the middle.*fab recover --stack local"),
        (False, "stack local is busy: a pulumi .process 1 of root on another-computer"),
    ],
)
def test_a_lock_that_names_nobody_or_another_computer_is_never_released(tmp_path: Path, torn: bool, said: str) -> None:
    lock = leave_pulumi_lock(home(tmp_path), 1, "another-computer")
    if torn:
        lock.write_text("{")
    with pytest.raises(CommandFailed, match=said):
        recover.repair(home(tmp_path), "local", AccountSettings("softlayer"), "make up", Stages())


def test_a_zombie_pulumi_counts_as_dead_as_does_a_reused_process_id(tmp_path: Path) -> None:
    place = home(tmp_path / "home")
    program = tmp_path / "pulumi"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    killed = subprocess.Popen([program, "60"])
    here = socket.gethostname()
    lock = leave_pulumi_lock(place, killed.pid, here)
    assert locks.stale_lock("local", place) is None
    killed.kill()
    os.waitid(os.P_PID, killed.pid, os.WEXITED | os.WNOWAIT)
    assert locks.stale_lock("local", place)
    killed.wait()
    lock.write_text(lock.read_text().replace(f'"pid": {killed.pid}', f'"pid": {os.getpid()}'))  # Another program's now.
    left = locks.PulumiLock(os.getpid(), "root", here, "2026-11-21 13:40:08 UTC")
    assert locks.stale_lock("local", place) == left


def test_an_open_billing_item_fills_an_account_and_cancelled_machines_do_not() -> None:
    cancelled = {"machines": [{"state": "cancelled"}], "running": True}
    assert not parse_status(cancelled | {"open_billing_items": 1}).nothing
    assert parse_status(cancelled | {"open_billing_items": 0}).nothing
    assert parse_status(cancelled | {"open_billing_items": 0}).being_reclaimed == 1
    assert not parse_status({"machines": [{"state": "ready"}], "running": True, "open_billing_items": 0}).nothing


def test_a_stopped_emulator_with_an_empty_account_has_no_machines() -> None:
    held = Snapshot(1, (Held("softlayer:index:VirtualGuest", "gpu-0-guest", "101"),))
    assert not has_machines(held, Rented(running=False, machines=0, open_billing_items=0))
    assert has_machines(held, Rented(running=False, machines=1, open_billing_items=0))
    assert has_machines(held, None)
    assert not has_machines(NOTHING, None)


@pytest.mark.parametrize("begin", [emulated_account.start, emulated_account.answer])
def test_a_program_on_the_registrys_port_is_named_before_docker_is_prepared(begin, tmp_path: Path) -> None:
    with socket.create_server(("", 0)) as server:
        port = server.getsockname()[1]
        (tmp_path / "settings.toml").write_text(f"registry_port = {port}\n")
        said = f"needs port {port}, but process {os.getpid()} .*service docker-registry stop"
        with pytest.raises(CommandFailed, match=said):
            begin(Emulated("softlayer", tmp_path), Home(tmp_path, tmp_path), None)


def test_settings_that_cannot_be_used_are_the_persons_mistake(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text("prot = 1\n")
    with pytest.raises(UserMistake, match="settings.toml .*prot: Unexpected"):
        emulated_account.rented(Emulated("softlayer", tmp_path), Home(tmp_path, tmp_path))


OPENS_AND_CLOSES = """
import os, socket
seen_before_the_port = os.open(os.devnull, os.O_RDONLY)
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while os.getppid() == int(os.environ["PARENT"]):
    os.close(seen_before_the_port)
    os.open(os.devnull, os.O_RDONLY)
"""


def test_a_ports_owner_is_found_while_it_opens_and_closes_files() -> None:
    argv = [sys.executable, "-c", OPENS_AND_CLOSES]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env={"PARENT": str(os.getpid())}) as busy:
        port = int(busy.stdout.readline())
        owners = {str(port_owner(port)).split()[0] for _ in range(20)}
        busy.kill()
    assert owners == {str(busy.pid)}
    with socket.create_server(("127.0.0.1", 0)) as ours:  # The registry listens on one address too: both go together.
        assert port_owner(ours.getsockname()[1], everywhere=True) is None
