"""Make the English-German sentences out of Debian package files, and a text of words: ``build.py FOLDER_OF_DEBS OUT``.

A launcher makes a job's files of them, as it does with archives from the internet.
"""

import hashlib
import io
import json
import sys
import tarfile
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import sentencepiece
from catalogs import Source, read_package
from cleaning import Pair, clean, split
from words import KINDS, TREEBANK_KINDS, texts

VOCABULARY_SIZE = 2048  # As many as the launcher learns; here they only measure lengths.
MAX_PIECES = 30
EVALUATION_PAIRS = 256
LANGUAGES = ("en", "de")
ARCHIVE = "sentences.tar"
WORDS = {"words.tar": KINDS, "words-10000.tar": TREEBANK_KINDS}


def main(debs: Path, out: Path) -> None:
    """Write the archive of sentences, and what they were made from, into ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    sources = [read_package(deb) for deb in sorted(debs.glob("*.deb"))]
    pairs = clean(message for source in sources for message in source.messages)
    pieces = _train_pieces(pairs)
    short = [pair for pair in pairs if all(len(pieces.encode(text)) <= MAX_PIECES for text in pair)]
    training, evaluation = split(short, EVALUATION_PAIRS)
    with tarfile.open(out / ARCHIVE, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name, part in (("train", training), ("eval", evaluation)):
            for side, language in enumerate(LANGUAGES):
                _add(archive, f"{name}.{language}", "".join(f"{pair[side]}\n" for pair in part))
    for file, kinds in WORDS.items():
        made = texts([english for english, _ in training], kinds)
        held = len(set(made["train"].split(" ")) - {""})
        if held != kinds:
            sys.exit(f"corpus: the training text of {file} has {held} different words and needs {kinds}: add packages")
        with tarfile.open(out / file, "w", format=tarfile.USTAR_FORMAT) as archive:
            for name, text in made.items():
                _add(archive, f"ptb.{name}.txt", text)
    _write(out / "LICENSES.json", [json.dumps([_record(source) for source in sources], indent=1, ensure_ascii=False)])
    _write(out / "SHA256SUMS", [f"{_sha256(path)}  {path.name}" for path in sorted(out.iterdir())])
    print(f"corpus: {len(training)} training and {len(evaluation)} evaluation pairs from {len(sources)} packages")


def _add(archive: tarfile.TarFile, name: str, text: str) -> None:
    """Add a file without a time or an owner, so that equal texts make an equal archive."""
    content = text.encode()
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


def _train_pieces(pairs: Iterable[Pair]) -> sentencepiece.SentencePieceProcessor:
    """Learn one vocabulary for both languages; one thread and no sampling, so equal input gives an equal model."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([text for pair in pairs for text in pair]),
        model_writer=model,
        model_type="bpe",
        vocab_size=VOCABULARY_SIZE,
        character_coverage=0.9995,
        num_threads=1,
        minloglevel=1,
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def _record(source: Source) -> dict[str, object]:
    """What LICENSES.json says about a source: everything but its texts."""
    return {**asdict(source), "messages": len(source.messages)}


def _write(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
