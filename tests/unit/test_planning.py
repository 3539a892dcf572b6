"""Time and price of a run, and the better buy of machines, against published and recorded runs."""

import dataclasses
import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent import step_time_model
from microcluster.accounts.shared.receipt import Charge
from microcluster.accounts.shared.rental import Rental
from microcluster.accounts.softlayer import catalog
from microcluster.core.catalog.billing_rules import Rate
from microcluster.guard.decision import RESERVE, Limits, first_end
from microcluster.planning.alternatives import (
    CHEAPEST,
    FASTEST,
    IN_TIME,
    Alternative,
    Offer,
    Pace,
    choose,
    fewer_machines,
    is_surely_better,
    worth_above_mbps,
)
from microcluster.planning.checkpoint_interval import SLOWER, interval
from microcluster.planning.prediction import BAND, TrainingSetup, links_by_kind, predict
from microcluster.planning.recorded_runs import link_kinds
from microcluster.planning.run_cost import GUARD_RESERVE_H, Bill, Span, budget_hours, smallest_budget

V100 = TrainingSetup("V100", 2, 2, 1000, "transformer-base", "mixed", 256, 4 * 60_880_896)
P100 = TrainingSetup("P100", 2, 2, 1000, "transformer-base", "fp32", 128, 4 * 60_880_896)
HOURLY = Rate(Decimal(1))
FLAVOR = {"V100": "AC2_16X120X100", "P100": "AC1_16X120X100"}


def seconds(setting: TrainingSetup, line_mbps: float | None = None) -> float:
    """Seconds of a step by the law on a line of so many Mb/s; without a speed, the usual seconds of the prediction."""
    found = predict(setting)
    assert found
    if line_mbps is None:
        return found.seconds
    return step_time_model.step_s(found.compute_s, found.wire_bytes, step_time_model.bytes_per_s(line_mbps))


def per_hour(setting: TrainingSetup) -> Decimal:
    price = catalog.price_per_hour(FLAVOR[setting.gpu], (2000,), 1000)
    assert price
    return setting.nodes * price


@pytest.mark.parametrize(
    ("mbps", "ranks", "parameter_bytes", "measured_s"),
    [
        (100, 4, 243.5e6, 31.9),
        (1000, 4, 243.5e6, 3.15),
        (2000, 4, 243.5e6, 1.645),
        (1000, 4, 121.8e6, 1.60),
        (1000, 2, 243.5e6, 2.08),
        (2000, 2, 243.5e6, 1.12),
    ],
)
def test_the_law_of_the_ring_holds_on_shaped_links(mbps, ranks, parameter_bytes, measured_s) -> None:
    volume = step_time_model.ring_bytes(parameter_bytes, ranks, 2)
    assert volume / step_time_model.bytes_per_s(mbps) == pytest.approx(measured_s, rel=BAND)


@pytest.mark.parametrize(
    ("setting", "steps", "link", "hours", "dollars"),
    [
        # P100 with 128 pairs a GPU, in twice the steps: what was published for it had that batch.
        (P100, 100_000, 2000, 47.9, 431),
        (V100, 50_000, 2000, 24.3, 316),
        (P100, 100_000, 1000, 91.0, 818),
        (V100, 50_000, 1000, 45.9, 597),
        (V100, 50_000, 100, 434, 5644),
        (P100, 100_000, 10_000, 14.4, 129),
        (V100, 50_000, 10_000, 8.2, 107),
        # One guest that sees as many pairs needs twice the steps: the same hours as with two micro-steps for each update.
        (dataclasses.replace(P100, nodes=1), 200_000, None, 28.7, 129),
        (dataclasses.replace(V100, nodes=1), 100_000, None, 16.5, 107),
    ],
)
def test_the_planners_table_is_reproduced(setting, steps, link, hours, dollars) -> None:
    bill = Bill(steps * seconds(setting, link), per_hour(setting))
    assert bill.hours == pytest.approx(hours, abs=0.06 if hours < 100 else 0.6)
    assert bill.dollars == pytest.approx(dollars, rel=0.005)


def test_a_smaller_batch_computes_less_and_sends_as_much_alone_sends_nothing() -> None:
    half, whole = (predict(dataclasses.replace(P100, units=batch)) for batch in (64, 128))
    assert half and whole
    assert (half.compute_s, half.wire_bytes) == (pytest.approx(whole.compute_s / 2, rel=0.001), whole.wire_bytes)
    alone = predict(dataclasses.replace(V100, nodes=1))
    assert alone and (alone.wire_bytes, alone.seconds) == (0, alone.compute_s)


