"""Every decision has a reason, and every page of them is linked."""

import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "decisions"
PAGES = [page for page in FOLDER.glob("*.md") if page.name != "README.md"]


def test_every_decision_has_a_reason() -> None:
    for page in PAGES:
        bodies = re.split(r"^## .+$", page.read_text(), flags=re.MULTILINE)[1:]
        assert bodies, page.name
        assert all(body.strip() for body in bodies), page.name


def test_the_list_of_pages_is_whole() -> None:
    linked = re.findall(r"\]\((\S+\.md)\)", (FOLDER / "README.md").read_text())
    assert sorted(linked) == sorted(page.name for page in PAGES)
