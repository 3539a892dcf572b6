"""A run in words: headlines, the report's rows, and the contract of `fab status --json`."""

import dataclasses
import json

from command_samples import CLUSTER, COST, RUNNING

from microcluster.analysis.run_state import Outcome
from microcluster.display import run_text
from microcluster.jobs.cluster_facts import Prediction
from microcluster.planning.run_cost import Cost
from microcluster.run.status import status_facts, status_text


def report(*run) -> str:
    return "\n".join(map(" ".join, run_text.report_rows(*run)))


def test_the_facts_of_status_are_the_contract():
    facts = json.loads(json.dumps(status_facts("local", CLUSTER, RUNNING, COST)))
    unknown = ("word", "predicted_s", "predicted_source", "idle_s", "reason", "checkpoint", "cause", "phase", "batch")
    losses = {"train_loss": 5.5, "validation_loss": 6.5, "seconds_per_step": 0.5, "eta_s": 10.0}
    told = {"stack": "local", "run": "abcdef012345", "state": "running", "step": 10, "max_steps": 30}
    cost = {"per_hour": "8.99", "so_far": "1.50", "currency": "USD", "next_hour": None, "emulated": False}
    usual = {"wandb_url": None, "causes": {}, "armed": False, "alarms": [], "nodes": [], "cost": cost}
    assert facts | {"nodes": [], "phase": None} == {**dict.fromkeys(unknown), **told, **losses, **usual}
    assert facts["nodes"][0]["name"] == "gpu-0"
    assert status_facts("local", None, Outcome("absent"), Cost(None, None))["state"] == "absent"
    line = "running, step 10 of 30, loss 5.5, validation loss 6.5, 0.500 s/step, 10 s left"
    assert run_text.headline(RUNNING) == line


def test_prediction_stands_beside_actual_pace_and_slow_steps_beside_the_next_command():
    slow = {"cause": "slow", "text": "2.500 s per step instead of 1.750 predicted"}
    predicted = {"predicted_s": 1.75, "predicted_source": "at 1882 Mb/s"}
    seen = dataclasses.replace(RUNNING, seconds_per_step=2.5, alarms=(slow,), **predicted)
    assert "2.500 s/step (1.750 predicted)" in run_text.headline(seen)
    assert "fab report --stack local" in status_text(CLUSTER, seen, COST)
    assert "1.750 s/step at 1882 Mb/s; the run is 43% slower" in report(CLUSTER, seen, COST)


def test_alarms_of_an_emulated_account_say_that_nobody_pays_the_dollars():
    slow = {"cause": "slow", "text": "2.5 s per step instead of 1.75: $1.20 of every hour's $4.00 buy no steps"}
    assert run_text.alarm_text(slow, COST) == slow["text"]
    emulated = dataclasses.replace(COST, emulated=True)
    assert run_text.alarm_text(slow, emulated).endswith("buy no steps (emulated, nobody pays)")
    assert run_text.alarm_text({"text": "gpu-0 is nearly full"}, emulated) == "gpu-0 is nearly full"


def test_the_report_of_a_planned_run_shows_what_was_expected_before_renting():
    job = CLUSTER.job.model_copy(update={"max_steps": 50_000, "model": "transformer-base", "dataset": "wmt16-en-de"})
    expected = {"prediction": Prediction(1.695, 0.5927, 365_285_376), "per_hour": 13.0, "port_speed_mbps": 1000}
    expected["hosts"] = CLUSTER.hosts * 2
    planned = dataclasses.replace(CLUSTER, job=job, **expected)
    takes = "11.2 to 592.6 h and $156 to $7,709 for 50000 steps, with preparation"
    assert takes in report(planned, RUNNING, COST)
    assert "planned" not in report(CLUSTER, RUNNING, COST)


