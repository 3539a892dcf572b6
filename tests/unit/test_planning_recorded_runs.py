"""The back-test: every recorded run, foretold from the others of its kind of link; the bands and the losses that follow."""

from statistics import fmean

import pytest

from agent import step_time_model
from microcluster.planning.recorded_runs import KINDS as KINDS_FILE
from microcluster.planning.recorded_runs import compute_s, kind_of_link, link_kinds, samples_to_loss
from tests.unit import back_test as tested
from tests.unit.back_test import ENOUGH, RecordedRun, back_test, band, explained, recorded_rows

JOB, FP32 = "transformer-base", 4 * 60_880_896
ROWS = recorded_rows()
RUNS = [run for run in map(explained, ROWS) if run]
FORETOLD = back_test(RUNS)
OURS = {run: seconds for run, seconds in FORETOLD.items() if run.job == JOB}
KINDS = {kind.name: kind for kind in link_kinds(JOB)}
WRITTEN_DOWN = {
    *("job", "source", "date", "gpu", "ranks", "nodes", "port_mbps", "link", "precision", "batch"),
    *("gradient_mb", "alone_s", "step_s", "hours", "runs"),
}


def error(run: RecordedRun) -> float:
    return abs(FORETOLD[run] / run.step_s - 1)


def run(step_s: float, link: str = "here") -> RecordedRun:
    """A run of two machines with 0.3 s of computing and 100 MB to exchange."""
    row = {"source": "nobody", "job": "mine", "ranks": 2, "nodes": 2, "gradient_mb": 100, "alone_s": 0.3}
    found = explained({**row, "link": link, "step_s": step_s})
    assert found
    return found


def test_recorded_runs_give_the_kinds_of_link_and_the_pages_table() -> None:
    again = "Write them again: python -m tests.unit.back_test"
    assert KINDS_FILE.read_text() == tested.kinds() and tested.COST.read_text() == tested.cost(), again


def test_a_row_has_only_figures_that_the_table_explains() -> None:
    assert {key for row in ROWS for key in row} == WRITTEN_DOWN


def test_every_paced_run_is_predicted_unless_alone_or_its_card_untimed() -> None:
    paced = [row for row in ROWS if "step_s" in row]
    unexplained = [row for row in paced if not explained(row)]
    assert {row["source"] for row in unexplained if "link" not in row} == {
        "repository 34",
        "tests/on_gpu/recorded/h200",
    }
    assert {row["gpu"] for row in unexplained if "link" in row} == {"T4"}
    alone = {run.link for run in RUNS if run not in FORETOLD}
    assert alone == {"10 Gb/s", "20 Gb/s Ethernet", "40 Gb/s Ethernet"}
    assert (len(paced), len(FORETOLD)) == (87, 77)


def test_a_run_is_foretold_from_the_other_runs_and_never_from_itself() -> None:
    first, second, third, elsewhere = run(1.1), run(2.1), run(4.1), run(2.1, link="there")
    foretold = back_test([first, second, third, elsewhere])
    assert foretold[first] == pytest.approx(0.1 + 2 / (1 / 2 + 1 / 4)), "the median line of 2 and 4 s"
    assert elsewhere not in foretold


def test_the_errors_of_the_back_test_are_those_of_the_page() -> None:
    usual = [error(run) for run in OURS if run.link == "2 Gb/s"]
    assert (len(usual), round(fmean(usual), 3), round(max(usual), 2)) == (23, 0.051, 0.17)
    errors = [error(run) for run in OURS]
    assert (len(errors), round(fmean(errors), 3), round(max(errors), 2)) == (29, 0.061, 0.20)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_links_band_holds_at_least_nine_in_ten_of_its_runs(kind) -> None:
    ratios = [run.step_s / foretold_s for run, foretold_s in OURS.items() if run.link == kind.name]
    assert sum(kind.low <= ratio <= kind.high for ratio in ratios) >= 0.9 * len(ratios)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_no_band_is_narrower_than_what_was_recorded_on_its_link(kind) -> None:
    for each in OURS:
        if each.link == kind.name:
            span = kind.step_s(each.compute_s, each.wire_bytes, each.nodes)
            assert span.low <= each.step_s <= span.high, each


