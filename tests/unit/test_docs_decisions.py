"""Every decision has a reason, and the list of decisions is that of their pages."""

import re

from docs.tools import pages

PAGES = [page for page in pages.DECISIONS.parent.glob("*.md") if page != pages.DECISIONS]


def test_every_decision_has_a_reason() -> None:
    for page in PAGES:
        bodies = re.split(r"^## .+$", page.read_text(), flags=re.MULTILINE)[1:]
        assert bodies, page.name
        assert all(body.strip() for body in bodies), page.name


def test_the_list_of_decisions_is_that_of_their_pages() -> None:
    assert pages.DECISIONS.read_text() == pages.decisions(), "Write it again: python -m docs.tools.pages"
