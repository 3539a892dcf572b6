"""Judging a run: exit code 0 alone proves nothing; and what to do next, for every cause."""

import re

import pytest
import sample_spec

from agent.batch import job as queue_job
from agent.formats.logs import json_lines
from agent.run import document
from agent.supervise import guard, health_rules
from microcluster.analysis.failure_hints import NEXT, next_for, next_step
from microcluster.analysis.run_state import Outcome, judge
from microcluster.display import run_text
from microcluster.jobs.openseq2seq import METRICS

FIELDS = {"max_steps": 30, "metrics": list(map(document.plain, METRICS))}
JOB = sample_spec.values(**FIELDS)
OWN_FIELDS = {**FIELDS, "exit_code_decides": True, "checkpoints": "file_formats"}
OWN = sample_spec.values(**OWN_FIELDS)


def seen(**changes):
    """Return the observation of a run that ended well, but for ``changes``."""
    events = [{"event": "phase", "phase": "training", "t": 0.0}, {"event": "started", "t": 1.0}]
    events += [
        {"event": "evaluation", "t": 1.0},
        {"event": "validation", "loss": 7.0, "t": 1.0},
        {"event": "bleu", "score": 0.1, "t": 1.0},
    ]
    for step in (0, 10, 20):
        events.append({"event": "train", "step": step, "loss": 7.0 - step / 10, "t": 2.0 + step})
        events.append({"event": "time", "step": step, "seconds_per_step": 9.0 if step == 0 else 0.5, "t": 2.0 + step})
    facts = {
        **{"now": 30.0, "exists": True, "alive": False, "phase": "training", "exit_code": 0, "stopped": False},
        **{"failure": {}, "job": JOB, "preflight": {}, "events": events, "silent_s": 1.0},
        **{"checkpoints": [0, 30], "best": [], "activity": {}, "drive_silent": ""},
    }
    return {**facts, **changes}


def failure(cause, sentence, lines=()):
    return {"cause": cause, "sentence": sentence, "lines": list(lines)}


def losses(*values):
    return [{"event": "train", "step": 10 * n, "loss": value, "t": float(n)} for n, value in enumerate(values)]


def test_checkpoints_on_a_silent_drive_are_not_called_missing():
    silent = {"drive_silent": "no answer for 8 s", "checkpoints": []}
    [alarm] = judge(seen(alive=True, exit_code=None, **silent)).alarms
    assert (alarm["cause"], "none of them is listed" in alarm["text"]) == ("drive-lost", True)
    assert judge(seen(**silent)).reason == "the drive with its checkpoints does not answer"


@pytest.mark.parametrize(("ended", "state"), [({"stopped": True}, "stopped"), ({"exit_code": 3}, "failed")])
def test_null_for_missing_values_from_an_agent_is_accepted(ended, state):
    assert judge(seen(failure=None, preflight=None, **ended)).state == state


def test_single_stream_links_of_older_preflights_are_ignored():
    links = [{"streams": 1, "mbps": 400.0}, {"streams": 8, "mbps": 940.0}, {"streams": 8, "mbps": None}]
    assert judge(seen(preflight={"bandwidth": links})).link.probed_mbps == 940.0


def test_a_run_with_its_final_checkpoint_and_all_its_steps_is_finished():
    outcome = judge(seen())
    assert (outcome.state, outcome.step, outcome.reason) == ("finished", 30, None)
    assert (outcome.train_loss, outcome.validation_loss) == (5.0, 7.0)
    assert outcome.evaluations == ({"step": 0, "loss": 7.0, "t": 1.0, "bleu": 0.1},)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"checkpoints": [0, 1]}, "no checkpoint of step 30"),
        ({"events": losses(7.0, "nan", "nan")}, "nan"),
        (
            {"events": losses(7.0), "job": sample_spec.values(**{**FIELDS, "max_steps": 100})},
            "no checkpoint of step 100",
        ),
        ({"events": []}, "last step in the log is 0 of 30"),
        ({"exit_code": 137}, "exit code 137"),
        ({"exit_code": 1, "failure": failure("preparing", "preparing ended with exit code 1")}, "preparing ended"),
        ({"job": OWN, "events": losses(7.0, "nan")}, "nan"),
    ],
)
def test_a_run_that_lacks_any_of_it_has_failed_and_says_why(changes, reason):
    outcome = judge(seen(**changes))
    assert outcome.state == "failed"
    assert outcome.reason
    assert re.search(reason, outcome.reason)