def test_a_band_of_enough_runs_leaves_out_one_in_twenty_each_side() -> None:
    assert band([1.0, 0.904, 1.095]) == (0.90, 1.10), "rounded outward"
    assert band([each / 100 for each in range(90, 129)]) == (0.91, 1.27), "39 runs: without the first and the last"


def test_a_link_kind_with_few_runs_has_the_band_of_all_runs() -> None:
    most, *few = KINDS.values()
    assert most.runs >= ENOUGH > max(kind.runs for kind in few)
    assert {(kind.low, kind.high) for kind in few} == {(0.83, 1.21)} != {(most.low, most.high)}


def test_equal_machines_took_from_under_a_second_to_half_a_minute() -> None:
    volume = step_time_model.ring_bytes(FP32, 4, 2)
    usual = {name: kind.step_s(0.5927, volume, 2).usual for name, kind in KINDS.items()}
    assert usual == pytest.approx({"2 Gb/s": 1.69, "5 Gb/s": 0.78, "0.1 Gb/s": 34.9}, rel=0.01)


def test_more_machines_than_any_recorded_run_had_make_a_lower_limit() -> None:
    volume = step_time_model.ring_bytes(FP32, 8, 4)
    assert KINDS["2 Gb/s"].step_s(0.5927, volume, 4).text("{:.2f}") == "at least 1.75"


@pytest.mark.parametrize(
    ("mbps", "name"),
    [(2100, "2 Gb/s"), (1600, "2 Gb/s"), (5000, "5 Gb/s"), (95, "0.1 Gb/s"), (1000, None), (9000, None)],
)
def test_a_known_link_is_of_the_kind_with_the_nearest_recorded_rates(mbps: float, name: str | None) -> None:
    found = kind_of_link(KINDS.values(), mbps)
    assert (found and found.name) == name


def test_the_law_solved_for_the_link_gives_the_step_back() -> None:
    for step_s in (0.62, 1.7, 30.0):
        line = step_time_model.line_mbps(step_s, 0.6, 365e6)
        assert step_time_model.step_s(0.6, 365e6, step_time_model.bytes_per_s(line)) == pytest.approx(step_s)
    assert step_time_model.line_mbps(0.59, 0.6, 365e6) is None, "no link makes the GPUs faster"


def test_what_was_never_timed_on_one_card_has_no_seconds() -> None:
    assert compute_s("V100", JOB, "mixed", 256, 2) == pytest.approx(0.5927, abs=1e-4)
    assert compute_s("T4", JOB, "fp32", 128, 1) is None
    assert compute_s("V100", JOB, "mixed", 256, 4) is None


def test_a_loss_takes_the_fewest_to_the_most_samples_of_recorded_runs() -> None:
    found = samples_to_loss(JOB, 1024, 2.0)
    low, usual, high = (each / 1024 for each in found.limits)
    assert (round(low, -2), round(usual, -2), round(high, -2)) == (7600, 9600, 15000)
    reached = {1.70: (21_300, 25_400), 1.65: (27_900, 38_100), 1.63: (34_100, 48_500), 1.60: (45_500,)}
    for loss, steps in reached.items():
        span = samples_to_loss(JOB, 1024, loss)
        assert all(span.low <= 1024 * each <= span.high for each in steps), loss


@pytest.mark.parametrize(
    ("job", "samples_a_step", "loss"), [("mine", 1024, 2.0), (JOB, 2048, 2.0), (JOB, 1024, 1.5), (JOB, 1024, 3.0)]
)
def test_an_unrecorded_job_batch_or_loss_has_no_number(job, samples_a_step, loss) -> None:
    assert samples_to_loss(job, samples_a_step, loss) is None
