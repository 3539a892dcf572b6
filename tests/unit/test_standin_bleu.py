"""BLEU as counts that ranks can add up."""

import pytest
from standin.bleu import COUNTS, counts, score


def test_the_same_sentence_scores_one():
    assert score(counts([5, 6, 7, 8, 9], [5, 6, 7, 8, 9])) == 1.0


def test_nothing_in_common_scores_a_plain_zero_and_too_little_in_common_a_rounded_one():
    assert str(score(counts([5, 6, 7, 8], [1, 2, 3, 4]))) == "0"
    assert str(score(counts([1, 2, 7, 8], [1, 2, 3, 4]))) == "0.0"


def test_a_short_translation_pays_for_its_brevity():
    assert score(counts([1, 2, 3, 4], [1, 2, 3, 4, 5])) == pytest.approx(0.7788, abs=1e-4)


def test_a_repeated_word_counts_as_often_as_the_reference_has_it():
    matches = counts([7, 7, 7], [7, 8])[0]
    assert matches == 1


def test_counts_of_sentences_add_up_to_those_of_a_corpus():
    one, other = counts([1, 2, 3, 4], [1, 2, 3, 4]), counts([1, 2, 9, 4], [1, 2, 3, 4])
    total = [a + b for a, b in zip(one, other, strict=True)]
    assert len(total) == COUNTS
    assert 0.5 < score(total) < 1.0
