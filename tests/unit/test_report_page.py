"""The page of a run opens from a file with no network, and shows what it was given and nothing else as markup."""

from __future__ import annotations

import re
from decimal import Decimal

from fake_machine import FACTS

from launchers.dossier import Answer, Curves
from launchers.outcome import Outcome
from launchers.payload import Container, Job, Payload
from remote.run_records import Records
from verbs import charts
from verbs.money import Cost
from verbs.report import page

JOB = Job("openseq2seq", "transformer-tiny", 300, "fp32", 16, 100, 100, "debian-en-de")
PAYLOAD = Payload("local", "1f3a9c42", (FACTS,), container=Container("c", "r.test/i:t"), job=JOB, run="0123456789ab")
POINTS = tuple((step, 8.0 - step / 100) for step in range(0, 300, 10))


def written(**changes: object) -> str:
    records = Records((), "base_params = {'a': '<b>'}", "{}", (("logdir/model.ckpt-300.index", 1000),), ())
    done = Outcome("finished", run="0123456789ab", step=300, max_steps=300, seconds_per_step=0.1, **changes)
    answers = [Answer("Was there overfitting?", "No <script>alert(1)</script>", {})]
    bill = [{"host": "gpu-0", "what": "AC1", "from": "a", "to": "b", "per_hour": "4.5 USD", "cost": "4.50 USD"}]
    found = Curves(POINTS, POINTS[::10], POINTS)
    return page(PAYLOAD, done, records, found, answers, Cost(Decimal("4.5"), Decimal("4.5")), bill)


def test_the_page_needs_nothing_from_elsewhere() -> None:
    text = written()
    assert not re.search(r"""(src|href)\\s*=\\s*["'](https?:)?//""", text)
    assert "<script" not in text and "@import" not in text and "url(http" not in text


def test_what_was_written_by_others_is_text_and_no_markup() -> None:
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in written()
    assert "&lt;b&gt;" in written()


def test_the_page_shows_answers_curves_cost_files_and_configuration() -> None:
    text = written()
    for part in (
        "Was there overfitting?",
        "<svg",
        "4.50 USD",
        "logdir/model.ckpt-300.index",
        "base_params",
        "0123456789ab",
    ):
        assert part in text


def test_a_long_curve_keeps_its_ends_and_few_points() -> None:
    points = [(step, 1.0) for step in range(50_000)]
    kept = charts.thinned(points)
    assert len(kept) <= charts.MOST_POINTS + 1
    assert (kept[0], kept[-1]) == (points[0], points[-1])


def test_a_curve_without_points_is_drawn_as_empty() -> None:
    assert "nothing yet" in charts.curve("loss", {"training": []})
