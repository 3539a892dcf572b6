"""From `make up` to `make down` as a newcomer goes it. The tests share one cluster and build on each other, in this order."""

import functools
import hashlib
import json
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

import pytest
import SoftLayer
from interrupting import Interrupted, interrupt
from port_scan import answers, open_ports
from product import Product, install
from traces import (
    account_of,
    best_models,
    curves_of,
    guests_of,
    labelled,
    of_account,
    processes_of,
    runs,
    supervisor_of,
    to_be_kept,
)

from tests.product import OF_THE_WHOLE_WAY, free_port

pytestmark = [pytest.mark.containers, pytest.mark.timeout(1800)]

FIRST_STEPS, MORE_STEPS, ENDLESS = 150, 20, 10_000


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    product = install(tmp_path_factory.mktemp("product"), OF_THE_WHOLE_WAY)
    product.edit_stack("kind: openseq2seq", f"kind: openseq2seq\n    maxSteps: {FIRST_STEPS}")
    yield product
    product.run(".venv/bin/python -m emulator reset", 300)


MAKE_UP = "exec make up"
WATCH = ". ./env.sh && exec fab watch --stack local"
RENTING = "==> pulumi"
"""Output with which renting begins; a command on a machine before it is left over from an earlier Ctrl-C."""
Moment = Callable[[Product, str], object]
"""Whether it has come, of the product and of what the command has said."""


def rents(*words: str) -> Moment:
    return lambda product, said: RENTING in said and runs(product, *words)


def says(line: str) -> Moment:
    return lambda _, said: re.search(line, said, re.MULTILINE)


STAGES = {
    "the image is built": (MAKE_UP, rents("docker build", "microcluster/openseq2seq")),
    "the image is handed over": (MAKE_UP, rents("docker save", "microcluster/openseq2seq")),
    "the job is started": (MAKE_UP, rents("step.start-job")),
    "the data are prepared": (MAKE_UP, says("^(preparing|preflight) for")),
    # Its own line is there when the preflight was over before the command had begun.
    "the preflight looks": (WATCH, says("^preflight( for|:)")),
    "it trains": (WATCH, says("^running, step")),
}
"""Moments of a person's Ctrl-C, each in the command that goes on from the one before."""
JOB_LIVES = [stage for stage in STAGES if list(STAGES).index(stage) > 2]


@pytest.fixture(scope="module")
def interrupted(product: Product) -> dict[str, tuple[Interrupted, str]]:
    """Result of each interrupted command, and the supervisor's process id afterwards where there is a run."""
    found = {}
    for stage, (command, moment) in STAGES.items():
        ended = interrupt(product, command, functools.partial(moment, product))
        found[stage] = ended, supervisor_of(product) if stage in JOB_LIVES else ""
    return found


@pytest.fixture(scope="module")
def up(product: Product, interrupted: dict[str, tuple[Interrupted, str]]) -> str:
    """Output of `make up` after all the interrupted ones."""
    done = product.run("make up")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_up_rents_trains_and_reports(up: str) -> None:
    assert "validation loss" in up.lower()
    assert "make down" in up


@pytest.mark.parametrize("stage", STAGES)
def test_ctrl_c_at_any_stage_says_what_continues_and_leaves_no_process(stage, interrupted) -> None:
    ended, _ = interrupted[stage]
    assert ended.code != 0
    assert "Traceback" not in ended.said
    assert re.search("cost(s|ing)? money", ended.said), ended.said
    assert re.search("make up STACK=local|fab watch --stack local", ended.said), ended.said
    assert ended.left == ()


def test_the_run_outlives_every_ctrl_c_with_one_supervisor(product: Product, interrupted, up: str) -> None:
    numbers = {interrupted[stage][1] for stage in JOB_LIVES} | {supervisor_of(product)}
    assert len(numbers) == 1 and numbers.pop().isdigit()


def test_what_was_interrupted_left_nothing_on_the_machines(product: Product, up: str) -> None:
    look = "ls -d /run/microcluster-login.* /root/.ssh/authorized_keys2 2>/dev/null; docker ps -a --no-trunc --format {{.Names}}"
    for host in ("gpu-0", "gpu-1"):
        assert product.plain(f"fab ssh --stack local {host} -- '{look}'").stdout.split() == ["openseq2seq"]
    assert not runs(product, "docker save", "microcluster/openseq2seq")
    assert not runs(product, "docker build", "microcluster/openseq2seq")


def test_the_job_is_finished_at_the_accounts_own_cost(product: Product, up: str) -> None:
    status = product.facts("status")
    assert (status["state"], status["step"], status["max_steps"]) == ("finished", FIRST_STEPS, FIRST_STEPS)
    assert float(status["cost"]["per_hour"]) > 5
    assert float(status["cost"]["so_far"]) > 0


