"""Raw texts into pairs, by the rules of Moses' script and of sacreBLEU."""

import subprocess
import sys
from pathlib import Path

import pytest

from agent.data import text_cleaning
from agent.data.progress import Refused


@pytest.mark.parametrize(
    ("one", "other", "kept"),
    [
        ("a b", "c d", True),
        ("", "c", False),
        (" \t ", "c", False),
        ("a " * 80, "c " * 80, True),
        ("a " * 81, "c " * 80, False),
        ("a " * 9, "c", True),
        ("a " * 10, "c", False),
        ("x" * 1000, "c", True),
        ("x" * 1001, "c", False),
    ],
    ids=["two words", "empty", "blank", "80", "81", "ratio 9", "ratio 10", "long word", "too long a word"],
)
def test_pairs_are_kept_as_moses_does(one, other, kept):
    for pair in ((one, other), (other, one)):
        assert text_cleaning.is_kept(*(text_cleaning.squeezed(line) for line in pair), [1, 80]) is kept


def test_white_space_is_what_perl_takes_for_it_and_the_factor_sign_goes():
    assert text_cleaning.squeezed(" a\u00a0\t b\u2028c|d\r\x85") == "a b cd"
    assert text_cleaning.squeezed("a\x1cb") == "a\x1cb"


def test_texts_that_do_not_pair_are_refused_with_their_numbers(tmp_path):
    paths = [tmp_path / name for name in ("train.en", "train.de", "x", "y")]
    paths[0].write_text("a\nb\nc\n")
    paths[1].write_text("a\nb\n")
    with pytest.raises(Refused, match="train.en and train.de have 3 and 2 lines, which do not pair"):
        text_cleaning.clean(list(map(str, paths[:2])), list(map(str, paths[2:])), [1, 80])


def test_only_a_line_feed_ends_a_line_so_that_pairs_stay_pairs(tmp_path):
    one, both = tmp_path / "one", tmp_path / "both"
    one.write_bytes("a\u2028b\x85c\rd\ne".encode())
    assert text_cleaning.count_lines(str(one)) == 2
    text_cleaning.gather([str(one), str(one)], str(both))
    assert both.read_bytes().count(b"\n") == 4


def test_of_sgml_the_segments_are_taken_as_sacrebleu_does(tmp_path):
    sgml, plain = tmp_path / "t.sgm", tmp_path / "t"
    sgml.write_text('<doc id="1">\n<p>\n<seg id="1"> A  &amp; b </seg>\n<seg id="2">C.</seg>\n</p>\n', encoding="utf-8")
    text_cleaning.gather([str(sgml)], str(plain))
    assert plain.read_text() == "A &amp; b\nC.\n"


def test_pairs_are_shuffled_together_and_every_time_the_same(tmp_path):
    sources = [str(tmp_path / name) for name in ("en", "de")]
    for path in sources:
        with open(path, "w") as file:
            file.writelines(f"{number}\n" for number in range(1000))
    first, again = [[str(tmp_path / f"{time}{name}") for name in ("en", "de")] for time in (1, 2)]
    text_cleaning.shuffle(sources, first, 16)
    shuffle = "import sys; from agent.data.text_cleaning import shuffle; shuffle(sys.argv[1:3], sys.argv[3:5], 16)"
    folder = Path(text_cleaning.__file__).parents[2]
    subprocess.run([sys.executable, "-c", shuffle, *sources, *again], cwd=folder, check=True, capture_output=True)
    texts = [open(path).read() for path in first + again]  # noqa: SIM115
    assert len(set(texts)) == 1
    assert texts[0] != open(sources[0]).read()  # noqa: SIM115
    assert sorted(texts[0].split()) == sorted(open(sources[0]).read().split())  # noqa: SIM115