@pytest.mark.parametrize(
    "unknown", [{"model": "transformer-tiny"}, {"gpu": "P100"}, {"gpu": "T4"}, {"gpus": 4}, {"precision": "int8"}]
)
def test_what_was_never_measured_has_no_prediction(unknown) -> None:
    assert predict(dataclasses.replace(V100, **unknown)) is None


def test_a_link_is_as_fast_as_measured_and_never_below_the_order() -> None:
    two, one, tenth = (step_time_model.expected_bytes_per_s(1000, measured) for measured in (1882, 941, 94))
    assert two == pytest.approx(235e6, rel=0.01)
    assert one == tenth == step_time_model.expected_bytes_per_s(1000, None) == pytest.approx(117.6e6, rel=0.001)


@pytest.mark.parametrize("setting", [V100, P100, dataclasses.replace(P100, units=256)])
def test_the_interval_risks_ten_minutes_or_a_dollar(setting) -> None:
    usual_s = predict(setting).interval_s
    price, slow = per_hour(setting), usual_s * (1 + SLOWER)
    steps = interval(usual_s, price)
    lost, more = (Bill(count * slow, price) for count in (steps, round(steps * 1.11)))
    assert lost.seconds <= 600 and lost.dollars <= 1
    assert more.seconds > 600 or more.dollars > 1


@pytest.mark.parametrize(
    ("step_s", "price", "steps"),
    [(1.75, "13", 140), (1.75, "1", 310), (1.75, "0", 310), (1e-4, "9", 5000), (900.0, "13", 1), (5.0, "13", 50)],
)
def test_the_interval_is_a_number_of_two_digits(step_s, price, steps) -> None:
    assert interval(step_s, Decimal(price)) == steps


@given(
    st.builds(
        TrainingSetup,
        *(st.sampled_from(["V100", "P100"]), st.sampled_from([1, 2]), st.integers(1, 64)),
        st.sampled_from(catalog.PORT_SPEEDS_MBPS),
        *(
            st.just("transformer-base"),
            st.sampled_from(["fp32", "mixed"]),
            st.integers(1, 4096),
            st.just(4 * 60_880_896),
        ),
    )
)
def test_whatever_may_be_ordered_has_a_finite_plan_or_none(setting) -> None:
    found = predict(setting)
    if found is None:
        assert (setting.gpu, setting.precision) == ("P100", "mixed")
        return
    assert 0 < found.compute_s <= found.interval_s < 10_000 and found.span.low > 0
    assert 1 <= interval(found.interval_s, Decimal("832")) <= 5000


def test_the_next_hour_begins_whole_hours_after_the_first_one() -> None:
    opened = datetime(2026, 11, 21, 10, 15, tzinfo=UTC)
    for minute, hour in ((15, 11), (59, 11)):
        assert HOURLY.paid_until(opened, opened.replace(minute=minute)) == opened.replace(hour=hour)
    assert HOURLY.paid_until(opened, opened.replace(hour=13, minute=20)) == opened.replace(hour=14)
    assert HOURLY.paid_until(opened, opened.replace(hour=9)) == opened.replace(hour=11)


def test_where_each_month_is_billed_alone_an_hour_begins_with_the_month() -> None:
    rate, opened = Rate(Decimal(1), by_month=True), datetime(2026, 11, 30, 22, 45, tzinfo=UTC)
    month = datetime(2026, 12, 1, tzinfo=UTC)
    ends = [rate.paid_until(opened, opened + timedelta(minutes=each)) for each in (0, 61, 75, 76, 140)]
    assert [(end - month) / timedelta(minutes=1) for end in ends] == [-15, 0, 0, 60, 120]
    for end in ends:
        assert rate.cost(opened, end + timedelta(seconds=1)) == rate.cost(opened, end) + 1


def test_recorded_runs_leave_the_usual_interval_as_run_ids_depend_on_it() -> None:
    assert predict(V100).interval_s == pytest.approx(1.7503, abs=1e-3), "the law at 2 Gb/s"
    assert predict(V100).seconds == pytest.approx(1.695, abs=1e-3), "the line that recorded runs imply"


def test_fast_ports_have_any_recorded_link_and_slow_ports_the_slow_one() -> None:
    assert list(predict(V100).links) == ["2 Gb/s", "5 Gb/s", "0.1 Gb/s"]
    assert list(predict(dataclasses.replace(V100, port_speed_mbps=100)).links) == ["0.1 Gb/s"]
    unknown = predict(dataclasses.replace(V100, port_speed_mbps=10))
    assert not unknown.links and unknown.span.text("{:.3f}") == "at least 0.593"


