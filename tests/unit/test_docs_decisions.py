"""The index of the decisions says what their pages say."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "decisions"
PAGES = sorted(page for page in FOLDER.glob("*.md") if page.name != "README.md")
DECISION = re.compile(
    r"^## (.+)\n\*(\d{4}-\d\d-\d\d), (holds|corrected [^*]+|superseded by [^*]+)\*\n\n\S", re.MULTILINE
)
ROW = re.compile(r"^\| (.+) \| (\d{4}-\d\d-\d\d) \| (\w+) \| \[([\w-]+)\]\(\4\.md\) \|$", re.MULTILINE)


def test_every_decision_has_a_date_a_status_and_a_reason() -> None:
    for page in PAGES:
        text = page.read_text()
        assert len(DECISION.findall(text)) == len(re.findall(r"^## ", text, re.MULTILINE)) > 0, page.name


def test_the_index_lists_every_decision_and_no_other() -> None:
    decided = [
        (title, date, status.split()[0], page.stem)
        for page in PAGES
        for title, date, status in DECISION.findall(page.read_text())
    ]
    listed = ROW.findall((FOLDER / "README.md").read_text())
    assert sorted(listed) == sorted(decided)
    assert len(set(title for title, *_ in decided)) == len(decided)
