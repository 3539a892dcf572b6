"""Every decision has a reason, and the list of them is that of their pages."""

import re

from tools import decisions_page


def test_every_decision_has_a_reason() -> None:
    for page in decisions_page.FOLDER.glob("*.md"):
        if page != decisions_page.PAGE:
            bodies = re.split(r"^## .+$", page.read_text(), flags=re.MULTILINE)[1:]
            assert bodies, page.name
            assert all(body.strip() for body in bodies), page.name


def test_the_list_of_decisions_is_that_of_their_pages() -> None:
    assert decisions_page.PAGE.read_text() == decisions_page.written(), "Write it again: python -m tools.decisions_page"
