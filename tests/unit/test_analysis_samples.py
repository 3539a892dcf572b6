"""Machines' samples step by step: use of the GPUs, and bytes of the cards by their counters."""

import pytest
from sampled_run import SampledRun

from microcluster.analysis import samples

TRAINED = [{"event": "phase", "phase": "training", "t": 0.0}]
TRAINED += [{"event": "train", "step": step, "t": float(step)} for step in (0, 100)]


def sample(node: str, t: float, *gpus: int) -> dict[str, object]:
    return {"event": "sample", "node": node, "t": t, "gpus": list(gpus)}


def test_gpu_use_is_listed_by_machine_and_step() -> None:
    used = [sample("gpu-0", 50.0, 90, 100), sample("gpu-1", 50.1, 20, 40)]
    used += [sample("gpu-0", 70.0, 80), sample("gpu-1", 70.0, 60)]
    assert samples.gpu_use([*TRAINED, *used]) == {"gpu-0": [(50, 95.0), (70, 80.0)], "gpu-1": [(50, 30.0), (70, 60.0)]}


def test_samples_without_gpus_or_beside_the_training_are_left_out() -> None:
    beside = [sample("gpu-0", -5.0, 9), sample("gpu-0", 60.0), sample("gpu-0", 500.0, 9), sample("gpu-0", 20.0, 50)]
    assert samples.gpu_use([*TRAINED, *beside]) == {"gpu-0": [(20, 50.0)]}


def test_of_very_many_machines_the_least_used_are_drawn() -> None:
    used = samples.gpu_use([*TRAINED, *(sample(f"n{number}", 50.0, number) for number in range(90, 0, -1))])
    assert sorted(used) == sorted(f"n{number}" for number in range(1, 17))


def test_the_bytes_of_a_step_are_computed_from_counters() -> None:
    one, other = (samples.traffic(SampledRun(before=before).events()) for before in (0, 10**12))
    assert one.usual.bytes_per_step == pytest.approx(366e6, rel=0.01)
    assert one.usual.bytes_per_step == other.usual.bytes_per_step, "without what was moved before the first step"


def test_checkpoint_copies_show_on_the_two_cards_that_make_them() -> None:
    found = samples.traffic(SampledRun(copy_steps=10).events())
    assert found
    by_card = {(card.node, card.direction): card.bytes_per_step for card in found.cards}
    assert by_card["gpu-0", "out"] > 1.2 * by_card["gpu-0", "in"]
    assert by_card["gpu-1", "in"] > 1.2 * by_card["gpu-1", "out"]
    assert found.usual.bytes_per_step == pytest.approx(366e6, rel=0.01)


def test_the_rate_counts_evaluations_in_and_the_peak_does_not() -> None:
    usual = samples.traffic(SampledRun(copy_steps=10**6).events()).usual
    assert usual.mbps < 366 * 8 / 1.73 < usual.peak_mbps * 1.05


def test_the_figures_are_those_of_the_last_sampled_attempt() -> None:
    first, second = SampledRun(bytes_per_step=100), SampledRun(bytes_per_step=366_000_000)
    events = [*first.events(), *second.events(t=50_000.0, first=5000)]
    assert samples.traffic(events).usual.bytes_per_step == pytest.approx(366e6, rel=0.01)
    assert samples.traffic([*events, {"event": "phase", "phase": "training", "t": 1e6}]) is not None


def test_an_interval_with_a_restart_of_the_machine_is_left_out() -> None:
    events = SampledRun().events()
    last = max(n for n, event in enumerate(events) if event.get("node") == "gpu-1" and event["t"] < 8000)
    events[last] = {**events[last], "rx_bytes": 0, "tx_bytes": 0}
    assert {card.node for card in samples.traffic(events).cards} == {"gpu-0"}


def test_events_without_samples_without_counters_or_without_anything_tell_nothing() -> None:
    events = SampledRun(steps=300).events()
    bare = [{name: value for name, value in event.items() if not name.endswith("x_bytes")} for event in events]
    for left in ([], [{"event": "sample"}], bare, [event for event in events if event["event"] != "sample"]):
        assert samples.traffic(left) is None
    for short in (SampledRun(steps=90), SampledRun(steps=300, sample_s=1e6)):
        assert samples.traffic(short.events()) is None


def test_the_link_curve_has_a_point_for_every_pair_of_samples() -> None:
    drawn = samples.link_rates(SampledRun(eval_steps=10**6, eval_s=0).events(), "gpu-0")
    assert drawn["received"][-1][0] > 4800
    assert drawn["received"][5][1] == pytest.approx(366 * 8 / 1.73, rel=0.1)


def test_a_sample_with_one_counter_alone_tells_nothing_of_the_card() -> None:
    events = [{name: value for name, value in event.items() if name != "tx_bytes"} for event in SampledRun().events()]
    assert samples.traffic(events) is None
    assert samples.link_rates(events, "gpu-0") == {"received": [], "sent": []}