def test_a_loss_that_was_no_number_for_a_while_fails_no_run():
    events = losses(7.0, "nan", "nan", 6.0)
    assert judge(seen(job=OWN, events=events)).state == "finished"


UNKNOWN = sample_spec.values(**{**OWN_FIELDS, "max_steps": None, "checkpoints": "none"})


@pytest.mark.parametrize(
    ("changes", "step"),
    [
        ({"job": OWN}, 20),
        ({"job": OWN, "checkpoints": [7]}, 20),
        ({"job": sample_spec.values(**{**OWN_FIELDS, "max_steps": 100})}, 20),
        ({"job": UNKNOWN, "checkpoints": []}, 20),
        ({"job": UNKNOWN, "checkpoints": [], "events": []}, None),
    ],
)
def test_the_exit_code_of_an_own_program_says_that_it_finished(changes, step):
    outcome = judge(seen(**changes))
    assert (outcome.state, outcome.step, outcome.remark) == ("finished", step, None)
    assert judge(seen(**changes, exit_code=1)).state == "failed"
    assert judge(seen(**changes, stopped=True)).state == "stopped", "some programs end with 0 when they are stopped"


def test_a_finished_own_program_goes_on_when_its_last_step_is_raised():
    events = [*seen()["events"], {"event": "end", "exit_code": 0, "max_steps": 30, "t": 29.0}]
    assert judge(seen(job=OWN, events=events)).state == "finished"
    raised = judge(seen(job=sample_spec.values(**{**OWN_FIELDS, "max_steps": 60}), events=events))
    assert (raised.state, raised.reason) == ("failed", "it ended when step 30 was to be its last, and now 60 is")
    saved = judge(seen(job=OWN, checkpoints=[]))
    said = "none of its files is a checkpoint by the name that the stack file gives"
    assert (saved.state, saved.remark) == ("finished", said)


def test_a_suspected_newest_checkpoint_is_remarked_until_an_attempt_begins_without_one():
    suspected = {"event": "suspected", "step": 30, "text": "ckpt-30/model.npz is torn", "t": 29.0}
    events = [*seen()["events"], suspected]
    said = "the newest checkpoint, of step 30, is suspected: ckpt-30/model.npz is torn"
    assert judge(seen(job=OWN, events=events)).remark == said
    later = [*events, {"event": "phase", "phase": "preparing", "t": 30.0}]
    assert judge(seen(job=OWN, events=later)).remark is None


def test_steps_without_a_loss_keep_the_last_loss_and_no_negative_time():
    events = [*seen()["events"], {"event": "train", "step": 40, "t": 28.0}]
    outcome = judge(seen(job=OWN, events=events, alive=True, exit_code=None))
    assert (outcome.step, outcome.train_loss, outcome.eta_s) == (40, 5.0, 0.0)
    assert judge(seen(job=UNKNOWN, alive=True, exit_code=None)).eta_s is None


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"exists": False}, "absent"),
        ({"alive": True, "phase": "preparing"}, "preparing"),
        ({"alive": True, "phase": "preflight"}, "preparing"),
        ({"alive": True, "exit_code": None}, "running"),
        ({"alive": True, "exit_code": None, "silent_s": 130.0}, "stalled"),
        ({"alive": True, "exit_code": None, "now": 30.0 + 1200}, "running"),
        ({"alive": True, "exit_code": None, "now": 30.0 - 1200}, "running"),
        ({"stopped": True, "exit_code": 143}, "stopped"),
    ],
)
def test_the_states_of_a_run(changes, state):
    assert judge(seen(**changes)).state == state


def test_the_pace_leaves_out_start_up_and_evaluations():
    outcome = judge(seen(alive=True, exit_code=None))
    assert (outcome.seconds_per_step, outcome.eta_s) == (0.5, 5.0)
    events = [*seen()["events"], {"event": "average_seconds_per_step", "value": 9.0, "t": 25.0}]
    events += [{"event": "phase", "phase": "training", "t": 26.0}]
    assert judge(seen(events=events, alive=True, exit_code=None)).seconds_per_step is None, "of the new attempt"


def test_the_pace_of_a_finished_run_leaves_out_its_evaluations():
    average = {"event": "average_seconds_per_step", "value": 0.9, "t": 29.0}
    assert judge(seen(events=[*seen()["events"], average])).seconds_per_step == 0.5
    assert judge(seen(events=[average])).seconds_per_step == 0.9, "a run too short for a clean line has nothing else"


