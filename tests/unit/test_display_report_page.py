"""The page of a run opens from a file with no network, and shows what it was given and nothing else as markup."""

import re
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal

from fake_machine import FACTS
from launching import transformer
from sampled_run import SampledRun

from microcluster.accounts.shared.receipt import Charge
from microcluster.analysis.bottleneck import Link
from microcluster.analysis.records import Curves
from microcluster.analysis.run_questions import Answer
from microcluster.analysis.run_state import Outcome
from microcluster.display import report_page, run_text
from microcluster.display.report_page import page
from microcluster.jobs.cluster_facts import ClusterFacts, Container
from microcluster.planning.run_cost import Cost
from microcluster.remote.report_records import Checkpoint, Records
from microcluster.run.report import _bill_row, _checkpoint_answers

JOB = transformer()
IMAGE = Container("c", "r.test/i:t")
CLUSTER = ClusterFacts("local", "1f3a9c42", (FACTS,), container=IMAGE, job=JOB, run="0123456789ab")
PAIR = Link(2, 1.73, 1000, 1882.0, 365_285_376, 0.5927, 1.75)
CHECKPOINTS = (
    Checkpoint(
        "model.ckpt-300", 300, False, {"data": 813_000_000, "meta": 15_000_000, "index": 20_000}, 1_795_330_377.0, ""
    ),
    Checkpoint("val_loss=2.0-step-299", 299, True, {"data": 1, "meta": 1, "index": 1}, 1_795_330_300.0, "lacks .meta"),
)
RATES = ((1, 1e-4), (101, 2e-4))
POINTS = [(step, 8.0 - step / 100) for step in range(0, 300, 10)]


HOSTILE = "a\0b\x1b[2J\ufffe\ud800" + "c" * 300


def written(events=(), *, emulated: bool = False, **changes: object) -> str:
    files = (("logdir/model.ckpt-300.index", 1000),)
    records = Records(events, "base_params = {'a': '<b>'}", files, CHECKPOINTS, RATES)
    usual = {"state": "finished", "step": 300, "max_steps": 300, "seconds_per_step": 0.1, "link": Link(1, 0.1, 1000)}
    done = Outcome(**{**usual, **changes})
    answers = [Answer("Was there overfitting?", "No <script>alert(1)</script>", {})]
    bill = [{"host": "gpu-0", "what": "AC1", "from": "a", "to": "b", "per_hour": "4.5 USD", "cost": "4.50 USD"}]
    evaluations = [{"step": step, "loss": loss} for step, loss in POINTS[::10]]
    found = Curves(POINTS, POINTS, evaluations, {"bleu": [(0, 0.1), (100, 0.3)]})
    cost = Cost(Decimal("4.5"), Decimal("4.5"), emulated=emulated)
    return page(CLUSTER, done, records, found, answers, cost, bill)


def test_the_page_has_answers_curves_cost_files_and_no_foreign_content() -> None:
    text = written()
    for part in ("Was there overfitting?", "<svg", "4.50 USD", "logdir/model.ckpt-300.index", "0123456789ab"):
        assert part in text
    assert "base_params = {&#39;a&#39;: &#39;&lt;b&gt;&#39;}" in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert not re.search(r"""(src|href)\s*=\s*["'](https?:)?//""", text)
    assert "<script" not in text and "@import" not in text and "url(http" not in text


def test_no_name_of_a_curve_stops_the_page() -> None:
    drawn = report_page.curve(HOSTILE, {HOSTILE: POINTS, "\0": POINTS})
    assert drawn.startswith("<svg") and "c" * 100 not in drawn
    assert report_page.bars(HOSTILE, ["one"], {HOSTILE: [1.0]}).startswith("<svg")


def test_the_page_labels_network_figures_as_measured_derived_or_expected() -> None:
    text = written(tuple(SampledRun().events()), link=PAIR)
    table = text.partition("<h2>Network</h2>")[2].partition("</table>")[0]
    for part in ("measured: counters of the cards", "measured: preflight", "derived: as the answer above says"):
        assert part in table
    assert "<td>365 MB</td>" in table and "1.08 to 1.20 s" in table
    assert "<h2>Network</h2>" not in written(tuple(SampledRun().events())), "on one machine"
    assert "Private network of gpu-0" in text