def test_without_a_known_link_a_step_has_the_limits_of_all_links() -> None:
    whole, links = predict(V100).span, predict(V100).links
    assert (whole.low, whole.high) == (links["5 Gb/s"].low, links["0.1 Gb/s"].high)
    (fast,) = [kind for kind in link_kinds("transformer-base") if kind.name == "5 Gb/s"]
    assert predict(V100, fast).span == links["5 Gb/s"]


def test_one_machine_waits_for_no_link_and_has_the_assumed_band() -> None:
    (alone,) = links_by_kind("transformer-base", 0.5, 0, nodes=1, port_mbps=1000).values()
    assert alone.limits == (0.5 * (1 - BAND), 0.5, 0.5 * (1 + BAND))


RUN_PAIRS = 50_000 * 1024
NO_PREPARATION = Span(0, 0, 0)
PAIR_PER_HOUR = {"P100": Decimal(9), "V100": Decimal(13)}
MACHINE = {"P100": "AC1_16X120X100", "V100": "AC2_16X120X100"}
HOUR = timedelta(hours=1)


def predicted(setting: TrainingSetup, nodes: int) -> Pace:
    found = predict(dataclasses.replace(setting, nodes=nodes))
    assert found
    links = found.links if nodes > 1 else {}
    return Pace(found.span, found.compute_s, 2 * nodes * setting.units, "recorded runs", links, found.wire_bytes)


def bought(gpu: str, nodes: int, pace: Pace | None = None, preparation: Span = NO_PREPARATION) -> Alternative:
    setting = {"V100": V100, "P100": P100}[gpu]
    price = PAIR_PER_HOUR[gpu] / 2 * nodes
    offer = Offer(MACHINE[gpu], gpu, 2, nodes, 1000, setting.precision, price, {"cluster.nodes": nodes})
    samples = Span(RUN_PAIRS, RUN_PAIRS, RUN_PAIRS)
    return Alternative(offer, pace or predicted(setting, nodes), samples, preparation)


def paced(seconds: float, samples: int, compute_s: float | None = None) -> Pace:
    """A pace with a band of 10 %, which knows no link."""
    return Pace(Span(0.9 * seconds, seconds, 1.1 * seconds), compute_s, samples, "")


def test_started_hours_are_billed_whole_with_the_preparation_in_them() -> None:
    row = bought("V100", 1, preparation=Span(0.25, 0.6, 2))
    assert row.hours.usual == pytest.approx(16.5 + 0.6, abs=0.1)
    assert row.dollars.usual == pytest.approx(18 * 6.5)
    assert row.dollars.low < row.dollars.usual < row.dollars.high
    assert row.per_million == pytest.approx(18 * 6.5 / 51.2)


def test_a_run_to_a_loss_takes_the_limits_of_its_samples() -> None:
    row = dataclasses.replace(bought("V100", 1), samples=Span(512_000, 1_024_000, 2_048_000))
    assert row.steps.limits == (1000, 2000, 4000)
    assert row.hours.low == pytest.approx(1000 * row.pace.seconds.low / 3600)
    assert row.hours.high == pytest.approx(4000 * row.pace.seconds.high / 3600)


def test_the_share_of_a_step_that_waits_for_the_network_is_named() -> None:
    assert bought("V100", 1).keys == {"cluster.nodes": 1, "job.maxSteps": 100_000}, "as many samples on half the GPUs"
    assert bought("V100", 1).exposed_share == 0
    assert bought("V100", 2).exposed_share == pytest.approx(0.65, abs=0.01)


def test_a_second_machine_is_discouraged_only_if_its_whole_band_is_worse() -> None:
    one, two = bought("V100", 1), bought("V100", 2)
    assert fewer_machines([one, two, bought("P100", 1)], two) is one
    assert fewer_machines([one, two], one) is None
    verdicts = {link: is_surely_better(one, two.on(link)) for link in two.pace.links}
    assert verdicts == {"2 Gb/s": True, "5 Gb/s": False, "0.1 Gb/s": True}
    assert not is_surely_better(one, two), "its link is not known"


def test_a_second_machine_that_halves_the_hours_is_not_advised_against() -> None:
    halved = [bought("V100", 1, paced(1.0, 512)), bought("V100", 2, paced(1.05, 1024))]
    assert not is_surely_better(*halved)


