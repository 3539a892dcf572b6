"""The pages for people: short lines, links that lead somewhere, tables and figures that the code agrees with."""

import dataclasses
import re
from pathlib import Path

import pytest
import yaml

from agent.supervise import health_rules as rules
from docs.tools import pages
from emulator.softlayer.settings import Settings
from microcluster.analysis import failure_hints
from microcluster.config import stack as config
from microcluster.config.sections import GuardSection
from microcluster.core.catalog.gpus import GPUS
from microcluster.planning.prediction import TrainingSetup, predict
from microcluster.planning.recorded_runs import link_kinds
from tests import suites

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = [
    *(ROOT / name for name in ("README.md", "AGENTS.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
    *(ROOT / name for name in ("engine/README.md", "images/jetson/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
LONGEST_LINE = 160
LONGEST_README = 80
MOST_WORDS = 15_000
WORD = re.compile(r"\w")
KINDS_OF_PAGES = ["Tutorials", "How-to", "Reference", "Explanation", "Contributors"]
FIRST_ORDER, CAUSES = ROOT / "docs" / "first-order.md", ROOT / "docs" / "failures.md"
BILLS, GLOSSARY = ROOT / "docs" / "surprise-bill.md", ROOT / "docs" / "glossary.md"
LARGEST_PICTURE = 200_000
V100_BESIDE_P100 = (("P100", "fp32"), ("V100", "mixed"))
MOST_STEPS = 12
"""Of a walk through the code: who needs more has code that is too long."""
WALKS = (ROOT / "docs" / "architecture.md").read_text().partition("## Walks")[2].split("\n### ")[1:]
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_line_outside_tables_is_longer_than_160_characters(page: Path) -> None:
    lines = enumerate(page.read_text().splitlines(), 1)
    assert [number for number, line in lines if len(line) > LONGEST_LINE and not line.startswith("|")] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_to_a_file_and_a_heading_that_are_there(page: Path) -> None:
    for path, heading in LINK.findall(page.read_text()):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), path
        headings = {re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in headings_of(target)}
        assert not heading or heading in headings, f"{path}#{heading}"


def headings_of(page: Path) -> list[str]:
    return re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE) if page.suffix == ".md" else []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_file_of_ours_that_a_page_names_is_there(page: Path) -> None:
    tops = "|".join(each.name for each in ROOT.iterdir() if each.is_dir() and not each.name.startswith("."))
    for path in re.findall(rf"`((?:{tops})/[\w./-]+)`", page.read_text()):
        if not path.startswith("artifacts/"):
            assert (ROOT / path).exists(), f"{name(page)} names {path}"


def test_the_readme_fits_and_its_picture_is_small() -> None:
    text = README.read_text()
    assert len(text.splitlines()) <= LONGEST_README
    for picture in re.findall(r"!\[[^]]*\]\(([^)]+)\)", text):
        assert (ROOT / picture).stat().st_size < LARGEST_PICTURE


def test_how_much_faster_a_v100_is_follows_from_the_catalog() -> None:
    p100, v100 = (GPUS[name].seconds["transformer-base", precision] for name, precision in V100_BESIDE_P100)
    pairs = [
        predict(TrainingSetup(name, 2, 2, 1000, "transformer-base", precision, units, 4 * 60_880_896))
        for (name, precision), units in zip(V100_BESIDE_P100, (128, 256), strict=True)
    ]
    steps = [pair.links["2 Gb/s"].usual for pair in pairs if pair]
    page = (ROOT / "docs/cost.md").read_text()
    assert f"| one GPU, 256 pairs | {p100} s | {v100} s | {p100 / v100:.2f} times |" in page
    assert (
        f"{steps[0]:.3g} s for 512 pairs | {steps[1]:.2g} s for 1,024 pairs | {2 * steps[0] / steps[1]:.1f} times by pairs |"
        in page
    )


def test_the_table_of_the_stack_file_is_that_of_the_model() -> None:
    assert pages.STACK_FILE.read_text() == pages.stack_file(), "Write it again: python -m docs.tools.pages"


def test_the_table_of_systems_has_every_stack_file_and_keeps_the_results_that_it_has() -> None:
    page = pages.SYSTEMS.read_text()
    assert page == pages.systems({}), "Write it again: python -m docs.tools.pages"
    [row] = [line for line in page.splitlines() if "| `texar-local` |" in line]
    new = {"tests/e2e/test_texar.py": {"outcomes": {"passed": 4, "failed": 1}, "seconds": 90, "day": "2026-11-23"}}
    later = pages.systems(new)
    assert row not in later and "| 1 failed, 4 passed, 1.5 min, 2026-11-23 |" in later


def test_the_readme_says_the_usual_minutes_of_the_tests() -> None:
    whole = sum(suite.usual_min for suite in (suites.WHOLE, suites.CHAOS, suites.UNIT, suites.E2E))
    assert f"usually {whole} min; with FAST=1 the quick ones, {suites.QUICK.usual_min} min" in README.read_text()
    assert f"| {whole} min; {suites.QUICK.usual_min} min |" in (ROOT / "CONTRIBUTING.md").read_text()


def test_the_page_of_forecasts_counts_the_recorded_pairs_by_their_link() -> None:
    runs = {kind.name: kind.runs for kind in link_kinds("transformer-base")}
    counted = f"of {sum(runs.values())} recorded pairs {runs['2 Gb/s']} had about 2 Gb/s, {runs['5 Gb/s']} had 5, {runs['0.1 Gb/s']} had 0.1"
    assert counted in " ".join((ROOT / "docs/cost.md").read_text().split())


def test_the_readme_shows_rows_of_the_plan_on_the_page_of_forecasts() -> None:
    [shown] = re.findall(r"^```text\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
    page = (ROOT / "docs/cost.md").read_text().splitlines()
    assert [line for line in shown.splitlines() if line not in page] == []


def test_the_stack_file_of_the_readme_is_read_with_its_guard(tmp_path, monkeypatch) -> None:
    [text] = re.findall(r"^```yaml\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "train.py").touch()
    (tmp_path / "Pulumi.mine.yaml").write_text(text.replace("~/my-project", str(tmp_path)))
    monkeypatch.setattr(config, "STACKS", tmp_path)
    known = config.read_file("mine")
    assert known.guard.budget and known.guard.lease


def test_all_pages_together_have_at_most_15000_words() -> None:
    text = " ".join(page.read_text() for page in PAGES if page.name != "CHANGELOG.md")
    assert len([word for word in text.split() if WORD.search(word)]) <= MOST_WORDS


def test_the_index_has_every_page_once_under_one_of_five_kinds() -> None:
    index = ROOT / "docs" / "README.md"
    kinds, listed = re.findall(r"^## ([\w-]+)", index.read_text(), re.MULTILINE), LINK.findall(index.read_text())
    pages_listed = [(index.parent / path).resolve() for path, _ in listed]
    assert kinds == KINDS_OF_PAGES
    assert set(PAGES) - {README, index} <= set(pages_listed)
    repeated = {page for page in pages_listed if pages_listed.count(page) > 1}
    assert repeated <= {ROOT / "docs" / "glossary.md"}, "The glossary alone is named before its place."


@pytest.mark.parametrize(("page", "section"), [("queue.md", "microcluster:cluster"), ("mxnet.md", "microcluster:job")])
def test_the_pages_of_seawulf_show_its_stack_file(page: str, section: str) -> None:
    [shown] = re.findall(r"^```yaml\n(.*?)^```", (ROOT / "docs" / page).read_text(), re.MULTILINE | re.DOTALL)
    read = yaml.safe_load(shown)
    file = yaml.safe_load((ROOT / "stacks" / "Pulumi.seawulf.yaml").read_text())["config"]
    assert read.get("config", read)[section] == file[section]


def test_the_page_on_bills_shows_every_key_of_the_guard() -> None:
    [shown] = re.findall(r"^```yaml\n(.*?)^```", BILLS.read_text(), re.MULTILINE | re.DOTALL)
    guard = yaml.safe_load(shown)["microcluster:guard"]
    assert GuardSection.model_validate(guard) and set(guard) == set(GuardSection.model_json_schema()["properties"])


def test_the_glossary_has_the_words_of_pages_and_screens_in_order() -> None:
    words = re.findall(r"^\| ([\w-]+) \|", GLOSSARY.read_text(), re.MULTILINE)[1:]
    assert words == sorted(words, key=str.lower)
    needed = "account adopt agent cause checkpoint claim end facts guard journal keep launcher mark node plan preflight rank run step supervisor WORD"
    assert set(needed.split()) <= set(words)


def test_the_first_order_names_the_price_of_each_stack() -> None:
    rows = re.findall(r"^\| (`[^|]+) \|.*\| ([\d.]+) \|$", FIRST_ORDER.read_text(), re.MULTILINE)
    said = {stack.strip("`"): price for stack, price in rows}
    assert said == {stack: f"{config.read_file(stack).cluster.rent_per_hour:.2f}" for stack in said} and len(said) == 5


def test_the_page_of_causes_has_the_limits_of_the_rules() -> None:
    text = " ".join(CAUSES.read_text().split())
    for said in (
        f"for {rules.NAN_STEPS} steps or {rules.NAN_S:.0f} s",
        f"does not answer for {rules.LOST_S:.0f} s",
        f"{rules.START_S:.0f} s until the first step, and {rules.STALL_GAPS:.0f} times the longest",
        f"the log is silent for {rules.HUNG_S:.0f} s",
        f"for {rules.REST_S:.0f} s on a node",
        f"{rules.EVALUATED_S:.0f} s after the first evaluation or {rules.UNSAVED_S:.0f} s after the first step",
        f"cannot list the shared drive for {rules.DRIVE_LOST_S:.0f} s",
        f"less than {rules.LOW_DISK_BYTES >> 30} GiB",
    ):
        assert said in text, said


def test_every_page_is_reached_from_the_readme() -> None:
    seen, todo = set(), [README]
    while todo:
        page = todo.pop()
        seen.add(page)
        linked = {(page.parent / path).resolve() for path, _ in LINK.findall(page.read_text()) if path.endswith(".md")}
        todo += [each for each in linked - seen if each.is_relative_to(ROOT)]
    assert set(PAGES) <= seen


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.partition("\n")[0])
def test_a_walk_has_at_most_twelve_steps_and_each_begins_with_a_file(walk: str) -> None:
    steps = re.findall(r"^(\d+)\. (?:`([^`]+)`)?", walk, re.MULTILINE)
    assert [int(number) for number, _ in steps] == list(range(1, len(steps) + 1))
    assert 3 <= len(steps) <= MOST_STEPS and len(WALKS) == 4
    assert [file for _, file in steps if not (file and (ROOT / file).is_file())] == []


def test_the_page_of_failures_has_every_cause_that_has_a_next_step() -> None:
    rows = re.findall(r"^\| (`[^|]+) \|", CAUSES.read_text(), re.MULTILINE)
    causes = [cause for row in rows for cause in re.findall(r"`([\w-]+)`", row)]
    assert len(causes) == len(set(causes)) and set(causes) == set(failure_hints.NEXT)


def test_the_page_of_the_emulator_names_only_settings_that_there_are() -> None:
    text = (ROOT / "docs" / "emulator.md").read_text().partition("### Settings")[2].partition("```")[0]
    named = set(re.findall(r"`(\w+)`", text))
    assert named - {each.name for each in dataclasses.fields(Settings)} == set()
    assert len(named) > 5


def test_the_example_has_each_change_of_the_guide_at_its_number() -> None:
    rows = re.findall(
        r"^\| (\d) \| [^|]+\| `([^`(]+)", (ROOT / "docs" / "one-gpu-to-many.md").read_text(), re.MULTILINE
    )
    example = (ROOT / "examples" / "horovod_regression" / "train.py").read_text()
    assert [number for number, _ in rows] == list("12345")
    for number, call in rows:
        assert re.search(rf"{re.escape(call)}\b.*# {number}$", example, re.MULTILINE), call
