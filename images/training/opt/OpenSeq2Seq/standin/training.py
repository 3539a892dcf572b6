"""The training: what happens at which step, in OpenSeq2Seq's order, and the checkpoints that it leaves."""

import os
import time
from collections.abc import Mapping

import horovod.tensorflow as hvd
import numpy
import piece_bleu
import tensorflow.compat.v1 as tf
from one_exchange import mean_gradients

from standin.configuration import Params
from standin.lines import finished_training, note, samples, say, train_loss, validation
from standin.model import EvaluationGraph, TrainingGraph, prepare, session
from standin.parallel_text import Batch, ParallelText, until_end

BENCH_START = 10  # The first steps are not counted in the average time.
CHECKPOINTS_KEPT = 5


def train(params: Params, eval_params: Params, checkpoint: str | None) -> None:
    """Join the other ranks, and train from ``checkpoint``, or from scratch, to the last step."""
    prepare()
    hvd.init()
    _say_once(note("Using horovod"))
    message = "Starting training from scratch"
    if checkpoint:
        message = f"Restored checkpoint from {checkpoint}. Resuming training"
    _say_once(note(message))
    Training(params, eval_params).run(checkpoint)


class Training:
    """One training run of one rank.

    Only the first rank writes. As upstream's, it knows nothing of what an earlier process wrote: old checkpoints and best models
    stay beside its own.
    """

    def __init__(self, params: Params, eval_params: Params) -> None:
        self._params, self._first = params, hvd.rank() == 0
        self._data = ParallelText(params, hvd.rank(), hvd.size())
        self._graph = TrainingGraph(params, self._data.vocabulary_size, mean_gradients)
        _say_built()
        _say_once(note(f"Total trainable parameters: {self._graph.parameters}"))
        self._evaluation = Evaluation(eval_params)
        _say_built()
        self._logdir, self._last_step, self._lowest = params["logdir"], params["max_steps"], float("inf")
        self._saver = tf.train.Saver(max_to_keep=CHECKPOINTS_KEPT, save_relative_paths=True)
        self._best = tf.train.Saver(max_to_keep=CHECKPOINTS_KEPT, save_relative_paths=True)
        self._seconds, self._objects, self._counted = 0.0, 0, 0
        self._saved_step: int | None = None
        self._loss_time = time.monotonic()

    def run(self, checkpoint: str | None) -> None:
        """Train from ``checkpoint``, or from scratch, to the last step."""
        objects = tf.placeholder(tf.float32, [])
        start, equalize, total = tf.global_variables_initializer(), hvd.broadcast_global_variables(0), _total(objects)
        if self._first:
            self._events = tf.summary.FileWriter(self._logdir, tf.get_default_graph())
        with session() as self._session:
            self._session.run(start)
            if checkpoint and self._first:
                self._saver.restore(self._session, checkpoint)
            self._session.run(equalize)
            self._train()
            every_objects = float(self._session.run(total, {objects: self._objects}))
        _say_once(finished_training(self._counted, self._seconds, every_objects))

    def _train(self) -> None:
        step = self._first_step = int(self._session.run(tf.train.get_global_step()))
        self._save(step)
        for done, batch in enumerate(self._data.batches()):
            if step >= self._last_step:
                break
            start = time.monotonic()
            step = self._one(step, batch)
            if done >= BENCH_START:
                self._seconds += time.monotonic() - start
                self._objects += batch.objects
                self._counted += 1
        self._save(step)

    def _one(self, step: int, batch: Batch) -> int:
        """Make one update and all that is due with it; return the step that follows."""
        graph, params = self._graph, self._params
        rate = params["lr_policy"](step, **params["lr_policy_params"])
        feed = {graph.source: batch.source, graph.target: batch.target, graph.learning_rate: rate}
        wanted = {"loss": graph.loss, "after": graph.step_after}
        showing = self._first and self._is_due("print_samples_steps", step)
        if showing:
            wanted["prediction"] = graph.prediction
        found = self._session.run(wanted, feed)
        if found["after"] == step:
            return step  # The update was skipped for an overflow, and nothing is said about it.
        if self._is_due("eval_steps", step) or step == self._last_step - 1:
            self._evaluate(step)
        if self._first and self._is_due("print_loss_steps", step):
            now = time.monotonic()
            say(train_loss(step, found["loss"], (now - self._loss_time) / params["print_loss_steps"]))
            self._loss_time = now
        if showing:
            say(samples("Train ", sentences(self._data, batch, found["prediction"])))
        if self._first and self._is_due("save_summaries_steps", step):
            self._write({"learning_rate": rate, "train_loss": found["loss"]}, step + 1)
        if self._is_due("save_checkpoint_steps", step + 1):
            self._save(step + 1)
        return step + 1

    def _evaluate(self, step: int) -> None:
        _say_once(note("Running evaluation on a validation set:"))
        loss, bleu = self._evaluation.run(self._session)
        if not self._first:
            return
        say(validation(loss, bleu))
        self._write({"eval_loss": loss, "Eval_BLEU_Score": bleu}, step)
        if loss < self._lowest:
            self._lowest = loss
            folder = os.path.join(self._logdir, "best_models")
            os.makedirs(folder, exist_ok=True)
            self._best.save(self._session, f"{folder}/val_loss={loss:.4f}-step", global_step=step + 1)

    def _write(self, scalars: Mapping[str, float], step: int) -> None:
        values = [tf.Summary.Value(tag=tag, simple_value=value) for tag, value in scalars.items()]
        self._events.add_summary(tf.Summary(value=values), step)
        self._events.flush()

    def _save(self, step: int) -> None:
        if self._first and step != self._saved_step:
            self._saver.save(self._session, os.path.join(self._logdir, "model.ckpt"), global_step=step)
            self._saved_step = step

    def _is_due(self, period: str, step: int) -> bool:
        """Whether a periodic action is due: at the first step, and every ``period`` steps after it or after the restored step."""
        return (step - self._first_step) % self._params[period] == 0


