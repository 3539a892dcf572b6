"""What watching shows: a lost connection, alarms, the end, and few lines where nobody looks on."""

import dataclasses
import json
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace

import pytest
import sample_spec
from command_samples import CLUSTER, COST, RUNNING
from fake_machine import FakeMachine
from test_analysis_run_state import seen

from microcluster.commands import logs
from microcluster.display import run_text
from microcluster.guard import watching
from microcluster.guard.decision import End, Limits, Verdict
from microcluster.guard.watching import LimitReached
from microcluster.planning.run_cost import Cost
from microcluster.remote.errors import UnreachableError
from microcluster.run import watch
from microcluster.run.status import status_text

ROW = {"check": "ssh", "where": "every pair", "found": "2 of 2 answer", "wanted": "an answer", "verdict": "ok"}


def observation(*, alive: bool, step: int, checkpoints: tuple[int, ...] = (0,)) -> str:
    events = [{"event": "phase", "phase": "training", "t": 0.0}]
    events += [{"event": "train", "step": s, "loss": 3.5, "t": float(s)} for s in range(0, step + 1, 10)]
    job = sample_spec.values(max_steps=30)
    more = {"exit_code": None if alive else 0, "job": job, "preflight": {"ranks": [], "rows": [ROW]}}
    return json.dumps(seen(events=events, alive=alive, checkpoints=list(checkpoints), **more))


class Launcher(FakeMachine):
    """Answers each look with the next of its observations."""

    def __init__(self, *observations: str | BaseException) -> None:
        super().__init__()
        self.observations = list(observations)

    def _sh(self, words, stdin):
        answer = self.observations.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def follow(*looks: str | BaseException, cost=lambda stack, say: COST, **more: object):
    """Watch as many looks, with no time between them."""
    return watch.follow(CLUSTER, watch.PlainScreen(), Launcher(*looks), cost, lambda seconds: None, **more)


def test_watch_follows_to_the_end_over_a_lost_connection_and_shows_ranks_end_and_cost_once(capsys):
    outcome = follow(
        observation(alive=True, step=10),
        *[UnreachableError("connecting to gpu-0: lost.")] * 2,  # The first look tries a new connection by itself.
        observation(alive=True, step=20),
        observation(alive=False, step=29, checkpoints=(0, 30)),
    )
    assert outcome.state == "finished"
    assert watch.ended(outcome, "local") == 0
    shown = capsys.readouterr().out
    assert [shown.count(part) for part in ("preflight:", "finished, step 30", "$1.50 so far")] == [1, 1, 1]
    assert "Trying again; the job keeps running" in shown
    assert "step 10 of 30" in shown


def test_an_account_that_does_not_answer_is_reported_once(capsys, monkeypatch):
    monkeypatch.setattr(watch, "COST_EVERY_S", 0.0)

    def unknown(cluster, say):
        say("Reading the bill: a bad day.")
        return Cost(None, None)

    looks = [observation(alive=True, step=step) for step in (0, 10, 20)]
    follow(*looks, observation(alive=False, step=29, checkpoints=(0, 30)), cost=unknown)
    assert capsys.readouterr().out.count("a bad day") == 1


def test_watch_shows_an_alarm_once_with_what_to_do(capsys):
    looks = [json.loads(observation(alive=True, step=10)) for _ in range(3)]
    for look in looks:
        look["events"].append({"event": "alarm", "cause": "disk-low", "text": "gpu-0 is nearly full", "t": 11.0})
    texts = [*map(json.dumps, looks), observation(alive=False, step=29, checkpoints=(0, 30))]
    follow(*texts)
    shown = capsys.readouterr().out
    assert shown.count("alarm: gpu-0 is nearly full. Make room: fab ssh gpu-0 --stack local") == 1


def test_watch_says_once_how_the_settled_pace_compares_and_what_the_rest_costs(capsys):
    looks = [json.loads(observation(alive=True, step=step)) for step in (40, 50, 60)]
    for look in looks:
        look["job"]["expected"]["max_steps"] = 3650
        look["events"] += [{"event": "time", "step": step, "seconds_per_step": 1.0, "t": 1.0} for step in (0, 10, 20)]
    texts = [*map(json.dumps, looks), observation(alive=False, step=29, checkpoints=(0, 30))]
    follow(*texts)
    shown = capsys.readouterr().out
    assert shown.count("pace: a step takes 1.000 s; what is left takes 1 h and $8.99") == shown.count("pace: ") == 1


