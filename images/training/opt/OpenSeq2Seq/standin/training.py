"""The training loop: what happens at which step, in OpenSeq2Seq's order."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from standin.checkpoints import Checkpoints, restore
from standin.evaluation import Evaluation, sentences
from standin.events import Events
from standin.graphs import TrainingGraph, session
from standin.lines import finished_training, note, samples, say, train_loss, validation
from standin.parallel_text import Batch, EndOfDataError, ParallelText
from standin.schedule import Every
from standin.world import Alone

BENCH_START = 10  # The first steps are not counted in the average time.


class Training:
    """One training run of one rank; ``evaluation`` is None in mode train."""

    def __init__(
        self,
        params: Mapping[str, Any],
        graph: TrainingGraph,
        data: ParallelText,
        evaluation: Evaluation | None,
        world: Alone,
    ) -> None:
        self._params, self._graph, self._data, self._evaluation, self._world = params, graph, data, evaluation, world
        self._first = world.rank == 0
        names = (
            "eval_steps",
            "print_loss_steps",
            "print_samples_steps",
            "save_summaries_steps",
            "save_checkpoint_steps",
        )
        self._due = {name: Every(params.get(name)) for name in names}
        self._epoch_steps = data.batches_of(world.size, whole_file=False)
        self._last_step = params["max_steps"] if "max_steps" in params else self._epoch_steps * params["num_epochs"]
        self._seconds, self._objects, self._counted = 0.0, 0, 0
        self._loss_time = self._scalar_time = time.monotonic()
        self._objects_mine = tf.placeholder(tf.float32, [])
        self._objects_all = world.total(self._objects_mine)

    def run(self, checkpoint: str | None) -> None:
        """Train from ``checkpoint``, or from scratch, to the last step or the end of the data."""
        writes = self._first and self._params.get("save_checkpoint_steps") is not None
        self._checkpoints = Checkpoints(self._params) if writes else None
        scalars = self._first and self._params.get("save_summaries_steps") is not None
        self._events = Events(self._params["logdir"]) if scalars else None
        start, equalise = tf.global_variables_initializer(), self._world.equalise()
        with session() as self._session:
            self._session.run(start)
            if checkpoint and self._first:
                restore(self._session, checkpoint)
            self._session.run(equalise)
            self._train(int(self._session.run(tf.train.get_global_step())))
            total = self._session.run(self._objects_all, {self._objects_mine: self._objects})
        if self._first:
            say(finished_training(self._counted, self._seconds, float(total)))

    def _train(self, step: int) -> None:
        if self._checkpoints:
            self._checkpoints.write_graph()
        self._save(step)
        batches, done = self._data.batches(), 0
        try:
            while step < self._last_step:
                start, batch = time.monotonic(), next(batches)
                step = self._one(step, batch)
                if done >= self._params.get("bench_start", BENCH_START):
                    self._count(time.monotonic() - start, batch)
                done += 1
        except EndOfDataError:
            # Upstream takes the end of any data for the end of the training; the interrupted update has been made.
            step = int(self._session.run(tf.train.get_global_step()))
        if self._checkpoints and not self._due["save_checkpoint_steps"].was(step):
            self._checkpoints.save(self._session, step)

    def _one(self, step: int, batch: Batch) -> int:
        """Make one update and all that is due with it; return the step that follows."""
        graph, policy = self._graph, self._params["lr_policy"]
        rate = policy(step, **self._params.get("lr_policy_params", {}))
        feed = {graph.source: batch.source, graph.target: batch.target, graph.learning_rate: rate}
        wanted = {"loss": graph.loss, "norm": graph.gradient_norm, "after": graph.step_after}
        if graph.loss_scale is not None:
            wanted["scale"] = graph.loss_scale
        if showing := self._first and self._due["print_samples_steps"].due(step):
            wanted["prediction"] = graph.prediction
        found = self._session.run(wanted, feed)
        if found["after"] == step:
            return step  # The update was skipped for an overflow, and nothing is said about it.
        self._evaluate(step)
        self._tell_loss(step, found["loss"])
        if showing:
            say(samples("Train ", sentences(self._data, batch, found["prediction"])))
        self._write_scalars(step, rate, found)
        self._save(step + 1)
        return step + 1

    def _evaluate(self, step: int) -> None:
        if self._evaluation is None or not (self._due["eval_steps"].due(step) or step == self._last_step - 1):
            return
        if self._first:
            say(note("Running evaluation on a validation set:"))
        result = self._evaluation.run(self._session)
        if not self._first:
            return
        say(validation(result.loss, result.bleu))
        if self._events:
            self._events.write({"eval_loss": result.loss, "Eval_BLEU_Score": result.bleu}, step)
        if self._checkpoints:
            self._checkpoints.save_if_best(self._session, result.loss, step)

    def _tell_loss(self, step: int, loss: float) -> None:
        if self._first and self._due["print_loss_steps"].due(step):
            now = time.monotonic()
            epoch = step // max(1, self._epoch_steps) if "num_epochs" in self._params else None
            say(train_loss(step, loss, (now - self._loss_time) / self._params["print_loss_steps"], epoch))
            self._loss_time = now

    def _write_scalars(self, step: int, rate: float, found: Mapping[str, Any]) -> None:
        if not self._events or not self._due["save_summaries_steps"].due(step):
            return
        scalars = {
            "learning_rate": rate,
            "Loss_Optimization/global_gradient_norm": found["norm"],
            "train_loss": found["loss"],
        }
        if "scale" in found:
            scalars["Loss_Optimization/loss_scale"] = found["scale"]
        now = time.monotonic()
        if step > 0:
            scalars["global_step/sec"] = self._params["save_summaries_steps"] / (now - self._scalar_time)
        self._scalar_time = now
        self._events.write(scalars, step + 1)

    def _save(self, step: int) -> None:
        if self._checkpoints and self._due["save_checkpoint_steps"].due(step):
            self._checkpoints.save(self._session, step)

    def _count(self, seconds: float, batch: Batch) -> None:
        self._seconds += seconds
        self._objects += batch.objects
        self._counted += 1