def test_the_report_names_what_ran_where_how_well_and_for_how_much():
    done = dataclasses.replace(RUNNING, state="finished", checkpoints=(0, 30), best=("val_loss=6.5000-step-30",))
    text = report(CLUSTER, done, COST)
    shown = ("finished", "gpu-0 (10.112.7.2)", "2x P100", "8.0 at first, 6.5 at last", "0, 30")
    for part in (*shown, "$1.50 so far, $8.99/hour"):
        assert part in text
    many = dataclasses.replace(RUNNING, checkpoints=tuple(range(20, 3740, 20)))
    assert dict(run_text.report_rows(CLUSTER, many, COST))["checkpoints"] == "186, from step 20 to 3720"


def test_replicas_on_another_machine_and_set_aside_checkpoints_are_shown():
    copied = {"event": "copied", "to": "gpu-1", "step": 20, "best": ["val_loss=6.5000-step-11"], "lag_s": 7.2, "t": 0.0}
    line = "copied to gpu-1: step 20 and 1 best model, 7 s after it was written"
    assert line in status_text(CLUSTER, dataclasses.replace(RUNNING, copied=copied), COST)
    assert "copied" not in status_text(CLUSTER, RUNNING, COST)
    text = "model-3.pt is torn: File is not a zip file; it lies in /data/runs/x/torn"
    assert f"  put aside: {text}" in status_text(CLUSTER, dataclasses.replace(RUNNING, put_aside=(text,)), COST)


def test_a_run_without_last_step_loss_or_checkpoints_shows_the_rest():
    bare = dataclasses.replace(RUNNING, max_steps=None, train_loss=None, validation_loss=None, eta_s=None, saves=False)
    assert run_text.headline(bare) == "running, step 10, 0.500 s/step"
    rows = dict(run_text.report_rows(CLUSTER, dataclasses.replace(bare, checkpoints=(), step=None), COST))
    assert "steps" not in rows and "checkpoints" not in rows


def test_status_and_report_name_checkpoint_problems_with_the_next_command():
    finished = dataclasses.replace(RUNNING, state="finished", remark="nothing was saved")
    said = "nothing was saved. Fetch all that it has saved: fab fetch --everything --stack local"
    assert dict(run_text.report_rows(CLUSTER, finished, COST))["note"] == said
    assert f"  note: {said}" in status_text(CLUSTER, finished, COST)


CAUSES = {"computing": (0.593, 0.593), "input and all else": (0.0, 0.55)}
PACE = {"settled": True, "max_steps": 50_000, "seconds_per_step": 2.3, "predicted_s": 1.75, "eta_s": 36_000.0}
SETTLED = dataclasses.replace(RUNNING, causes=CAUSES, **PACE)


def test_a_pace_far_behind_the_prediction_warns_with_cause_and_dollars() -> None:
    assert run_text.outlook(SETTLED, COST) == (
        "warning: a step takes 2.300 s, 31% slower than the 1.750 s predicted (computing 0.593 s of 0.593, input and all else "
        "0.550 s of 0.000); what is left takes 10 h and $89.90, of which 2 h 23 min and $21.50 more than predicted"
    )


def test_a_usual_or_unpredicted_pace_does_not_warn_and_shows_remaining_cost() -> None:
    near = dataclasses.replace(SETTLED, seconds_per_step=1.8, causes={})
    said = "pace: a step takes 1.800 s, 3% slower than the 1.750 s predicted; what is left takes 10 h and $89.90"
    assert run_text.outlook(near, COST) == said
    own = dataclasses.replace(near, predicted_s=None)
    assert run_text.outlook(own, COST) == "pace: a step takes 1.800 s; what is left takes 10 h and $89.90"
    assert run_text.outlook(dataclasses.replace(SETTLED, settled=False), COST) is None, "before enough steps"


def test_a_run_that_its_guard_stopped_says_so_with_the_next_command():
    by_guard = Outcome("stopped", cause="lease-over", reason="stopped by the guard: lease over")
    said, following = run_text.trouble(by_guard, "p100")
    assert said == "The job was stopped by the guard: lease over (lease-over)."
    assert "fab extend --hours 6 --stack p100, then fab resume --stack p100" in following
    assert run_text.trouble(Outcome("stopped"), "p100")[0] == "The job was stopped."
