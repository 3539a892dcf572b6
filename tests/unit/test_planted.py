"""Anchors of `python -m tests.planted`, which takes minutes and is no part of `make test`."""

from tests.planted.anchors import ANCHORS


def test_every_anchor_has_its_line_once_and_its_test() -> None:
    assert [each for anchor in ANCHORS if (each := anchor.looseness())] == []
