"""The page of a run opens from a file with no network, and shows what it was given and nothing else as markup."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from decimal import Decimal

from fake_machine import FACTS
from sampled_run import SampledRun

from launchers.dossier import Answer, Curves
from launchers.outcome import Outcome
from launchers.payload import Container, Job, Payload, Prediction
from remote.run_records import Records
from verbs import charts
from verbs.money import Cost
from verbs.report import page

JOB = Job("openseq2seq", "transformer-tiny", 300, "fp32", 16, 100, 100, "debian-en-de")
PAYLOAD = Payload("local", "1f3a9c42", (FACTS,), container=Container("c", "r.test/i:t"), job=JOB, run="0123456789ab")
PAIR = replace(
    PAYLOAD,
    hosts=(FACTS, replace(FACTS, name="gpu-1")),
    slots=2,
    port_speed_mbps=1000,
    prediction=Prediction(1.75, 0.5927, 365_285_376),
)
PREFLIGHT = json.dumps({"bandwidth": [{"from": "gpu-0", "to": "gpu-1", "streams": 8, "mbps": 1882.0}]})
POINTS = tuple((step, 8.0 - step / 100) for step in range(0, 300, 10))


def written(events: tuple[dict[str, object], ...] = (), payload: Payload = PAYLOAD, **changes: object) -> str:
    records = Records(events, "base_params = {'a': '<b>'}", PREFLIGHT, (("logdir/model.ckpt-300.index", 1000),), ())
    done = Outcome("finished", "0123456789ab", step=300, max_steps=300, **{"seconds_per_step": 0.1, **changes})
    answers = [Answer("Was there overfitting?", "No <script>alert(1)</script>", {})]
    bill = [{"host": "gpu-0", "what": "AC1", "from": "a", "to": "b", "per_hour": "4.5 USD", "cost": "4.50 USD"}]
    found = Curves(POINTS, POINTS[::10], POINTS)
    return page(payload, done, records, found, answers, Cost(Decimal("4.5"), Decimal("4.5")), bill)


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


def test_the_page_tells_what_of_the_network_is_measured_derived_and_expected() -> None:
    run = [{"event": "parameters", "value": 60_880_896, "t": 990.0}, *SampledRun().events()]
    text = written(tuple(run), PAIR, seconds_per_step=1.73, predicted_s=1.75, predicted_source="at 1882 Mb/s")
    table = text.partition("<h2>Network</h2>")[2].partition("</table>")[0]
    for part in (
        "measured: counters of the cards",
        "measured: preflight",
        "derived: the measured step less",
        "<td>365 MB</td>",
    ):
        assert part in table
    assert "1.08 to 1.20 s (62% to 69%)" in table
    assert "Private network of gpu-0" in text


def test_a_run_on_one_machine_has_no_table_of_its_network() -> None:
    assert "<h2>Network</h2>" not in written(tuple(SampledRun().events()))


def test_a_long_curve_keeps_its_ends_and_few_points() -> None:
    points = [(step, 1.0) for step in range(50_000)]
    kept = charts.thinned(points)
    assert len(kept) <= charts.MOST_POINTS + 2
    assert (kept[0], kept[-1]) == (points[0], points[-1])


def test_a_long_curve_keeps_its_dips_and_its_peaks() -> None:
    pauses = [(step, 0.0 if step % 4001 == 1 else 2000.0 if step == 777 else 1700.0) for step in range(50_000)]
    kept = charts.thinned(pauses)
    assert {point for point in pauses if point[1] != 1700.0} <= set(kept)
    assert [step for step, _ in kept] == sorted(step for step, _ in kept)


def test_a_curve_without_points_is_drawn_as_empty() -> None:
    assert "nothing yet" in charts.curve("loss", {"training": []})
