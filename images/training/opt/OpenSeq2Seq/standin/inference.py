"""Translating with the model of a checkpoint, by one process without Horovod."""

from pathlib import Path

import tensorflow.compat.v1 as tf

from standin.configuration import Params
from standin.lines import note, say
from standin.model import EvaluationGraph, prepare, session
from standin.parallel_text import END, PAD, START, ParallelText, until_end


def infer(params: Params, checkpoint: str, output: Path) -> None:
    """Write one line of pieces for each source line; the most likely piece follows, whatever the beam of the configuration."""
    prepare()
    data = ParallelText(params)
    graph = EvaluationGraph(params, data.vocabulary_size)
    further = params["decoder_params"]["extra_decode_length"]
    say(note(f"Loading model from {checkpoint}"))
    with session() as reading, output.open("w", encoding="utf-8") as written:
        tf.train.Saver(tf.trainable_variables()).restore(reading, checkpoint)
        for source, _ in data.pairs:
            pieces = [START]
            while pieces[-1] != END and len(pieces) <= len(source) + further:
                # The last of the target is never read: it stands for the piece that is asked for.
                feed = {graph.source: [source], graph.target: [[*pieces, PAD]]}
                pieces.append(int(reading.run(graph.prediction, feed)[0, -1]))
            written.write(data.text(until_end(pieces[1:])) + "\n")
    say(note("Finished inference"))
