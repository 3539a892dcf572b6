"""What the cards carried for each step, told from their counters and from the times of the log's lines."""

import pytest
from sampled_run import SampledRun

from microcluster.analysis import network_usage


def test_the_bytes_of_a_step_are_computed_from_counters() -> None:
    found = network_usage.measured(SampledRun().events())
    assert found
    low, high = found.usual.bounds
    assert found.usual.bytes_per_step == pytest.approx(366e6, rel=0.01)
    assert low < 366e6 < high < 1.1 * low


def test_what_was_moved_before_the_first_step_is_not_counted() -> None:
    one, other = (network_usage.measured(SampledRun(before=before).events()) for before in (0, 10**12))
    assert one and other
    assert one.usual.bytes_per_step == other.usual.bytes_per_step


def test_copies_of_checkpoints_are_seen_on_the_two_cards_that_make_them_and_not_in_the_middle() -> None:
    found = network_usage.measured(SampledRun(copy_steps=10).events())
    assert found
    by_card = {(card.node, card.direction): card.bytes_per_step for card in found.cards}
    assert by_card["gpu-0", "out"] > 1.2 * by_card["gpu-0", "in"]
    assert by_card["gpu-1", "in"] > 1.2 * by_card["gpu-1", "out"]
    assert found.usual.bytes_per_step == pytest.approx(366e6, rel=0.01)


def test_the_rate_counts_evaluations_in_and_the_peak_does_not() -> None:
    usual = network_usage.measured(SampledRun(copy_steps=10**6).events()).usual
    assert usual.mbps < 366 * 8 / 1.73 < usual.peak_mbps * 1.05


def test_the_figures_are_those_of_the_last_sampled_attempt() -> None:
    first, second = SampledRun(bytes_per_step=100), SampledRun(bytes_per_step=366_000_000)
    events = [*first.events(), *second.events(t=50_000.0, first=5000)]
    assert network_usage.measured(events).usual.bytes_per_step == pytest.approx(366e6, rel=0.01)
    assert network_usage.measured([*events, {"event": "phase", "phase": "training", "t": 1e6}]) is not None


def test_a_machine_that_was_started_again_counts_from_the_beginning_and_is_left_out() -> None:
    events = SampledRun().events()
    last = max(n for n, event in enumerate(events) if event.get("node") == "gpu-1" and event["t"] < 8000)
    events[last] = {**events[last], "rx_bytes": 0, "tx_bytes": 0}
    assert {card.node for card in network_usage.measured(events).cards} == {"gpu-0"}


@pytest.mark.parametrize("run", [SampledRun(steps=90), SampledRun(steps=300, sample_s=1e6)])
def test_a_run_that_is_too_short_gives_no_figures(run) -> None:
    assert network_usage.measured(run.events()) is None


def test_events_without_samples_without_counters_or_without_anything_tell_nothing() -> None:
    events = SampledRun(steps=300).events()
    bare = [{name: value for name, value in event.items() if not name.endswith("x_bytes")} for event in events]
    for left in ([], [{"event": "sample"}], bare, [event for event in events if event["event"] != "sample"]):
        assert network_usage.measured(left) is None


def test_the_curve_of_the_link_has_a_point_for_every_pair_of_samples() -> None:
    drawn = network_usage.rates(SampledRun(eval_steps=10**6, eval_s=0).events(), "gpu-0")
    assert drawn["received"][-1][0] > 4800
    assert drawn["received"][5][1] == pytest.approx(366 * 8 / 1.73, rel=0.1)
