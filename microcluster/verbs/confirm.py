"""Ask the person once, before something that cannot be undone."""

from __future__ import annotations

from microcluster.plain_text import one_line, say


def agrees(question: str) -> bool:
    """Return whether the person says yes; nobody at the keyboard is a no."""
    try:
        return input(f"{one_line(question)} Only then answer yes: ").strip().lower() == "yes"
    except EOFError:
        say("")
        return False
