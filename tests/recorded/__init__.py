"""Real answers of tools, small, as facts; each is a TOML file in the folder of its reader, and a new one needs no code.

A file says ``source`` (program with version, or the report that it is from), ``answer`` (what was printed; ``answer_base64`` where it
is no text), ``exit_code`` (default 0), and in the table ``expected`` what the reader makes of it.
"""

import base64
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Recorded:
    """One answer of a tool."""

    source: str
    answer: str = ""
    answer_base64: str = ""
    exit_code: int = 0
    asked: dict[str, Any] = field(default_factory=dict)
    """Options of the reader, where it has any."""
    expected: dict[str, Any] = field(default_factory=dict)

    @property
    def output(self) -> bytes:
        return base64.b64decode(self.answer_base64) if self.answer_base64 else self.answer.encode()


def recorded(reader: str) -> Any:
    """Return the decorator that runs a test once with each answer in a reader's folder."""
    files = sorted((FOLDER / reader).glob("*.toml"))
    assert files, f"no answers in {FOLDER / reader}"
    answers = [pytest.param(Recorded(**tomllib.loads(file.read_text())), id=file.stem) for file in files]
    return pytest.mark.parametrize("answer", answers)
