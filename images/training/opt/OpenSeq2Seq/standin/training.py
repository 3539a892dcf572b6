"""The training loop: what happens at which step, in OpenSeq2Seq's order, and the checkpoints that it leaves."""

import os
import time
from collections.abc import Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from standin.lines import finished_training, samples, say, train_loss, validation
from standin.model import TrainingGraph, session
from standin.parallel_text import Batch, ParallelText
from standin.reading import Evaluation, sentences
from standin.world import World

BENCH_START = 10  # The first steps are not counted in the average time.
CHECKPOINTS_KEPT = 5


class Training:
    """One training run of one rank; ``evaluation`` is None in mode train.

    Only the first rank writes. As upstream's, it knows nothing of what an earlier process wrote: old checkpoints and best models
    stay beside its own.
    """

    def __init__(
        self,
        params: Mapping[str, Any],
        graph: TrainingGraph,
        data: ParallelText,
        evaluation: Evaluation | None,
        world: World,
    ) -> None:
        self._params, self._graph, self._data, self._evaluation, self._world = params, graph, data, evaluation, world
        self._logdir, self._last_step, self._lowest = params["logdir"], params["max_steps"], float("inf")
        self._saver = tf.train.Saver(max_to_keep=CHECKPOINTS_KEPT, save_relative_paths=True)
        self._best = tf.train.Saver(max_to_keep=CHECKPOINTS_KEPT, save_relative_paths=True)
        self._seconds, self._objects, self._counted = 0.0, 0, 0
        self._saved_step: int | None = None
        self._loss_time = self._scalar_time = time.monotonic()

    def run(self, checkpoint: str | None) -> None:
        """Train from ``checkpoint``, or from scratch, to the last step or the end of the data."""
        objects = tf.placeholder(tf.float32, [])
        start, equalize, total = tf.global_variables_initializer(), self._world.equalize(), self._world.total(objects)
        if self._world.first:
            self._events = tf.summary.FileWriter(self._logdir, tf.get_default_graph())
        with session() as self._session:
            self._session.run(start)
            if checkpoint and self._world.first:
                self._saver.restore(self._session, checkpoint)
            self._session.run(equalize)
            self._first_step = self._step_made()
            self._train()
            every_objects = float(self._session.run(total, {objects: self._objects}))
        if self._world.first:
            say(finished_training(self._counted, self._seconds, every_objects))

    def _train(self) -> None:
        if self._world.first:
            tf.train.write_graph(tf.get_default_graph(), self._logdir, "graph.pbtxt")
        step = self._first_step
        self._save(step)
        batches, done = self._data.batches(), 0
        try:
            while step < self._last_step:
                start, batch = time.monotonic(), next(batches)
                step = self._one(step, batch)
                if done >= BENCH_START:
                    self._seconds += time.monotonic() - start
                    self._objects += batch.objects
                    self._counted += 1
                done += 1
        except StopIteration:
            # Upstream takes the end of any data for the end of the training; the interrupted update has been made.
            step = self._step_made()
        self._save(step)

    def _one(self, step: int, batch: Batch) -> int:
        """Make one update and all that is due with it; return the step that follows."""
        graph, params = self._graph, self._params
        rate = params["lr_policy"](step, **params["lr_policy_params"])
        feed = {graph.source: batch.source, graph.target: batch.target, graph.learning_rate: rate}
        wanted = {"loss": graph.loss, "norm": graph.gradient_norm, "after": graph.step_after}
        showing = self._world.first and self._is_due("print_samples_steps", step)
        if showing:
            wanted["prediction"] = graph.prediction
        found = self._session.run(wanted, feed)
        if found["after"] == step:
            return step  # The update was skipped for an overflow, and nothing is said about it.
        if self._evaluation and (self._is_due("eval_steps", step) or step == self._last_step - 1):
            self._evaluate(self._evaluation, step)
        if self._world.first and self._is_due("print_loss_steps", step):
            now = time.monotonic()
            say(train_loss(step, found["loss"], (now - self._loss_time) / params["print_loss_steps"]))
            self._loss_time = now
        if showing:
            say(samples("Train ", sentences(self._data, batch, found["prediction"])))
        if self._world.first and self._is_due("save_summaries_steps", step):
            self._summarize(step, rate, found)
        if self._is_due("save_checkpoint_steps", step + 1):
            self._save(step + 1)
        return step + 1

    def _evaluate(self, evaluation: Evaluation, step: int) -> None:
        self._world.note("Running evaluation on a validation set:")
        loss, bleu = evaluation.run(self._session)
        if self._world.first:
            say(validation(loss, bleu))
        if self._world.first:
            self._write({"eval_loss": loss, "Eval_BLEU_Score": bleu}, step)
        if self._world.first and loss < self._lowest:
            self._lowest = loss
            folder = os.path.join(self._logdir, "best_models")
            os.makedirs(folder, exist_ok=True)
            self._best.save(self._session, os.path.join(folder, f"val_loss={loss:.4f}-step"), global_step=step + 1)

    def _summarize(self, step: int, rate: float, found: Mapping[str, Any]) -> None:
        now = time.monotonic()
        scalars = {
            "learning_rate": rate,
            "Loss_Optimization/global_gradient_norm": found["norm"],
            "train_loss": found["loss"],
        }
        if step > 0:
            scalars["global_step/sec"] = self._params["save_summaries_steps"] / (now - self._scalar_time)
        self._scalar_time = now
        self._write(scalars, step + 1)

    def _write(self, scalars: Mapping[str, float], step: int) -> None:
        values = [tf.Summary.Value(tag=tag, simple_value=value) for tag, value in scalars.items()]
        self._events.add_summary(tf.Summary(value=values), step)
        self._events.flush()

    def _save(self, step: int) -> None:
        if self._world.first and step != self._saved_step:
            self._saver.save(self._session, os.path.join(self._logdir, "model.ckpt"), global_step=step)
            self._saved_step = step

    def _is_due(self, period: str, step: int) -> bool:
        """Whether it is the first step or some of these periods after it; after a resume they begin with the restored step."""
        return (step - self._first_step) % self._params[period] == 0

    def _step_made(self) -> int:
        return int(self._session.run(tf.train.get_global_step()))
