"""The texts of our own language model: how they are made, and how the ranks share their rows."""

from pathlib import Path

import numpy
import pytest
from lm.words import Texts, batches, updates
from words import EVERY, KINDS, RARE, texts
from words import SENTENCES as USED

SENTENCES = [f"Open the file {number}, and close word{'abcdefghij'[number % 10]} again" for number in range(100)]


def test_a_text_is_in_lower_case_with_numbers_and_rare_words_replaced() -> None:
    made = texts(["skipped", "skipped", *["Open 3 Files!"] * 8])
    assert made["train"] == " open N files ! \n" * 8
    assert made["valid"] == f" {RARE} \n"


def test_no_sentence_is_in_two_texts_and_the_vocabulary_has_a_limit() -> None:
    numbered = [" ".join(f"{'abcdefghij'[int(digit)] * 3}" for digit in f"{number:04}") for number in range(5000)]
    made = {name: text.splitlines() for name, text in texts(numbered).items()}
    assert sum(map(len, made.values())) == 5000
    assert len(made["valid"]) == len(made["test"]) == 5000 // EVERY
    many = texts([f"word{a}{b}{c}" for a in "abcdefghij" for b in "abcdefghij" for c in "klmnopqrstuvwxyz"])
    assert len({*many["train"].split(), "<EOS>"}) == KINDS


def test_later_sentences_bring_the_training_text_to_the_wanted_vocabulary() -> None:
    first = ["one sentence of few words"] * USED
    later = [f"few words and {a}{b}{c}" for a in "abcdefghij" for b in "abcdefghij" for c in "abcdefghij"]
    made = texts([*first, *later], 500)
    assert len(set(made["train"].split(" ")) - {""}) == 500
    assert made["train"].count("\n") < USED + 500, "not more of them than it takes"
    assert made["valid"].count("\n") == USED // EVERY
    assert texts([*first, *later], 5)["train"].count("\n") == USED - 2 * USED // EVERY


@pytest.fixture
def folder(tmp_path: Path) -> str:
    for name, text in texts(SENTENCES).items():
        (tmp_path / f"ptb.{name}.txt").write_text(text)
    return str(tmp_path)


def test_a_line_end_is_a_word_and_unknown_words_are_left_out(folder, tmp_path):
    (tmp_path / "ptb.test.txt").write_text(" open unheard-of \n")
    read = Texts.read(folder)
    assert len(read.test) == 2
    assert read.vocabulary_size == len({*(tmp_path / "ptb.train.txt").read_text().split(), "<EOS>"})


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_the_ranks_share_the_rows_of_every_batch_and_leave_none_out(ranks: int) -> None:
    text = numpy.arange(20 * 41)
    shares = [list(batches(text, 20, 10, share=rank, shares=ranks)) for rank in range(ranks)]
    whole = list(batches(text, 20, 10))
    assert len(whole) == updates(text, 20, 10) == 4
    for number, (words, following) in enumerate(whole):
        assert numpy.array_equal(numpy.concatenate([share[number][0] for share in shares]), words)
        assert numpy.array_equal(following, words + 1)


def test_a_text_that_is_too_short_is_refused_with_its_length() -> None:
    with pytest.raises(ValueError, match="a text of 30 words is too short for 20 rows of 10 words"):
        updates(numpy.arange(30), 20, 10)
