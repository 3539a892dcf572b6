"""The commands of set-up with the real engine, in a home of their own, without an account, an emulator or a network."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from microcluster.core.home import Home
from microcluster.lifecycle import pulumi_state
from microcluster.setup.environment import PROJECT, child_environment

pytestmark = pytest.mark.timeout(120)
STACKS = sorted(file.name.split(".")[1] for file in (Path(__file__).parents[2] / "stacks").glob("Pulumi.*.yaml"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home that `make setup` has prepared, sharing the cache of this machine's own home."""
    before = stack_files()
    place = Home(tmp_path_factory.mktemp("home"), Home.of().cache)
    done = run(place, "setup")
    assert done.returncode == 0 and "new in" in done.stdout, done.stdout + done.stderr
    assert stack_files() == before, "their comments and salts stay as they are"
    return place


def stack_files() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (PROJECT / "stacks").iterdir()}


def environment(home: Home) -> dict[str, str]:
    without_account = {name: value for name, value in os.environ.items() if not name.startswith(("SL_", "PULUMI_"))}
    return child_environment(home, without_account | {"HOME": str(home.root)})


def run(home: Home, verb: str, stack: str = "local") -> subprocess.CompletedProcess[str]:
    argv = ("fab", verb, *(("--stack", stack) if verb != "setup" else ()))
    return subprocess.run(
        argv, cwd=PROJECT, env=environment(home), capture_output=True, text=True, timeout=300, check=False
    )


def test_setup_makes_every_stack_with_its_keys(home: Home) -> None:
    keys = ["id_ed25519", "id_ed25519.pub", "mark", "rank_ed25519", "rank_ed25519.pub"]
    assert {folder.name: sorted(path.name for path in folder.iterdir()) for folder in home.keys.iterdir()} == {
        name: keys for name in STACKS
    }
    listing = subprocess.run(
        ("pulumi", "stack", "ls", "--json"),
        cwd=PROJECT,
        env=environment(home),
        capture_output=True,
        text=True,
        check=True,
    )
    assert {stack["name"] for stack in json.loads(listing.stdout)} == set(STACKS)


def test_setup_again_makes_nothing_new(home: Home) -> None:
    before = {path: path.read_bytes() for path in home.keys.rglob("*") if path.is_file()}
    done = run(home, "setup")
    assert done.returncode == 0 and "new in" not in done.stdout
    assert {path: path.read_bytes() for path in home.keys.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("stack", ["horovod-local", "v100"])
def test_a_preview_needs_no_account_and_no_emulator(home: Home, stack: str) -> None:
    done = run(home, "preview", stack)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "VirtualGuest" in done.stdout and "to create" in done.stdout
    assert "estimate from the catalog of" in done.stdout
    assert not (home.root / "emulator").exists()


def test_down_without_a_key_says_that_the_account_was_not_read(home: Home) -> None:
    """An `up` that the ledger refused leaves a state with the stack and its provider alone."""
    state = json.loads(pulumi_state.path_of("p100", home).read_text())
    urn = "urn:pulumi:p100::microcluster::pulumi:pulumi:Stack::microcluster-p100"
    own = {"urn": urn, "type": "pulumi:pulumi:Stack", "custom": False}
    state["checkpoint"]["latest"]["resources"] = [own]
    pulumi_state.path_of("p100", home).write_text(json.dumps(state))
    done = run(home, "down", "p100")
    assert pulumi_state.known("p100", home).resources == 0, done.stdout + done.stderr
    assert done.returncode == 3, done.stdout + done.stderr
    assert "the account was not read" in done.stdout and "rents it again" not in done.stdout


def test_an_up_with_a_wrong_stack_file_is_refused_within_seconds(home: Home) -> None:
    refused = run(home, "up", "p100")
    assert refused.returncode == 2
    assert refused.stdout == "" and refused.stderr.count("nothing was ordered") == 1
    assert "cluster/adminCidrs" in refused.stderr
    assert pulumi_state.known("p100", home).resources == 0


@pytest.mark.parametrize("after_s", [0, 1.2])
def test_a_ctrl_c_at_any_stage_is_a_sentence(home, after_s):
    # As in a terminal: a shell in the background lets its children ignore Ctrl-C.
    argv = ("env", "--default-signal=INT", "fab", "preview", "--stack", "v100")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    making = subprocess.Popen(argv, cwd=PROJECT, env=environment(home), text=True, **pipes)
    assert making.stdout and making.stdout.readline().startswith("==> engine")
    time.sleep(after_s)
    making.send_signal(signal.SIGINT)
    _, errors = making.communicate(timeout=240)
    assert making.returncode == 130 and "finished steps are kept. To continue, run the same command again" in errors
    assert "Traceback" not in errors