def test_the_steps_to_a_loss_decide_nothing_between_one_and_two_machines() -> None:
    wide = Span(RUN_PAIRS / 2, RUN_PAIRS, 2 * RUN_PAIRS)
    one, two = (dataclasses.replace(bought("V100", nodes), samples=wide) for nodes in (1, 2))
    assert is_surely_better(one, two.on("2 Gb/s"))


def test_the_link_speed_that_makes_a_second_machine_worthwhile_is_solved_for() -> None:
    one, two = bought("V100", 1), bought("V100", 2)
    faster, cheaper = worth_above_mbps(one, two)
    assert seconds(V100, faster) * 50_000 / 3600 == pytest.approx(0.8 * one.hours.usual)
    assert faster == pytest.approx(4100, rel=0.01)
    assert cheaper is None, "at twice the price an hour"


def test_the_choices_are_cheapest_fastest_for_the_money_and_cheapest_in_time() -> None:
    rows = [bought("P100", 1), bought("P100", 2), bought("V100", 1), bought("V100", 2)]
    found = choose(rows, budget=150, deadline_h=30)
    assert found[CHEAPEST] is rows[2]
    assert found[FASTEST] is rows[2]
    assert choose(rows, deadline_h=1)[IN_TIME] is None
    assert choose(rows)[FASTEST] is None


def test_affordable_is_what_no_guard_ends_before_its_upper_limit() -> None:
    row = bought("V100", 1, preparation=Span(0.25, 0.5, 0.75))
    assert row.budget == (math.ceil(row.hours.high + GUARD_RESERVE_H) + 1) * 6.5 > row.dollars.high
    assert choose([row], budget=row.dollars.high)[FASTEST] is None
    assert choose([row], budget=row.budget - 1)[FASTEST] is None
    assert choose([row], budget=row.budget)[FASTEST] is row


def rented(opened: datetime, looked: datetime, rate: Rate) -> Rental:
    """One thing that has been billed from ``opened`` to ``looked``."""
    charge = Charge(
        **{"id": "1", "description": "", "host": "gpu-0", "category": "guest", "opened": opened, "closed": None},
        **{"ends": None, "hourly": True, "per_hour": rate.per_hour, "per_month": Decimal(0), "currency": "USD"},
        so_far=rate.cost(opened, looked),
        by_month=rate.by_month,
    )
    return Rental(looked, (charge,))


@given(st.decimals("0.01", "100", places=3), st.floats(0.1, 1500), st.integers(0, 44_640), st.booleans(), st.booleans())
def test_a_guard_with_the_smallest_budget_ends_no_rental_early(price, hours, minute, by_month, is_late) -> None:
    rate = Rate(price, by_month=by_month)
    opened = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minute)
    over = opened + timedelta(hours=hours)
    looked = over if is_late else opened + timedelta(seconds=1)
    rental = rented(opened, looked, rate)
    end = first_end(Limits(budget=smallest_budget(price, hours, by_month=by_month)), rental)
    assert end is None or end.begin >= over - timedelta(microseconds=10)


def test_a_budget_that_is_an_hour_smaller_ends_it_early() -> None:
    opened, hours = datetime(2026, 1, 1, tzinfo=UTC), 7.5
    least = smallest_budget(Decimal(13), hours)
    assert least == budget_hours(hours) * 13 == 9 * 13
    end = first_end(Limits(budget=least - 13), rented(opened, opened + timedelta(seconds=1), Rate(Decimal(13))))
    assert end.begin < opened + hours * HOUR


def test_the_smallest_budget_has_a_monthly_price_once_for_each_month() -> None:
    assert smallest_budget(Decimal(1), 1, per_month=Decimal(20)) == 3 + 20
    assert smallest_budget(Decimal(1), 28 * 24, per_month=Decimal(20)) == 28 * 24 + 2 + 2 * 20


def test_the_reserve_of_the_planner_is_that_of_the_guard() -> None:
    assert GUARD_RESERVE_H * HOUR == RESERVE


def test_a_plan_without_an_upper_limit_fits_no_budget_and_sorts_last() -> None:
    row = bought("V100", 2, Pace(Span(0.1, 0.1, math.inf), None, 1024, "measured on one machine"))
    assert math.isinf(row.dollars.high) and row.exposed_share is None
    assert choose([row], budget=10_000, deadline_h=10_000)[FASTEST] is None
    known = bought("V100", 1)
    assert choose([row, known])[CHEAPEST] is known and row.dollars.usual < known.dollars.usual
