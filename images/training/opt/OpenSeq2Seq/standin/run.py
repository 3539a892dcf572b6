"""One rank of a run: its world, its data and its graphs, for each of the modes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow.compat.v1 as tf

from standin.checkpoints import restore_for_reading
from standin.evaluation import Evaluation
from standin.graphs import EvaluationGraph, TrainingGraph, session
from standin.inference import Inference
from standin.lines import detail, note, say
from standin.parallel_text import ParallelText
from standin.training import Training
from standin.validation import check_parts
from standin.world import Alone, HorovodWorld


@dataclass(frozen=True)
class Run:
    """What a mode needs to know of the ranks."""

    world: Alone

    @classmethod
    def start(cls, *, horovod: bool) -> Run:
        """Join the other ranks."""
        tf.logging.set_verbosity(tf.logging.ERROR)
        tf.disable_v2_behavior()
        tf.enable_resource_variables()
        run = cls(HorovodWorld() if horovod else Alone())
        if horovod:
            run.note("Using horovod")
        return run

    @property
    def first(self) -> bool:
        return self.world.rank == 0

    def note(self, text: str) -> None:
        """Say something once, on the first rank."""
        if self.first:
            say(note(text))

    def train(self, params: Mapping[str, dict[str, Any]], checkpoint: str | None) -> None:
        """Train, and evaluate in between where ``params`` has a part for it."""
        data = self._data(params["train"], "train")
        graph = TrainingGraph(params["train"], data.vocabulary_size, self.world)
        self._built()
        self.note(f"Total trainable parameters: {graph.parameters}")
        evaluation = None
        if "eval" in params:
            evaluation_data = self._data(params["eval"], "eval")
            reader = EvaluationGraph(params["eval"], evaluation_data.vocabulary_size)
            self._built()
            evaluation = Evaluation(reader, evaluation_data, self.world)
        Training(params["train"], graph, data, evaluation, self.world).run(checkpoint)

    def evaluate(self, params: Mapping[str, Any], checkpoint: str) -> None:
        """Evaluate a checkpoint once."""
        data = self._data(params, "eval")
        evaluation = Evaluation(EvaluationGraph(params, data.vocabulary_size), data, self.world)
        self._built()
        with session() as living:
            restore_for_reading(living, checkpoint)
            result = evaluation.run(living, verbose=True)
        if self.first:
            say(detail(f"Eval BLUE score: {result.bleu}"))
        self.note("Finished evaluation")

    def infer(self, params: Mapping[str, Any], checkpoint: str, output: Path) -> None:
        """Translate the data layer's source file into ``output``."""
        data = self._data(params, "infer")
        inference = Inference(params, data, self.world)
        self._built()
        with session() as living:
            restore_for_reading(living, checkpoint)
            inference.run(living, output)
        self.note("Finished inference")

    def _data(self, params: Mapping[str, Any], mode: str) -> ParallelText:
        batch_size = params["batch_size_per_gpu"]
        if mode != "train":
            batch_size = params.get("eval_batch_size_per_gpu", batch_size)
        seed = params.get("random_seed", time.time_ns() % 2**31) + self.world.rank
        tf.set_random_seed(seed)
        data = ParallelText(params["data_layer_params"], batch_size, self.world.rank, self.world.size, seed)
        check_parts(params, batch_size, data.vocabulary_size)
        return data

    def _built(self) -> None:
        if self.world.worker is not None:
            say(note(f"Building graph in Horovod rank: {self.world.worker}"))