def test_the_page_lists_every_checkpoint_with_size_time_and_state() -> None:
    rows = written().partition("<h2>Checkpoints")[2].partition("</table>")[0]
    assert "<td>828.0 MB</td><td>2026-11-22 06:52:57</td><td>whole</td>" in rows
    assert "<td>best model</td><td>3 bytes</td><td>2026-11-22 06:51:40</td><td>suspected: lacks .meta</td>" in rows


def test_the_size_of_a_checkpoint_is_that_of_one_whole_regular_one() -> None:
    records = Records((), "", (("logdir/model.ckpt-300.index", 10**12),), CHECKPOINTS)
    _, size = _checkpoint_answers(records, "the files")
    assert size.answer == "data 813.0 MB + meta 15.0 MB + index 20.0 kB = 828.0 MB, that of step 300."
    none_yet = _checkpoint_answers(replace(records, checkpoints=CHECKPOINTS[1:]), "the files")
    assert "no whole one yet" in none_yet[1].answer
    none = [one.answer for one in _checkpoint_answers(records, None)]
    assert none == ["None: the program writes no checkpoints.", "There is none."]


def test_the_events_files_are_named_among_those_of_a_checkpoint() -> None:
    files = (("config.py", 9), ("logdir/events.out.tfevents.15.gpu-0", 2_000_000))
    which, _ = _checkpoint_answers(Records((), "", files), "the files")
    assert which.answer == (
        "the files. Not needed to restore: the events file for TensorBoard, logdir/events.out.tfevents.15.gpu-0 (2.0 MB)."
    )
    assert _checkpoint_answers(Records((), "", files[:1]), "the files")[0].answer == "the files."


def test_learning_rate_bleu_and_gpu_use_are_drawn_and_derived_values_marked(monkeypatch) -> None:
    captions = re.findall("<figcaption>(.*?)</figcaption>", written(tuple(SampledRun().events())))
    assert [caption.split(",")[0] for caption in captions][1:3] == ["BLEU by step", "Learning rate by step"]
    assert "GPU use by step, percent" in captions
    emulated = written(tuple(SampledRun().events()), emulated=True)
    assert "GPU use by step, percent, emulated" in emulated
    said = run_text.EMULATED.format("SoftLayer")
    assert said in emulated and said not in written()
    assert "$4.5/hour (emulated)" in emulated and "<h2>Cost, emulated</h2>" in emulated
    assert "Learning rate by step, as the trainer recorded it" in written()
    monkeypatch.setattr(f"{__name__}.RATES", ())
    assert "Learning rate by step, derived from its policy&#39;s formula" in written()


def test_a_failed_runs_page_begins_with_cause_lines_and_next_command() -> None:
    text = written(state="failed", reason="rank 2 on gpu-1 ended", cause="rank-died", last_lines=("its last words",))
    top = text.partition('<table class="facts">')[0]
    assert top.index("rank 2 on gpu-1 ended (rank-died)") < top.index("its last words") < top.index("Next: ")
    assert "trouble" not in written().partition("</style>")[2]


def test_the_bill_is_in_utc_whatever_the_offset_of_the_account() -> None:
    there = timezone(timedelta(hours=-6))
    opened = datetime(2026, 11, 21, 21, 52, tzinfo=there)
    fees = (Decimal(3), Decimal(40), Decimal(6), "USD")
    row = _bill_row(Charge("1", "a guest", "gpu-0", "guest_core", opened, None, None, True, *fees))
    assert (row["from"], row["to"]) == ("2026-11-22 03:52", "still billed")
    assert "<th>from (UTC)</th>" in written()


def test_a_long_curve_keeps_its_ends_and_few_points() -> None:
    points = [(step, 1.0) for step in range(50_000)]
    kept = report_page.thinned(points)
    assert len(kept) <= report_page.MOST_POINTS + 2
    assert (kept[0], kept[-1]) == (points[0], points[-1])
    pauses = [(step, 0.0 if step % 4001 == 1 else 2000.0 if step == 777 else 1700.0) for step in range(50_000)]
    kept = report_page.thinned(pauses)
    assert {point for point in pauses if point[1] != 1700.0} <= set(kept), "its dips and its peaks"
    assert [step for step, _ in kept] == sorted(step for step, _ in kept)
    assert "nothing yet" in report_page.curve("loss", {"training": []})
