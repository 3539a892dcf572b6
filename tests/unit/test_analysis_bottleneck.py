"""Whether a run waited for its network: what is measured, what is derived, and what is only expected, kept apart."""

import dataclasses

import pytest
from sampled_run import SampledRun

from microcluster.analysis import bottleneck, samples
from microcluster.analysis.bottleneck import Link

RING_BYTES = 365_285_376
HISTORIC = Link(2, 1.73, 1000, 1882.0, RING_BYTES, compute_s=0.5927, predicted_s=1.75)
"""Two guests with two V100 each, on ports of 1000 that carry 2 Gb/s."""
SEEN = samples.traffic(SampledRun().events())


def test_the_historic_run_waited_two_thirds_of_every_step() -> None:
    found = bottleneck.exposed(SEEN, HISTORIC)
    assert (found.least, found.most) == (pytest.approx(1.08, abs=0.01), pytest.approx(1.20, abs=0.01))
    verdict, relation = (one.answer for one in bottleneck.answers(SEEN, HISTORIC))
    assert verdict.startswith("Yes: 1.08 to 1.20 s of the 1.73 s of a step (62% to 69%) wait for the network")
    assert relation.startswith("Measured: each card moved 366 MB each way in a step")
    assert "by the ring's law 365 MB are expected" in relation
    assert relation.endswith("On the link alone these bytes take 1.56 s; a step takes 1.73 s.")


def test_without_a_prediction_the_preflights_bandwidth_bounds_what_is_exposed() -> None:
    """A step of 1.73 s whose exchange takes 1.55 s: if all hides that can, 1.2 s are exposed; if none does, 1.55 s."""
    found = bottleneck.exposed(SEEN, dataclasses.replace(HISTORIC, compute_s=None))
    assert found.least == pytest.approx(3 * 1.556 - 2 * 1.73, abs=0.03)
    assert found.most == pytest.approx(1.556, abs=0.01)


def test_a_link_that_carries_little_of_what_it_could_is_no_bottleneck() -> None:
    seen = samples.traffic(SampledRun(steps=300, step_s=0.3, bytes_per_step=1_700_000, print_steps=10).events())
    local = Link(2, 0.3, 1000, 945.0, 1_690_000)
    said, relation = bottleneck.answers(seen, local)
    assert said.answer.startswith("No: 0.00 to 0.01 s of the 0.30 s of a step (0% to 5%)")
    assert "of the ordered port" in relation.answer
    assert said.figures["derived"]["share_of_port"] < 0.06


def test_a_100_megabit_port_is_the_bottleneck_even_without_samples() -> None:
    said, relation = bottleneck.answers(None, dataclasses.replace(HISTORIC, step_s=31.3, probed_mbps=94.1))
    assert said.answer.startswith("Yes: ")
    assert "Nothing measured the traffic; by the ring's law 365 MB are expected." in relation.answer


def test_unexplained_step_time_is_not_blamed_on_the_network() -> None:
    slow, _ = bottleneck.answers(SEEN, dataclasses.replace(HISTORIC, step_s=6.0))
    assert slow.answer.startswith("In part: 1.5")
    assert "(26% to 26%)" in slow.answer
    assert "Another 3.8" in slow.answer and "slower GPUs" in slow.answer


def test_one_machine_has_no_network_to_wait_for() -> None:
    alone = dataclasses.replace(HISTORIC, nodes=1)
    said = [one.answer for one in bottleneck.answers(SEEN, alone)]
    assert said == ["No: all ranks share one machine.", "It does not: all ranks share one machine."]
    assert bottleneck.rows(SEEN, alone) == []


def test_unknown_figures_are_left_out() -> None:
    untimed, unsized = (dataclasses.replace(HISTORIC, **{name: None}) for name in ("step_s", "ring_bytes"))
    for seen, link in ((SEEN, untimed), (None, unsized), (SEEN, Link(2, 1.0, 0))):
        assert {one.answer[:7] for one in bottleneck.answers(seen, link)} == {"Unknown"}
        bottleneck.rows(seen, link)


def test_every_row_and_every_figure_says_how_it_is_known() -> None:
    rows = bottleneck.rows(SEEN, HISTORIC)
    hows = [how.split(":")[0].split()[0] for _, _, how in rows]
    assert {"measured", "derived", "expected"} == set(hows)
    by_what = {(what, how.split(":")[0]): value for what, value, how in rows}
    assert by_what["a card moves each way in a step", "measured"].startswith("366 MB")
    assert by_what["a card moves each way in a step", "expected"] == "365 MB"
    assert by_what["the link can carry", "measured"] == "1882 Mb/s"
    figures = bottleneck.figures(SEEN, HISTORIC)
    assert figures["measured"]["bytes_per_step"] == pytest.approx(366e6, rel=0.01)
    assert figures["derived"]["share_of_port"] > 1.5
    assert figures["derived"]["share_of_preflight"] == pytest.approx(0.9, abs=0.05)
    assert figures["expected"] == {"bytes_per_step": RING_BYTES, "compute_s": 0.5927, "seconds_per_step": 1.75}


def test_a_slow_step_is_explained_by_cause_beside_what_was_predicted() -> None:
    causes = bottleneck.by_cause(dataclasses.replace(HISTORIC, step_s=2.3))
    assert causes["computing"] == (0.5927, 0.5927)
    assert causes["waiting for the network"] == (pytest.approx(1.157, abs=0.001), pytest.approx(1.553, abs=0.001))
    assert causes["input and all else"] == (0.0, pytest.approx(0.155, abs=0.001))
    assert sum(measured for _, measured in causes.values()) == pytest.approx(2.3)
    alone = Link(1, 0.7, 1000, compute_s=0.5, predicted_s=0.5)
    assert bottleneck.by_cause(alone) == {"computing": (0.5, 0.5), "input and all else": (0.0, pytest.approx(0.2))}
    for untimed in ({"compute_s": None}, {"step_s": None}, {"ordered_mbps": 0, "probed_mbps": None}):
        assert bottleneck.by_cause(dataclasses.replace(HISTORIC, **untimed)) == {}
