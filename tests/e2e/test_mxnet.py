"""MXNet's parameter server on two emulated machines: it trains, loses a server, goes on, is stopped everywhere and reported."""

import json
import re
from typing import Any

import pytest
from one_cluster import NODES, STACK, UP_LIMIT_S, Renter
from traces import processes_of

from microcluster.core.polling import wait_until
from tests.product import ASK_LIMIT_S, SHARED

pytestmark = [pytest.mark.containers, pytest.mark.timeout(1800)]

CONFIG = f"""config:
  softlayer:configFile: $MICROCLUSTER_HOME/emulator/softlayer.conf
  microcluster:cluster:
    datacenter: lon06
    flavor: AC1_8X60X100
    adminCidrs: [{SHARED.operator}/32]
  microcluster:container:
    image: ngc.microcluster.internal:5000/microcluster/mxnet:local
  microcluster:job:
    kind: mxnet
    source: examples/digits_mxnet
    script: train.py
    arguments: >-
      --network mlp --image-shape 1,8,8 --num-classes 10 --num-examples 1497 --batch-size 32 --disp-batches 10 --pace 0.05
      --data-train /opt/microcluster/digits/train.rec --data-val /opt/microcluster/digits/val.rec --loss ce
      --kv-store dist_sync --num-epochs {{maxSteps}} --model-prefix {{logdir}}/model
    resume: --load-epoch {{step}}
    stopGraceS: 60
    maxSteps: 10000
"""
TRAINS_LIMIT_S = 900
KILL_SERVER = (
    "grep -slz ^DMLC_ROLE=server$ /proc/[0-9]*/environ | sed s/environ/cmdline/ | xargs grep -slz train.py "
    "| xargs grep -sLz ^launch.rank_wrapper$ | cut -d/ -f3 | xargs kill -9"
)
"""The server of a machine, and not the wrapper that waits for its end."""
ROLES = "grep -shz ^DMLC_ROLE= /proc/[0-9]*/environ | tr '\\0' '\\n' | sort -u"


def trains(renter: Renter, epochs: int) -> bool:
    now = renter.status(STACK)
    assert now.get("state") in (None, "absent", "preparing", "running"), now
    return int(now.get("step") or 0) >= epochs


@pytest.fixture(scope="module")
def broken(renter: Renter) -> dict[str, Any]:
    """The run after the server of the second machine was killed."""
    renter.write(CONFIG)
    with renter.begun(f"make up STACK={STACK}") as up:
        renter.wait_while(up, "three epochs", lambda: renter.shown_step() >= 3)
        assert renter.on(NODES[0], ROLES).split() == [f"DMLC_ROLE={role}" for role in ("scheduler", "server", "worker")]
        renter.on(NODES[1], KILL_SERVER)
        assert up.wait(UP_LIMIT_S) != 0
    return renter.status(STACK)


@pytest.fixture(scope="module")
def stopped(renter: Renter, broken: dict[str, Any]) -> dict[str, Any]:
    """The run after it went on for some epochs and was stopped."""
    answer = renter.plain(f"fab resume --stack {STACK}", 300)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    epochs = broken["step"] + 3
    wait_until(f"epoch {epochs}", lambda: trains(renter, epochs), timeout_s=TRAINS_LIMIT_S, every_s=5)
    answer = renter.plain(f"fab stop --stack {STACK}", 300)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return renter.status(STACK)


def test_a_dead_server_ends_the_run_naming_role_and_node(renter, broken):
    assert (broken["state"], broken["cause"]) == ("failed", "rank-died")
    assert broken["reason"] == "server 1 on gpu-1 ended with signal 9"
    assert processes_of(broken["run"]) == []


def test_the_run_goes_on_from_its_newest_epoch(renter: Renter, stopped: dict[str, Any]) -> None:
    found = [event for event in renter.events(stopped["run"]) if event["event"] in ("resuming", "restored")]
    assert [event["event"] for event in found] == ["resuming", "restored"]
    assert found[0]["step"] == found[1]["step"] >= 3


def test_all_workers_end_after_one_epoch_with_its_checkpoint_and_leave_nothing(renter, stopped):
    assert stopped["state"] == "stopped"
    assert processes_of(stopped["run"]) == []
    log = renter.on(NODES[0], f"cat /data/runs/{stopped['run']}/job.log")
    assert log.count("stopped at the end of an epoch") == 2
    saved = re.findall(r"-(\d{4})\.params", renter.on(NODES[0], f"ls /data/runs/{stopped['run']}/in_container/logdir"))
    assert int(max(saved)) == stopped["step"]


def test_the_preflight_summed_over_servers_with_the_same_data_on_every_node(renter, stopped):
    checks = renter.checks()
    assert [checks[check] for check in ("MXNet", "train.rec", "ranks", "allreduce", "meeting port")] == ["ok"] * 5


def test_the_report_draws_accuracies_that_rise_and_the_speed_of_all_workers(renter, stopped):
    report = json.loads(renter.plain(f"fab report --stack {STACK} --json", ASK_LIMIT_S).stdout)
    for curve in ("accuracy", "validation_accuracy"):
        values = [value for _, value in report["curves"][curve]]
        assert values[-1] > max(0.8, values[0])
    assert report["metrics"]["samples_per_second"] > 0
    losses = [loss for _, loss in report["curves"]["train"]]
    assert losses[-1] < losses[0]
