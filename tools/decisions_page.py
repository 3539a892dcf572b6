"""Write the list of docs/decisions/README.md from the headings of its pages: ``python -m tools.decisions_page``."""

import re
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "docs" / "decisions"
PAGE = FOLDER / "README.md"
HEAD = """# Decisions

What was chosen, why, and when to think again: one page for each topic. A decision that no longer holds is deleted; git remembers it. A new one is a
heading that says what was chosen and a few lines with the reason; `python -m tools.decisions_page` writes this list.
"""


def written() -> str:
    """Return the page as it should be."""
    parts = [HEAD]
    for page in sorted(FOLDER.glob("*.md")):
        if page != PAGE:
            title, *decisions = re.findall(r"^##? (.+)$", page.read_text(), re.MULTILINE)
            parts.append(
                f"\n## [{title.removeprefix('Decisions: ')}]({page.name})\n\n"
                + "".join(f"- {each}\n" for each in decisions)
            )
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(written())
