"""Make the English-German sentences out of Debian package files, and a text of words: ``build.py FOLDER_OF_DEBS OUT``.

A launcher makes a job's files of them, as it does with archives from the internet.
"""

import hashlib
import io
import json
import sys
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import sentencepiece
from catalogs import read_package
from cleaning import Pair, clean, split
from words import KINDS, TREEBANK_KINDS, texts

VOCABULARY_SIZE = 2048  # As many as the launcher learns; here they only measure lengths.
MAX_PIECES = 30
EVALUATION_PAIRS = 256
LANGUAGES = ("en", "de")
ARCHIVE = "sentences.tar"
WORDS = {"words.tar": KINDS, "words-10000.tar": TREEBANK_KINDS}


def main(debs: Path, out: Path) -> None:
    """Write the archives of sentences and of words, and what they were made from, into ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    sources, messages = [], []
    for deb in sorted(debs.glob("*.deb")):
        source, own = read_package(deb)
        sources.append(source)
        messages += own
    pairs = clean(messages)
    pieces = _train_pieces(pairs)
    short = [pair for pair in pairs if all(len(pieces.encode(text)) <= MAX_PIECES for text in pair)]
    training, evaluation = split(short, EVALUATION_PAIRS)
    sentences = {}
    for name, part in (("train", training), ("eval", evaluation)):
        for side, language in enumerate(LANGUAGES):
            sentences[f"{name}.{language}"] = "".join(f"{pair[side]}\n" for pair in part)
    _pack(out / ARCHIVE, sentences)
    for file, kinds in WORDS.items():
        made = texts([english for english, _ in training], kinds)
        held = len(set(made["train"].split(" ")) - {""})
        if held != kinds:
            sys.exit(f"corpus: the training text of {file} has {held} different words and needs {kinds}: add packages")
        _pack(out / file, {f"ptb.{name}.txt": text for name, text in made.items()})
    (out / "LICENSES.json").write_text(json.dumps(sources, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(out.iterdir())]
    (out / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")
    print(f"corpus: {len(training)} training and {len(evaluation)} evaluation pairs from {len(sources)} packages")


def _pack(path: Path, files: Mapping[str, str]) -> None:
    """Write an archive of files without a time or an owner, so that equal texts make an equal archive."""
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name, text in files.items():
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


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
