"""Make the tokenised English-German corpus out of Debian package files: ``build.py FOLDER_OF_DEBS OUT``."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import sentencepiece
from catalogues import Source, read_package
from cleaning import Pair, clean, split

VOCABULARY_SIZE = 2048  # A multiple of 8, as the trainer demands.
MAX_PIECES = 30
EVALUATION_PAIRS = 256
LANGUAGES = ("en", "de")


def main(debs: Path, out: Path) -> None:
    """Write the files that a job reads, and what they were made from, into ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    sources = [read_package(deb) for deb in sorted(debs.glob("*.deb"))]
    pairs = clean(message for source in sources for message in source.messages)
    pieces = _train_pieces(pairs, out)
    short = [pair for pair in pairs if all(len(pieces.encode(text)) <= MAX_PIECES for text in pair)]
    training, evaluation = split(short, EVALUATION_PAIRS)
    for name, part in (("train", training), ("eval", evaluation)):
        for side, language in enumerate(LANGUAGES):
            lines = (" ".join(pieces.encode(pair[side], out_type=str)) for pair in part)
            _write(out / f"{name}.{language}.tok", lines)
    _write(out / "LICENSES.json", [json.dumps([_record(source) for source in sources], indent=1, ensure_ascii=False)])
    _write(out / "SHA256SUMS", [f"{_sha256(path)}  {path.name}" for path in sorted(out.iterdir())])
    print(f"corpus: {len(training)} training and {len(evaluation)} evaluation pairs from {len(sources)} packages")


def _train_pieces(pairs: Iterable[Pair], out: Path) -> sentencepiece.SentencePieceProcessor:
    """Learn one vocabulary for both languages; one thread and no sampling, so equal input gives an equal model."""
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([text for pair in pairs for text in pair]),
        model_prefix=str(out / "m_common"),
        model_type="bpe",
        vocab_size=VOCABULARY_SIZE,
        character_coverage=0.9995,
        pad_id=0,
        eos_id=1,
        bos_id=2,
        unk_id=3,
        num_threads=1,
        minloglevel=1,
    )
    return sentencepiece.SentencePieceProcessor(model_file=str(out / "m_common.model"))


def _record(source: Source) -> dict[str, object]:
    """What LICENSES.json says about a source: everything but its texts."""
    return {**asdict(source), "messages": len(source.messages)}


def _write(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
