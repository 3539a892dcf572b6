"""The graphs of a run: one that trains, one that evaluates and one that translates, over the same variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from standin.tensorflow_names import FLOAT32
from standin.transformer import Transformer, smoothed_cross_entropy
from standin.world import Alone

GREATEST_HALF = 65504.0  # The greatest number of a 16-bit float: gradients that scale beyond it overflow.
BACKOFF = {"scale_min": 1.0, "scale_max": 2.0**14, "step_factor": 2.0, "step_window": 2000}


class SentencePairs:
    """Source and target as a batch feeds them."""

    def __init__(self) -> None:
        self.source = tf.placeholder(tf.int32, [None, None])
        self.target = tf.placeholder(tf.int32, [None, None])


class EvaluationGraph(SentencePairs):
    """Loss and most likely pieces, given the true pieces before them."""

    def __init__(self, params: Mapping[str, Any], vocabulary_size: int, *, training: bool = False) -> None:
        super().__init__()
        model = Transformer(params, vocabulary_size, training=training)
        logits = model.decode(model.encode(self.source), self.source, self.target[:, :-1])
        smoothing = params.get("loss_params", {}).get("label_smoothing", 0.0) if training else 0.0
        self.loss = smoothed_cross_entropy(logits, self.target[:, 1:], smoothing)
        self.prediction = tf.argmax(logits, axis=-1, output_type=tf.int32)


class TrainingGraph(EvaluationGraph):
    """One update, with gradients averaged over the ranks in a single exchange."""

    def __init__(self, params: Mapping[str, Any], vocabulary_size: int, world: Alone) -> None:
        super().__init__(params, vocabulary_size, training=True)
        self.learning_rate = tf.placeholder(tf.float32, [])
        self._step = tf.train.get_or_create_global_step()
        variables = tf.trainable_variables()
        self.parameters = sum(variable.shape.num_elements() for variable in variables)
        # The embedding's gradient is sparse on the source side; as a tensor it costs one exchange and no gathering.
        dense = [tf.reshape(tf.convert_to_tensor(gradient), [-1]) for gradient in tf.gradients(self.loss, variables)]
        mean = world.mean(tf.concat(dense, axis=0))
        self.gradient_norm = tf.norm(mean)
        parts = tf.split(mean, [variable.shape.num_elements() for variable in variables])
        pairs = [(tf.reshape(part, of.shape), of) for part, of in zip(parts, variables, strict=True)]
        optimizer = tf.train.AdamOptimizer(self.learning_rate, **params.get("optimizer_params", {}))
        optimizer._create_slots(variables)  # Outside of the condition below, where they could not be initialised.
        optimizer._prepare()
        self.loss_scale: tf.Tensor | None = None
        self.step_after = self._guarded(params, mean, lambda: self._applied(optimizer, pairs))

    def _applied(self, optimizer: tf.train.Optimizer, pairs: list[tuple[tf.Tensor, tf.Variable]]) -> tf.Tensor:
        with tf.control_dependencies([optimizer.apply_gradients(pairs, self._step)]):
            return self._step.read_value()

    def _guarded(self, params: Mapping[str, Any], mean: tf.Tensor, update: Any) -> tf.Tensor:
        """Update, in mixed precision only where no gradient overflows; a skipped update does not advance the step."""
        if params.get("dtype", FLOAT32) is FLOAT32:
            return update()
        if params["dtype"] != "mixed":
            raise TypeError(f"dtype {params['dtype']!r} is a string; tf.float32 has to be given as it is")
        if not params.get("loss_scaling"):
            return update()
        return self._backed_off({**BACKOFF, **params.get("loss_scaling_params", {})}, mean, update)

    def _backed_off(self, rule: Mapping[str, float], mean: tf.Tensor, update: Any) -> tf.Tensor:
        scale = tf.get_variable("loss_scale", initializer=float(rule["scale_max"]), trainable=False)
        clean = tf.get_variable("steps_without_overflow", initializer=0, trainable=False)
        self.loss_scale = scale
        safe = tf.reduce_max(tf.abs(mean)) * scale < GREATEST_HALF  # Not a number is never smaller.

        def skipped() -> tf.Tensor:
            lower = tf.maximum(scale / rule["step_factor"], rule["scale_min"])
            with tf.control_dependencies([scale.assign(lower), clean.assign(0)]):
                return self._step.read_value()

        def kept() -> tf.Tensor:
            full = clean + 1 >= int(rule["step_window"])
            higher = tf.minimum(tf.where(full, scale * rule["step_factor"], scale), rule["scale_max"])
            counted = [scale.assign(higher), clean.assign(tf.where(full, 0, clean + 1))]
            with tf.control_dependencies(counted):
                return update()

        return tf.cond(safe, kept, skipped)


class TranslationGraph:
    """The encoder, and one step of the decoder for several beginnings of the same sentence."""

    def __init__(self, params: Mapping[str, Any], vocabulary_size: int) -> None:
        model = Transformer(params, vocabulary_size, training=False)
        self.source = tf.placeholder(tf.int32, [None, None])
        self.states = model.encode(self.source)
        hidden = params["encoder_params"]["hidden_size"]
        self.encoded = tf.placeholder(tf.float32, [1, None, hidden])
        self.prefixes = tf.placeholder(tf.int32, [None, None])
        beams = tf.shape(self.prefixes)[0]
        encoded, source = tf.tile(self.encoded, [beams, 1, 1]), tf.tile(self.source, [beams, 1])
        logits = model.decode(encoded, source, self.prefixes)
        self.log_probabilities = tf.nn.log_softmax(logits[:, -1, :])


def session() -> tf.Session:
    """A session with one thread: ranks share the cores, and each has its own process. The graph runs as it was built: rewriting
    it takes two seconds at every start and makes a step of a small model hardly quicker.
    """
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return tf.Session(config=config)
