"""Files under tests/frozen, with which a test compares what it has made; FREEZE=1 writes them anew."""

import json
import os
import re
from collections.abc import Iterable
from difflib import unified_diff
from pathlib import Path
from typing import Any

FROZEN = Path(__file__).parents[1] / "frozen"


def as_json(found: Any) -> str:
    """Return a document as its file holds it."""
    return json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def compare(name: str, now: str) -> None:
    """Compare a text with the file of that name."""
    file = FROZEN / name
    if os.environ.get("FREEZE"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(now)
    assert file.exists(), f"new: FREEZE=1 pytest writes {name}"
    changed = "\n".join(
        unified_diff(file.read_text().splitlines(), now.splitlines(), "frozen", "now", lineterm="", n=1)
    )
    assert not changed, f"{name} has changed; FREEZE=1 pytest writes it anew:\n{changed}"


def with_names(text: str, patterns: Iterable[tuple[str, str]]) -> str:
    """Replace values that differ each time by WORD-1, WORD-2, ...: the same value always by the same name."""
    for word, pattern in patterns:
        known: dict[str, str] = {}
        text = re.sub(pattern, lambda found, w=word, k=known: k.setdefault(found[0], f"{w}-{len(k) + 1}"), text)
    return text
