"""Turn sentences into sentence pieces and back.

Arguments: ``encode`` or ``decode``, the SentencePiece model. Lines in on standard input, as many lines out.
"""

import sys

import sentencepiece


def main(direction, model):
    pieces = sentencepiece.SentencePieceProcessor()
    pieces.Load(model)
    convert = {
        "encode": lambda line: " ".join(pieces.EncodeAsPieces(line)),
        "decode": lambda line: pieces.DecodePieces(line.split(" ")),
    }[direction]
    # Not splitlines: it also splits at characters that may stand inside a sentence.
    for line in sys.stdin.buffer.read().decode("utf-8").split("\n")[:-1]:
        sys.stdout.buffer.write((convert(line) + "\n").encode("utf-8"))


if __name__ == "__main__":
    main(*sys.argv[1:])