def test_the_prediction_uses_the_measured_network_or_else_the_planned_one():
    planned = judge(seen(job=sample_spec.values(**{**FIELDS, "predicted_s": 1.75})))
    assert (planned.predicted_s, planned.predicted_source) == (1.75, "before renting")
    events = [*seen()["events"], {"event": "prediction", "seconds": 3.3, "source": "at 941 Mb/s", "t": 3.0}]
    assert judge(seen(events=events, job=sample_spec.values(**{**FIELDS, "predicted_s": 1.75}))).predicted_s == 3.3
    assert judge(seen()).predicted_s is None


def alarm(cause, text, t=25.0):
    return {"event": "alarm", "cause": cause, "text": text, "t": t}


def test_a_failure_brings_its_cause_and_the_lines_that_matter():
    said = failure("rank-died", "rank 2 on gpu-1 ended with signal 9", ["last words"])
    outcome = judge(seen(exit_code=137, failure=said))
    assert (outcome.cause, outcome.last_lines) == ("rank-died", ("last words",))
    gone = judge(seen(exit_code=None))
    assert (gone.state, gone.cause) == ("failed", "supervisor-gone")


def test_what_was_put_aside_is_shown_until_the_next_attempt_prepares():
    put_aside = {"event": "passed_over", "text": "model-3.pt is torn", "t": 24.0}
    training = {"event": "phase", "phase": "training", "t": 25.0}
    events = [*seen()["events"], put_aside, training]
    running = {"alive": True, "exit_code": None}
    assert judge(seen(events=events, **running)).put_aside == ("model-3.pt is torn",)
    events.append({"event": "phase", "phase": "preparing", "t": 26.0})
    assert judge(seen(events=events, **running)).put_aside == ()


def test_alarms_are_shown_until_they_are_cleared_or_the_ranks_start_again():
    events = [*seen()["events"], alarm("slow", "0.9 s"), alarm("disk-low", "12 MB")]
    running = {"alive": True, "exit_code": None}
    assert [one["cause"] for one in judge(seen(events=events, **running)).alarms] == ["slow", "disk-low"]
    events.append({"event": "cleared", "cause": "slow", "t": 26.0})
    assert [one["cause"] for one in judge(seen(events=events, **running)).alarms] == ["disk-low"]
    events.append({"event": "phase", "phase": "training", "t": 27.0})
    assert judge(seen(events=events, **running)).alarms == ()


def test_the_last_copy_on_another_machine_is_known():
    copies = [{"event": "copied", "step": step, "to": "gpu-1", "best": [], "lag_s": 1.0, "t": 3.0} for step in (10, 20)]
    assert judge(seen(events=seen()["events"] + copies)).copied["step"] == 20
    assert judge(seen()).copied is None


def test_a_nan_loss_of_an_earlier_attempt_spares_the_later_one():
    good = seen()["events"]
    assert judge(seen(events=[*losses("nan"), *good])).state == "finished"


def test_a_run_that_its_guard_stopped_says_so():
    by_guard = failure("lease-over", "stopped by the guard: lease over")
    outcome = judge(seen(stopped=True, exit_code=1, failure=by_guard))
    assert (outcome.state, outcome.cause, outcome.reason) == ("stopped", "lease-over", by_guard["sentence"])


@pytest.mark.parametrize(
    ("activity", "read"),
    [
        ({"idle_s": 60.0, "armed": True, "age_s": 5.0}, (60.0, True)),
        ({"idle_s": None, "armed": True, "age_s": 5.0}, (None, True)),
        ({"idle_s": 60.0, "armed": True, "age_s": 500.0}, (None, False)),
        ({}, (None, False)),
    ],
)
def test_how_long_a_run_is_idle_is_known_only_by_new_samples(activity, read):
    outcome = judge(seen(activity=activity))
    assert (outcome.idle_s, outcome.armed) == read


@pytest.mark.parametrize(("phase", "idle_s"), [("preparing", 0.0), ("queued", 0.0), ("training", None)])
def test_data_preparation_and_waiting_in_a_queue_are_not_idle(phase, idle_s):
    assert judge(seen(phase=phase, alive=True, exit_code=None)).idle_s == idle_s