def test_ctrl_c_ends_the_watching_and_says_that_the_job_goes_on_and_costs(monkeypatch, capsys):
    monkeypatch.setattr(watch, "cluster_of", lambda stack: CLUSTER)
    monkeypatch.setattr(watch, "launcher_of", lambda cluster: Launcher(KeyboardInterrupt()))
    assert watch.watch_run("local", lambda outcome: None) == 130
    said = capsys.readouterr().out
    assert "The job keeps running, and the machines keep costing money" in said
    assert "fab watch --stack local" in said and "fab stop --stack local" in said


DIED = {"cause": "rank-died", "reason": "rank 2 on gpu-1 ended", "last_lines": ("[1,2]<stderr>:its last words",)}
FAILED = dataclasses.replace(RUNNING, state="failed", **DIED)


def test_of_a_failed_run_the_cause_comes_first_then_the_lines_that_matter_then_the_next_command():
    said = run_text.trouble(FAILED, "local")
    assert said[0] == "The job failed: rank 2 on gpu-1 ended (rank-died)."
    assert said[1:3] == ["Last lines of the log:", "  rank 2: its last words"]
    assert said[3].startswith("Next: ") and "fab resume --stack local" in said[3]


def test_status_watch_and_logs_say_the_same_of_a_failed_run(monkeypatch, capsys, tmp_path):
    trouble = run_text.trouble(FAILED, "local")
    assert watch.ended(FAILED, "local") == 1
    assert capsys.readouterr().err.splitlines() == trouble
    assert "\n  ".join(trouble) in status_text(CLUSTER, FAILED, COST)
    monkeypatch.setattr(logs, "cluster_of", lambda stack: CLUSTER)
    monkeypatch.setattr(logs, "launcher_of", lambda cluster: FakeMachine())
    monkeypatch.setattr(logs.LogEnd, "read", lambda end: b"a line\n")
    monkeypatch.setattr(logs.remote_job, "observe", lambda launcher, cluster: FAILED)
    logs.logs.code(stack="local")
    said = capsys.readouterr()
    assert (said.out, said.err.splitlines()[1:]) == ("a line\n", trouble)


def test_a_line_that_has_not_changed_is_printed_every_half_minute_with_how_long_it_has_not(capsys):
    now = [1000.0]
    screen = watch.PlainScreen(clock=lambda: now[0])
    for second in range(0, 80, 2):
        now[0] = 1000.0 + second
        screen.show(dataclasses.replace(RUNNING, step=min(second, 14)), COST)
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[2] for line in lines] == ["0", "10", "14", "14"]
    assert [line.partition(" (no change")[2] for line in lines] == ["", "", "", " for 36 s)"]


@pytest.mark.parametrize("state", ["running", "finished"])
def test_a_limit_that_is_reached_ends_the_watching_also_when_the_run_has_just_ended(state):
    def hold(outcome):
        if outcome and outcome.state == state:
            raise LimitReached

    with pytest.raises(LimitReached):
        follow(observation(alive=True, step=10), observation(alive=False, step=29, checkpoints=(0, 30)), hold=hold)


def test_a_run_that_the_machines_have_stopped_for_a_limit_is_looked_at_without_waiting_for_the_next_minute(monkeypatch):
    due = End("lease", datetime.now(UTC), datetime.now(UTC))
    verdict = Verdict("end", "", reason="lease", fetch_by=due.last, due=due)
    looking = SimpleNamespace(watch=lambda: SimpleNamespace(verdict=verdict))
    monkeypatch.setattr(watching, "limits_of", lambda stack: Limits(lease_h=Decimal(1)))
    monkeypatch.setattr(watching, "guard_of", lambda *args: looking)
    hold = watching.limit_watch("local")
    hold(dataclasses.replace(RUNNING, state="stopped", cause="stopped by a person"))
    with pytest.raises(LimitReached):
        hold(dataclasses.replace(RUNNING, state="stopped", cause="lease-over"))