def test_it_learnt_over_a_measured_network_that_is_no_bottleneck(product, up):
    report = product.facts("report")
    losses = [one["loss"] for one in report["evaluations"]]
    assert losses[-1] < losses[0] - 0.5
    network = next(one for one in report["answers"] if "network the bottleneck" in one["question"])
    measured, expected = network["figures"]["measured"], network["figures"]["expected"]
    assert 0.5 < measured["bytes_per_step"] / expected["bytes_per_step"] < 4
    assert measured["preflight_mbps"] > 300
    assert 0 < network["figures"]["derived"]["share_of_preflight"] < 0.5
    assert network["answer"].startswith("No: ")


def test_a_second_up_changes_nothing(product: Product, up: str) -> None:
    again = product.plain("pulumi up -s local --yes --refresh --non-interactive")
    assert again.returncode == 0, again.stdout + again.stderr
    counted = re.findall(r"^Resources:\n((?: {4}\S.*\n)+)", again.stdout, re.MULTILINE)
    assert counted
    assert all(re.fullmatch(r"    \d+ unchanged\n", one) for one in counted), again.stdout


def test_no_secret_is_left_on_a_machine_or_in_the_state(product: Product, up: str) -> None:
    secret = (product.home / "emulator" / "ngc_key").read_text().strip()
    for folder in ("state", "pulumi"):
        hits = product.run(f"grep -rlF -- '{secret}' {product.home / folder}")
        assert (hits.returncode, hits.stdout) == (1, ""), hits.stderr
    for host in ("gpu-0", "gpu-1"):
        places = "/root /etc /run /tmp /data/runs /data/container"
        search = (
            f"grep -rlF --exclude-dir=proc --exclude-dir=sys --exclude-dir=docker -- {secret} {places}; echo searched"
        )
        assert product.plain(f"fab ssh --stack local {host} -- '{search}'").stdout.split() == ["searched"]


def test_fetch_downloads_the_run_once(product: Product, up: str) -> None:
    first = product.facts("fetch")
    home = Path(first["folder"])
    status = product.status("local")
    assert home == product.folder / "artifacts" / "local" / f"{status['run']}-{status['word']}"
    assert {"record", "events", "newest checkpoint", "best model", "vocabulary"} == {f["what"] for f in first["files"]}
    for file in json.loads((home / "manifest.json").read_text())["files"]:
        assert hashlib.sha256((home / file["path"]).read_bytes()).hexdigest() == file["sha256"]
    assert product.facts("fetch")["brought"] == []


def test_the_model_translates_where_it_is_and_once_fetched(product: Product, up: str) -> None:
    (product.folder / "in.en").write_text("Open the file\nDo you want to save the changes?\n")
    (product.folder / "in.de").write_text("Datei öffnen\nMöchten Sie die Änderungen speichern?\n")
    there = product.facts("translate in.en --reference in.de")
    assert len(there["lines"]) == 2
    assert 0 <= there["bleu"] <= 100
    fetched = product.facts(f"translate in.en --model {product.facts('fetch')['folder']}")
    assert (fetched["lines"], "/sent/models/" in fetched["model"]) == (there["lines"], True)


def test_tensorboard_is_seen_through_its_tunnel_alone_and_leaves_nothing(product: Product, up: str) -> None:
    port, launcher = free_port(), product.outputs()["microcluster"]["hosts"][0]["public_address"]
    with product.begun(f".venv/bin/fab tensorboard --stack local --port {port}") as shown:
        product.wait_while(shown, "its address", lambda: f"http://127.0.0.1:{port}/" in product.said())
        with build_opener(ProxyHandler({})).open(f"http://127.0.0.1:{port}/data/runs", timeout=60) as answer:
            assert json.load(answer)
        assert open_ports(launcher) == [22]
        shown.send_signal(signal.SIGINT)
        assert shown.wait(60) == 0
    assert not answers("127.0.0.1", port)
    left = product.plain("fab ssh --stack local gpu-0 -- pgrep -f tensorboard.main", 60)
    assert left.stdout == ""


def test_more_steps_go_on_with_the_same_run_and_touch_no_machine(product: Product, up: str) -> None:
    before = product.outputs()
    product.edit_stack(f"maxSteps: {FIRST_STEPS}", f"maxSteps: {ENDLESS}")
    with product.begun("make up") as more:
        product.wait_while(more, "another step", lambda: product.shown_step() > FIRST_STEPS)
    after = product.outputs()
    assert after["run"] == before["run"]
    assert after["microcluster"]["hosts"] == before["microcluster"]["hosts"]


def test_a_job_stopped_after_its_killed_up_leaves_no_process(product: Product, up: str) -> None:
    run = product.outputs()["run"]
    assert processes_of(run)
    assert {str(open_ports(host["public_address"])) for host in product.outputs()["microcluster"]["hosts"]} == {"[22]"}
    stopped = product.plain("fab stop --stack local")
    assert stopped.returncode == 0, stopped.stdout + stopped.stderr
    assert processes_of(run) == []
    assert product.facts("status")["state"] == "stopped"


