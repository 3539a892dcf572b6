"""Turn catalog messages into sentence pairs: plain words in both languages, of comparable length, each once."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable

Pair = tuple[str, str]

MIN_WORDS = 2
MAX_CHARACTERS = 160
MAX_LENGTH_RATIO = 2.2
MIN_LETTER_SHARE = 0.75
MARKUP = re.compile(r"[%${}<>\\|@=#*^~`\[\]]|&\w+;|://|\w[._/]\w+[._/]\w|(^|\s)-{1,2}\w")
QUOTES = str.maketrans({"„": '"', "“": '"', "”": '"', "»": '"', "«": '"', "’": "'", "‘": "'", "‚": "'", "…": "..."})


def clean(messages: Iterable[Pair]) -> list[Pair]:
    """The usable pairs in a stable order; an English text keeps the German one that occurs most."""
    votes: dict[str, Counter[str]] = {}
    for english, german in messages:
        pair = clean_text(english), clean_text(german)
        if usable(*pair):
            votes.setdefault(pair[0], Counter())[pair[1]] += 1
    return [(english, max(sorted(german), key=german.__getitem__)) for english, german in sorted(_once(votes).items())]


def clean_text(text: str) -> str:
    """One line, without keyboard accelerators, with plain quotation marks."""
    text = " ".join(text.translate(QUOTES).split())
    text = re.sub(r"\s*\((?:&|_)\w\)", "", text)
    for mark in "_&~":
        if text.count(mark) == 1:
            text = re.sub(rf"{mark}(?=\w)", "", text)
    return text.replace("&&", "&").removesuffix("...").removesuffix(":").strip()


def usable(english: str, german: str) -> bool:
    """Whether a cleaned pair teaches a translation."""
    texts = english, german
    if any(MARKUP.search(text) or "_" in text or len(text) > MAX_CHARACTERS for text in texts):
        return False
    if any(_letter_share(text) < MIN_LETTER_SHARE for text in texts) or len(english.split()) < MIN_WORDS:
        return False
    longer, shorter = max(map(len, texts)), min(map(len, texts))
    return longer <= MAX_LENGTH_RATIO * shorter and english.casefold() != german.casefold()


def split(pairs: Iterable[Pair], evaluation_size: int) -> tuple[list[Pair], list[Pair]]:
    """Training and evaluation pairs, chosen by the hash of the English text alone, so that no pair ever changes sides."""
    ordered = sorted(pairs, key=lambda pair: hashlib.sha256(pair[0].casefold().encode()).digest())
    return ordered[evaluation_size:], ordered[:evaluation_size]


def _once(votes: dict[str, Counter[str]]) -> dict[str, Counter[str]]:
    """Merge texts that differ in case only, under the spelling that sorts first."""
    spelling: dict[str, str] = {}
    merged: dict[str, Counter[str]] = {}
    for english in sorted(votes):
        first = spelling.setdefault(english.casefold(), english)
        merged.setdefault(first, Counter()).update(votes[english])
    return merged


def _letter_share(text: str) -> float:
    return sum(character.isalpha() or character == " " for character in text) / max(1, len(text))
