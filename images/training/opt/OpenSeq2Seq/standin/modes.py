"""What each mode builds and runs on one rank."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow.compat.v1 as tf

from standin.lines import detail, say
from standin.model import TrainingGraph, session
from standin.parallel_text import ParallelText
from standin.reading import Evaluation, Inference
from standin.training import Training
from standin.world import World

Parts = Mapping[str, Mapping[str, Any]]
"""The merged parameters of a mode by their part: train, eval or infer."""


def carry_out(mode: str, parts: Parts, checkpoint: str | None, output: Path) -> None:
    """Join the other ranks and do what ``mode`` says."""
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_v2_behavior()
    tf.enable_resource_variables()
    world = World(horovod=any(params["use_horovod"] for params in parts.values()))
    if "train" in parts:
        _train(parts, world, checkpoint)
    elif mode == "eval":
        _evaluate(parts["eval"], world, str(checkpoint))
    else:
        _infer(parts["infer"], world, str(checkpoint), output)


def _train(parts: Parts, world: World, checkpoint: str | None) -> None:
    """Train, and evaluate in between where there are parameters for it."""
    found = (
        f"Restored checkpoint from {checkpoint}. Resuming training" if checkpoint else "Starting training from scratch"
    )
    world.note(found)
    data = _data(parts["train"], world)
    graph = TrainingGraph(parts["train"], data.vocabulary_size, world)
    world.built()
    world.note(f"Total trainable parameters: {graph.parameters}")
    evaluation = None
    if "eval" in parts:
        evaluation = Evaluation(parts["eval"], _data(parts["eval"], world), world)
        world.built()
    Training(parts["train"], graph, data, evaluation, world).run(checkpoint)


def _evaluate(params: Mapping[str, Any], world: World, checkpoint: str) -> None:
    evaluation = Evaluation(params, _data(params, world), world)
    with _restored(world, checkpoint) as reading:
        _, bleu = evaluation.run(reading, verbose=True)
    if world.first:
        say(detail(f"Eval BLUE score: {bleu}"))
    world.note("Finished evaluation")


def _infer(params: Mapping[str, Any], world: World, checkpoint: str, output: Path) -> None:
    inference = Inference(params, _data(params, World(horovod=False)), world)
    with _restored(world, checkpoint) as reading:
        inference.run(reading, output)
    world.note("Finished inference")


def _restored(world: World, checkpoint: str) -> tf.Session:
    """A session with the model of a checkpoint."""
    world.note(f"Loading model from {checkpoint}")
    world.built()
    reading = session()
    tf.train.Saver(tf.trainable_variables()).restore(reading, checkpoint)
    return reading


def _data(params: Mapping[str, Any], world: World) -> ParallelText:
    return ParallelText(params["data_layer_params"], params["batch_size_per_gpu"], world.rank, world.size)
