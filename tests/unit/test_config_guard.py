import math
import re
from decimal import Decimal
from typing import Any

import pytest
from test_config import V100

from microcluster.config import stack as config
from microcluster.guard.installed import say_limits
from microcluster.planning.prediction import ALONE
from microcluster.planning.run_cost import GUARD_RESERVE_H, smallest_budget

QUEUE = {
    "microcluster:cluster": {
        **{"account": "queue", "queue": "gpu", "walltime": "08:00:00", "folder": "/home/me/runs", "processors": 4}
    },
    "microcluster:job": {"kind": "torchrun", "source": "examples/torchrun", "script": "train.py"},
    "queue:sshConfig": "~/ssh",
}


def guarded(guard: Any, values: Any = V100) -> Any:
    return config.parse("dev", {**values, "microcluster:guard": guard}).guard


def problems(guard: Any, values: Any = V100) -> list[str]:
    with pytest.raises(config.ConfigError) as error:
        guarded(guard, values)
    return [line.strip() for line in str(error.value).splitlines()[1:]]


def test_without_the_section_there_is_no_guard_and_with_it_defaults() -> None:
    assert config.parse("dev", V100).guard is None
    with pytest.raises(config.ConfigError, match="did you mean 'guard'"):
        config.parse("dev", {**V100, "microcluster:gard": {"lease": 1}})
    guard = guarded({"lease": 30})
    assert (guard.when_done, guard.keep_failed) == ("cancel", 30)


@pytest.mark.parametrize(("key", "value"), [("budget", 250), ("idle", 45), ("whenDone", "keep"), ("keepFailed", 0)])
def test_each_key_of_the_guard_is_allowed_alone(key: str, value: Any) -> None:
    assert guarded({key: value}).model_dump(by_alias=True)[key] == value


@pytest.mark.parametrize(
    ("guard", "path"),
    [
        ({"budget": 0}, "guard/budget: 0 should be greater than 0"),
        (
            {"budget": 116},
            "guard/budget: $116 may end before an hour of training is over: preparation, data and that hour",
        ),
        ({"budget": "250"}, "guard/budget: '250' should be a valid number"),
        ({"lease": -1}, "guard/lease: -1 should be greater than 0"),
        ({"lease": float("nan")}, "guard/lease: nan should be a finite number"),
        ({"idle": True}, "guard/idle: True should be a valid number"),
        ({"whenDone": "stop"}, "guard/whenDone: 'stop' should be 'cancel' or 'keep'"),
        ({"keepFailed": -5}, "guard/keepFailed: -5 should be greater than or equal to 0"),
        ({"budgets": 5}, "guard/budgets: unknown key; did you mean 'budget'?"),
        ({}, "guard: has no keys and would guard nothing; for example lease: 30"),
        (None, "guard: has no keys and would guard nothing; for example lease: 30"),
        (30, "guard: 30 should be a section with keys"),
    ],
)
def test_a_guard_that_is_wrong_is_refused_with_its_path(guard: Any, path: str) -> None:
    (found,) = problems(guard)
    assert found.startswith(path)


def test_the_smallest_budget_pays_preparation_data_an_hours_training_and_the_reserve() -> None:
    (found,) = problems({"budget": 116})
    assert found.endswith("take up to 7.75 h at $13.00, and the guard keeps a started hour in reserve; at least 117.00")
    assert guarded({"budget": 117}).budget == 117
    finished = {**V100, "microcluster:job": {**V100["microcluster:job"], "data": "/data/wmt16.tar"}}
    assert (
        "take up to 1.75 h" in problems({"budget": 38}, finished)[0] and guarded({"budget": 39}, finished).budget == 39
    )


def test_a_queue_is_limited_in_node_hours_and_not_in_dollars() -> None:
    assert guarded({"lease": 30}, QUEUE).lease == 30
    (found,) = problems({"budget": 30}, QUEUE)
    assert found.startswith("guard/budget: nodes of the queue account are not paid in dollars; limit node hours")


def test_before_the_order_the_guard_says_when_it_ends_at_the_latest(capsys) -> None:
    limits = {"budget": 250, "lease": 30, "idle": 45}
    say_limits(config.parse("dev", {**V100, "microcluster:guard": limits}))
    said = capsys.readouterr().out
    assert "when the job is done, 30 min after the job has failed, after 45 min in which nothing happens" in said
    assert "after 30 h since the first machine, after the 18 h that $250 pays, whichever comes first" in said


def test_a_real_account_without_a_guard_warns_with_a_weekends_price(capsys) -> None:
    say_limits(config.parse("v100", V100))
    assert "No guard: forgotten from Friday evening to Monday morning this costs $819." in capsys.readouterr().out
    say_limits(config.read_file("local"))
    assert not capsys.readouterr().out


SOLD = [name for name in config.stacks() if not name.endswith("local") and config.read_file(name).cluster.prices]
"""Stacks that cost money."""


def least_budget(hours: float, cluster: Any) -> int:
    """Return the whole dollars that let a guard hold so many hours, its quarter of an hour among them."""
    prices = cluster.prices
    return math.ceil(smallest_budget(prices.per_hour, hours - GUARD_RESERVE_H, by_month=prices.by_month))


@pytest.mark.parametrize("name", SOLD)
def test_every_stack_that_costs_money_has_a_budget_for_its_lease(name: str) -> None:
    stack = config.read_file(name)
    assert stack.guard.budget == least_budget(stack.guard.lease, stack.cluster)
    assert (stack.guard.when_done, stack.guard.keep_failed) == ("cancel", 30)


@pytest.mark.parametrize(("name", "link"), [("p100", "2 Gb/s"), ("v100", "2 Gb/s"), ("v100-night", ALONE)])
def test_the_lease_is_the_upper_end_of_the_forecast(name: str, link: str) -> None:
    stack = config.read_file(name)
    (usual, step_s), *_ = stack.forecast.prediction.links.items()
    most = stack.forecast.hours(step_s)
    assert usual == link and most.high > stack.forecast.preparation.high
    assert stack.guard.lease == math.ceil(most.high + GUARD_RESERVE_H)


def test_the_night_says_what_it_takes_and_costs_at_worst() -> None:
    stack, text = config.read_file("v100-night"), config.path_of("v100-night").read_text()
    assert (stack.cluster.nodes, stack.cluster.hardware.gpus, stack.cluster.hardware.gpu) == (1, 2, "V100")
    price = stack.cluster.prices.per_hour
    hours = stack.guard.lease + 1
    assert f"the budget, ${stack.guard.budget:g}: {hours:g} started hours at ${price:.2f}." in text
    assert f"it is ${24 * price:.0f} a day" in text and Decimal(stack.guard.budget) == price * int(hours)
    low, high = re.search(r"# ([\d.]+) to ([\d.]+) h, up to 6 of them for the data", text).groups()
    assert stack.forecast.hours().text("{:.1f}") == f"{low} to {high}"
    own = config.read_values(config.path_of("v100-night"))
    own["microcluster:job"] |= {"data": "/data/wmt16.tar", "maxSteps": 50000}
    assert config.parse("night", own).forecast.hours().high < stack.guard.lease - GUARD_RESERVE_H
