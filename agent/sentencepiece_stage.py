"""Learn sentence pieces and cut texts into them, in a process of its own, which a signal ends at once.

Arguments: ``learn PREFIX SIZE FLAGS FILE...``, the flags in one word, or ``encode MODEL FILE TARGET``.
"""

import os

from agent.staging_log import Progress
from agent.text_cleaning import count_lines, lines_of

LOOK_EVERY = 10000


def learn(prefix, size, flags, *files):
    import sentencepiece  # noqa: PLC0415 - only the image has it

    progress = Progress("learning " + size + " sentence pieces (no output until it is done)", None, "pieces")
    given = "--input={} --model_prefix={} --vocab_size={} ".format(",".join(files), prefix, size)
    sentencepiece.SentencePieceTrainer.Train(given + flags)
    progress.over(count_lines(prefix + ".vocab"))


def encode(model, source, target):
    import sentencepiece  # noqa: PLC0415 - only the image has it

    pieces = sentencepiece.SentencePieceProcessor()
    pieces.Load(model)
    progress = Progress("cutting " + os.path.basename(target) + " into pieces", count_lines(source), "lines")
    done = 0
    with open(target, "wb") as out:
        for line in lines_of(source):
            out.write(" ".join(pieces.EncodeAsPieces(line.strip())).encode("utf-8") + b"\n")
            done += 1
            if done % LOOK_EVERY == 0:
                progress.at(done)
    progress.over(done)


def main(verb, *arguments):
    {"learn": learn, "encode": encode}[verb](*arguments)