class Evaluation:
    """Every rank passes over as many batches as the whole file has, of its own lines, again and again."""

    def __init__(self, params: Params) -> None:
        self._data = ParallelText(params, hvd.rank(), hvd.size())
        self._graph = EvaluationGraph(params, self._data.vocabulary_size)
        self._mine = tf.placeholder(tf.float32, [2 + piece_bleu.COUNTS])
        self._all = _total(self._mine)
        self._batches = self._data.batches()

    def run(self, session: tf.Session) -> tuple[float, float]:
        """Return loss and BLEU of all ranks together."""
        sums = numpy.zeros(2 + piece_bleu.COUNTS)
        for _ in range(self._data.batches_of_file):
            sums += self._one(session, next(self._batches))
        loss, pairs, *counts = (float(value) for value in session.run(self._all, {self._mine: sums}))
        return loss / pairs, piece_bleu.score(counts)

    def _one(self, session: tf.Session, batch: Batch) -> numpy.ndarray:
        feed = {self._graph.source: batch.source, self._graph.target: batch.target}
        loss, prediction = session.run([self._graph.loss, self._graph.prediction], feed)
        say(samples("*****EVAL ", sentences(self._data, batch, prediction)))
        sums = numpy.array([loss * len(batch.target), len(batch.target)] + [0.0] * piece_bleu.COUNTS)
        for found, true in zip(prediction, batch.target[:, 1:], strict=True):
            sums[2:] += piece_bleu.counts(until_end(found), until_end(true))
        return sums


def sentences(data: ParallelText, batch: Batch, prediction: numpy.ndarray) -> dict[str, str]:
    """The first pair of a batch and what the model makes of it, as text."""
    rows = {"Source": batch.source[0], "Target": batch.target[0], "Prediction": prediction[0]}
    return {name: data.text(row) for name, row in rows.items()}


def _total(tensor: tf.Tensor) -> tf.Tensor:
    return hvd.allreduce(tensor, op=hvd.Sum)


def _say_once(text: str) -> None:
    """Say something on the first rank alone."""
    if hvd.rank() == 0:
        say(text)


def _say_built() -> None:
    """Say on every rank that a graph is there."""
    say(note(f"Building graph in Horovod rank: {hvd.rank()}"))
