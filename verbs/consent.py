"""Ask the person once, before something that cannot be undone."""

from __future__ import annotations


def agrees(question: str) -> bool:
    """Return whether the person says yes; nobody at the keyboard is a no."""
    try:
        return input(f"{question} Only then answer yes: ").strip().lower() == "yes"
    except EOFError:
        print()
        return False