V100 = sample_spec.values(
    **{**FIELDS, "max_steps": 50_000, "predicted_s": 1.75, "compute_s": 0.5927, "wire_bytes": 365_285_376}
)


def paced(steps, first=0):
    """Return the observation of a living run that has logged so many steps of 2.3 s from ``first`` on."""
    events = [{"event": "phase", "phase": "training", "t": 0.0}]
    events += [{"event": "prediction", "seconds": 1.75, "source": "at 1882 Mb/s", "mbps": 1882, "t": 0.5}]
    for step in range(first, first + steps + 1, 10):
        events.append({"event": "train", "step": step, "loss": 7.0, "t": float(step)})
        events.append({"event": "time", "step": step, "seconds_per_step": 2.3, "t": float(step)})
    return seen(alive=True, exit_code=None, events=events, job=V100)


@pytest.mark.parametrize(("steps", "first", "settled"), [(40, 0, False), (50, 0, True), (40, 1000, False)])
def test_a_pace_is_compared_by_cause_after_fifty_steps_of_this_attempt(steps, first, settled):
    outcome = judge(paced(steps, first))
    assert outcome.settled == settled == bool(outcome.causes)
    untimed = judge(paced(steps, first) | {"job": sample_spec.values(**{**FIELDS, "max_steps": 50_000})})
    assert not untimed.causes, "of a program that was never timed"


OF_ALARMS = (
    *health_rules.ENDING,
    *(health_rules.TOLD_TO_END, health_rules.DISK_LOW, health_rules.GPUS_AT_REST, health_rules.HUNG),
    *(health_rules.GPUS_UNREAD, json_lines.UNREAD, health_rules.SLOW, health_rules.NOT_COPIED, health_rules.NOT_SAVED),
)
OF_SUPERVISORS = (
    *("supervisor-gone", "supervisor-silent", "supervisor-failed", "preparing", "training", "incomplete"),
    *(
        "not-brought-back",
        health_rules.PREPARING_STALLED,
        "placing",
        "environment",
        "setup",
        "shared-folder",
        "preflight",
    ),
)
OF_QUEUES = (queue_job.QUEUE, queue_job.WALLTIME)


def test_exactly_the_causes_that_the_launcher_names_have_a_next_step():
    assert set(NEXT) == {*OF_ALARMS, *OF_SUPERVISORS, *OF_QUEUES, *guard.CAUSES}
    assert next_for("not-copied", "p100").endswith("fab ssh gpu-1 --stack p100."), "it ends as a sentence"


@pytest.mark.parametrize("cause", [*NEXT, "unknown"])
def test_the_next_step_names_a_command_with_the_stack(cause):
    said = next_step(Outcome("failed", cause=cause), "p100")
    assert re.search(r"(make \w+ STACK=p100|fab \w+ (\S+ )?--(stack|follow --stack) p100)", said)


def test_a_gpu_out_of_memory_has_its_own_next_step_without_signals():
    said = next_step(Outcome("failed", cause="gpu-memory"), "p100")
    assert "smaller batch" in said and "signal" not in said
    assert len({NEXT[cause] for cause in health_rules.SAID}) == len(health_rules.SAID)


@pytest.mark.parametrize(
    "odd", ["http://wandb.ai/a", "https://a@b.example/", "https://x/\x1b[2J", 'https://x/"><b>', 7]
)
def test_a_page_that_is_no_plain_https_address_is_not_shown(odd):
    def shown(text):
        return judge(seen(events=[*seen()["events"], {"event": "wandb", "text": text}])).wandb_url

    assert shown(odd) is None
    assert shown("https://wandb.ai/me/my-project/runs/a_b-c?nw=1") == "https://wandb.ai/me/my-project/runs/a_b-c?nw=1"


def test_a_long_epoch_shows_its_batch_until_it_is_over():
    def read_after(*events):
        first = [{"event": "phase", "phase": "training", "t": 0.0}, {"event": "train", "step": 0, "t": 1.0}]
        return judge(
            seen(
                alive=True,
                exit_code=None,
                job=sample_spec.values(**{**OWN_FIELDS, "unit": "epoch"}),
                events=[*first, *events],
            )
        )

    under_way = read_after({"event": "batch", "step": 0, "value": 40})
    assert run_text.headline(under_way).startswith("running, epoch 0 of 30, batch 40 of the next")
    over = read_after({"event": "batch", "step": 0, "value": 40}, {"event": "train", "step": 1, "t": 9.0})
    assert over.batch is None
