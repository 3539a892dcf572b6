"""Turn raw texts into clean, shuffled pairs of sentences.

The rules are those of Moses' clean-corpus-n.perl, which prepares WMT's data everywhere, and of the WMT scorers' reading of SGML.

As a program of its own, which a signal ends at once, it learns sentence pieces and cuts texts into them. Arguments: ``learn PREFIX SIZE FLAGS
FILE...``, the flags in one word, or ``encode MODEL FILE TARGET``.
"""

import os
import random
import re
from array import array
from itertools import chain
from typing import Iterator, Sequence

from agent.data.progress import Progress, Refused

SPACES = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""White space of Perl in decoded text; Python's own class has four control characters more."""
RUN_OF_SPACES = re.compile("[" + SPACES + "]+")
SEGMENT = re.compile(r"<seg.*?>(.*)</seg>.*?")
LONGEST_RATIO = 9
LONGEST_WORD = 1000


def lines_of(path: str) -> Iterator[str]:
    """Yield a text's lines without their ends; only a line feed ends one."""
    with open(path, "rb") as file:
        for line in file:
            yield line.rstrip(b"\n").decode("utf-8", "replace")


def count_lines(path: str) -> int:
    """Return how many lines a file has; a last one without an end counts."""
    count, last = 0, b"\n"
    with open(path, "rb") as file:
        for piece in iter(lambda: file.read(1 << 20), b""):
            count, last = count + piece.count(b"\n"), piece[-1:]
    return count + (last != b"\n")


def gather(sources: Sequence[str], target: str) -> None:
    """Write the lines of some files into one, of SGML its segments alone."""
    progress = Progress("gathering " + os.path.basename(target), None, "lines")
    texts = (segments_of(source) if source.endswith(".sgm") else lines_of(source) for source in sources)
    with open(target, "wb") as out:
        for line in progress.count(chain.from_iterable(texts)):
            out.write(line.encode("utf-8") + b"\n")
    progress.over(progress.done)


def segments_of(path: str) -> Iterator[str]:
    for line in lines_of(path):
        if line.startswith("<seg "):
            yield re.sub(r"\s+", " ", SEGMENT.sub("\\1", line).strip())


def clean(sources: Sequence[str], targets: Sequence[str], lengths: Sequence[int]) -> None:
    """Write the pairs that are worth training on, of two files into two others."""
    counts = [count_lines(path) for path in sources]
    if counts[0] != counts[1]:
        names = " and ".join(os.path.basename(path) for path in sources)
        raise Refused(
            "cleaning: " + names + " have " + str(counts[0]) + " and " + str(counts[1]) + " lines, which do not pair"
        )
    progress, kept = Progress("cleaning", counts[0], "pairs"), 0
    with open(targets[0], "wb") as first, open(targets[1], "wb") as second:
        for pair in progress.count(zip(lines_of(sources[0]), lines_of(sources[1]))):
            one, other = (squeezed(line) for line in pair)
            if is_kept(one, other, lengths):
                first.write(one.encode("utf-8") + b"\n")
                second.write(other.encode("utf-8") + b"\n")
                kept += 1
    progress.over(kept)


def squeezed(line: str) -> str:
    """Return a line with single blanks and without the sign that means something else to Moses."""
    line = RUN_OF_SPACES.sub(" ", line.replace("|", ""))
    return line[line.startswith(" ") : len(line) - (line.endswith(" ") and len(line) > 1)]


def is_kept(one: str, other: str, lengths: Sequence[int]) -> bool:
    """Return whether a pair has the lengths, in words, that ``lengths`` (shortest, longest) allows, and comparable ones."""
    if not one or not other:
        return False
    words, others = one.split(" "), other.split(" ")
    if not all(lengths[0] <= len(side) <= lengths[1] for side in (words, others)):
        return False
    if max(len(words), len(others)) > LONGEST_RATIO * min(len(words), len(others)):
        return False
    return max(map(len, words)) <= LONGEST_WORD and max(map(len, others)) <= LONGEST_WORD


def shuffle(sources: Sequence[str], targets: Sequence[str], seed: int) -> None:
    """Write the lines of several files in one new order, the same for all, and for every time."""
    order = None
    for source, target in zip(sources, targets):
        with open(source, "rb") as file:
            lines = file.readlines()
        if order is None:
            order = array("L", range(len(lines)))
            random.Random(seed).shuffle(order)
        progress = Progress("shuffling " + os.path.basename(source), len(lines), "lines")
        with open(target, "wb") as out:
            out.writelines(lines[number] for number in order)
        progress.over(len(lines))


def learn(prefix: str, size: str, flags: str, *files: str) -> None:
    import sentencepiece  # noqa: PLC0415 - only the image has it

    progress = Progress("learning " + size + " sentence pieces (no output until it is done)", None, "pieces")
    given = "--input={} --model_prefix={} --vocab_size={} ".format(",".join(files), prefix, size)
    sentencepiece.SentencePieceTrainer.Train(given + flags)
    progress.over(count_lines(prefix + ".vocab"))


def encode(model: str, source: str, target: str) -> None:
    import sentencepiece  # noqa: PLC0415 - only the image has it

    pieces = sentencepiece.SentencePieceProcessor()
    pieces.Load(model)
    progress = Progress("cutting " + os.path.basename(target) + " into pieces", count_lines(source), "lines")
    with open(target, "wb") as out:
        for line in progress.count(lines_of(source)):
            out.write(" ".join(pieces.EncodeAsPieces(line.strip())).encode("utf-8") + b"\n")
    progress.over(progress.done)


def main(verb: str, *arguments: str) -> None:
    {"learn": learn, "encode": encode}[verb](*arguments)