def more_steps(product: Product) -> int:
    """Let the stack train on from where its run is; return the last step."""
    known = product.facts("status")
    last = known["step"] + MORE_STEPS
    product.edit_stack(f"maxSteps: {known['max_steps']}", f"maxSteps: {last}")
    return last


def test_up_goes_on_with_a_job_that_was_stopped(product: Product, up: str) -> None:
    last, run = more_steps(product), product.outputs()["run"]
    done = product.run("make up")
    assert done.returncode == 0, done.stdout + done.stderr
    status = product.facts("status")
    assert (status["run"], status["state"], status["step"]) == (run, "finished", last)
    log = product.plain(f"fab ssh --stack local gpu-0 -- grep -c Restored /data/runs/{run}/job.log").stdout
    assert int(log) >= 1


def test_a_v100_stack_on_the_same_account_runs_beside_and_shares_nothing(product: Product, up: str) -> None:
    before, status = product.outputs(), product.facts("status")
    with product.begun("make up STACK=v100-local") as other_up:
        product.wait_while(other_up, "its first steps", lambda: product.shown_step() >= 10)
    other = product.outputs("v100-local")
    ours, theirs = before["microcluster"], other["microcluster"]
    shown = product.plain("fab ssh --stack v100-local gpu-0 -- nvidia-smi -L").stdout
    assert shown.count("V100") == 2
    assert float(other["pricePerHour"]) > float(before["pricePerHour"])
    for fact in ("mark", "key_file", "rank_key_file", "hosts"):
        assert ours[fact] != theirs[fact]
    probe = "fab ssh --stack v100-local gpu-0 -- \"timeout 2 bash -c '</dev/tcp/{}/22'\""
    reached = [product.plain(probe.format(one["hosts"][1]["private_address"])).returncode for one in (theirs, ours)]
    assert reached[0] == 0 and reached[1] != 0
    down = product.run("make down STACK=v100-local DISCARD=1")
    assert f"open billing items with mark {theirs['mark']}: 0" in down.stdout, down.stdout + down.stderr
    assert product.outputs() == before
    assert product.facts("status")["state"] == status["state"]


def test_a_missing_launcher_is_replaced_and_the_run_resumes_from_the_replica(product, up):
    before, run = guests_of(product), product.outputs()["run"]
    best, curves = best_models(product, run), curves_of(product, run)
    assert best and curves
    account = SoftLayer.create_client_from_env(config_file=str(product.home / "emulator" / "softlayer.conf"))
    finished, last = product.facts("status")["step"], more_steps(product)
    account.call("Virtual_Guest", "deleteObject", id=int(before["gpu-0"]))
    done = product.run("make up")
    assert done.returncode == 0, done.stdout + done.stderr
    after, status = guests_of(product), product.facts("status")
    assert after["gpu-0"] != before["gpu-0"]
    assert after["gpu-1"] == before["gpu-1"]
    assert (status["run"], status["state"], status["step"]) == (run, "finished", last)
    events = product.plain(f"fab ssh --stack local gpu-0 -- cat /data/runs/{run}/progress.jsonl").stdout.splitlines()
    steps = [event["step"] for event in map(json.loads, events) if event["event"] in ("brought_back", "restored")]
    assert steps[-2:] == [finished, finished]
    assert to_be_kept(best) <= best_models(
        product, run
    )  # Going on removes what an earlier attempt has left beside these.
    assert set(curves) < set(curves_of(product, run))


def test_down_stops_the_bill_and_proves_it(product: Product, up: str) -> None:
    mark, run = product.outputs()["microcluster"]["mark"], product.outputs()["run"]
    assert labelled(product, "container")
    refused = product.run("make down")
    assert refused.returncode != 0 and "not fetched: " in refused.stderr, "older checkpoints are on the machines only"
    down = product.run("make down FETCH=1")
    assert down.returncode == 0, down.stdout + down.stderr
    assert f"open billing items with mark {mark}: 0" in down.stdout
    assert processes_of(run) == []
    assert labelled(product, "container") == []


def test_reset_leaves_nothing_behind(product: Product, up: str) -> None:
    account = account_of(product)
    assert of_account(account, "network")  # Otherwise the name is not the one in the labels.
    assert product.run(".venv/bin/python -m emulator reset").returncode == 0
    assert [of_account(account, kind) for kind in ("container", "network", "volume")] == [[], [], []]
    loops = subprocess.run(
        ["losetup", "-l", "-n", "-O", "BACK-FILE"], capture_output=True, text=True, check=True
    ).stdout
    assert str(product.home) not in loops
