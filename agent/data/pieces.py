"""Turn sentences into sentence pieces and back.

Arguments: ``encode`` or ``decode``, the SentencePiece model. Lines in on standard input, as many lines out.
"""

import sys

import sentencepiece


def main(direction: str, model: str) -> None:
    pieces = sentencepiece.SentencePieceProcessor()
    pieces.Load(model)
    # Not splitlines: it also splits at characters that may stand inside a sentence.
    for line in sys.stdin.buffer.read().decode("utf-8").split("\n")[:-1]:
        done = " ".join(pieces.EncodeAsPieces(line)) if direction == "encode" else pieces.DecodePieces(line.split(" "))
        sys.stdout.buffer.write((done + "\n").encode("utf-8"))


if __name__ == "__main__":
    main(*sys.argv[1:])
