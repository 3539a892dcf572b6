"""Validation errors of values from outside, as one line."""

from pydantic import ValidationError


def problems_of(wrong: ValidationError) -> str:
    """Each problem with its place."""
    return "; ".join(": ".join([*map(str, each["loc"]), each["msg"]]) for each in wrong.errors())
