"""The Transformer (Vaswani et al. 2017) with layer norms before each part, and its graphs that train and evaluate."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy
import tensorflow.compat.v1 as tf

from standin.parallel_text import EIGHT, PAD
from standin.world import World

Part = Callable[[tf.Tensor], tf.Tensor]
MASKED = -1e9
LONGEST_WAVE = 1e4
NORM_EPSILON = 1e-6
GREATEST_HALF = 65504.0  # The greatest number of a 16-bit float: gradients beyond it overflow.


class Transformer:
    """Builds logits out of piece numbers, with one embedding for both languages; calling it again shares the variables."""

    def __init__(self, params: Mapping[str, Any], vocabulary_size: int, *, training: bool) -> None:
        self._encoder, self._decoder = params["encoder_params"], params["decoder_params"]
        self._hidden = self._encoder["hidden_size"]
        if self._hidden != self._decoder["hidden_size"]:
            raise ValueError("hidden_size has to be the same in encoder_params and decoder_params")
        if vocabulary_size % EIGHT:
            raise ValueError(f"the vocabulary has {vocabulary_size} entries, which is not a multiple of 8")
        self._vocabulary_size, self._training = vocabulary_size, training
        with tf.variable_scope("shared", reuse=tf.AUTO_REUSE):
            start = tf.random_normal_initializer(stddev=self._hidden**-0.5)
            self._embedding = tf.get_variable("embedding", [vocabulary_size, self._hidden], initializer=start)

    def encode(self, source: tf.Tensor) -> tf.Tensor:
        """Piece numbers (sentences, pieces) to states (sentences, pieces, hidden)."""
        side, padding = self._encoder, _padding_bias(source)
        parts = {
            "self": lambda states: self._attend(side, states, states, padding),
            "feed_forward": lambda states: self._feed_forward(side, states),
        }
        with tf.variable_scope("encoder", reuse=tf.AUTO_REUSE):
            return self._layers(side, side["encoder_layers"], source, parts)

    def decode(self, states: tf.Tensor, source: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
        """Logits (sentences, pieces, vocabulary) of what follows each piece of ``target``."""
        side, padding, future = self._decoder, _padding_bias(source), _future_bias(tf.shape(target)[1])
        parts = {
            "self": lambda outputs: self._attend(side, outputs, outputs, future),
            "cross": lambda outputs: self._attend(side, outputs, states, padding),
            "feed_forward": lambda outputs: self._feed_forward(side, outputs),
        }
        with tf.variable_scope("decoder", reuse=tf.AUTO_REUSE):
            outputs = self._layers(side, side["num_hidden_layers"], target, parts)
        return tf.einsum("sph,vh->spv", outputs, self._embedding)

    def _layers(self, side: Mapping[str, Any], count: int, numbers: tf.Tensor, parts: Mapping[str, Part]) -> tf.Tensor:
        """Pass embedded pieces through layers; each part of a layer adds to what it is given."""
        dropout = side["layer_postprocess_dropout"]
        embedded = tf.gather(self._embedding, numbers) * self._hidden**0.5
        states = self._dropout(embedded + _positions(tf.shape(numbers)[1], self._hidden), dropout)
        for layer in range(count):
            for name, part in parts.items():
                with tf.variable_scope(f"layer_{layer}/{name}"):
                    states += self._dropout(part(_normalize(states)), dropout)
        return _normalize(states)

    def _attend(self, side: Mapping[str, Any], queries: tf.Tensor, memory: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
        width = self._hidden // side["num_heads"]

        def heads(name: str, states: tf.Tensor) -> tf.Tensor:
            linear, shape = _linear(name, states, self._hidden), tf.shape(states)
            return tf.reshape(linear, [shape[0], shape[1], side["num_heads"], width])

        scores = tf.einsum("sqhw,smhw->shqm", heads("query", queries) * width**-0.5, heads("key", memory))
        weights = self._dropout(tf.nn.softmax(scores + bias), side["attention_dropout"])
        mixed = tf.einsum("shqm,smhw->sqhw", weights, heads("value", memory))
        return _linear("output", tf.reshape(mixed, tf.shape(queries)), self._hidden)

    def _feed_forward(self, side: Mapping[str, Any], states: tf.Tensor) -> tf.Tensor:
        inner = tf.nn.relu(_linear("inner", states, side["filter_size"], bias=True))
        return _linear("outer", self._dropout(inner, side["relu_dropout"]), self._hidden, bias=True)

    def _dropout(self, tensor: tf.Tensor, rate: float) -> tf.Tensor:
        return tf.nn.dropout(tensor, rate=rate) if self._training and rate else tensor


class EvaluationGraph:
    """Loss and most likely pieces of the sentence pairs that are fed, given the true pieces before them."""

    def __init__(self, params: Mapping[str, Any], vocabulary_size: int, *, training: bool = False) -> None:
        self.source, self.target = (tf.placeholder(tf.int32, [None, None]) for _ in range(2))
        model = Transformer(params, vocabulary_size, training=training)
        logits = model.decode(model.encode(self.source), self.source, self.target[:, :-1])
        smoothing = params["loss_params"].get("label_smoothing", 0.0) if training else 0.0
        self.loss = _smoothed_cross_entropy(logits, self.target[:, 1:], smoothing)
        self.prediction = tf.argmax(logits, axis=-1, output_type=tf.int32)


class TrainingGraph(EvaluationGraph):
    """One update, with gradients averaged over the ranks in a single exchange."""

    def __init__(self, params: Mapping[str, Any], vocabulary_size: int, world: World) -> None:
        super().__init__(params, vocabulary_size, training=True)
        self.learning_rate = tf.placeholder(tf.float32, [])
        step, variables = tf.train.get_or_create_global_step(), tf.trainable_variables()
        sizes = [variable.shape.num_elements() for variable in variables]
        self.parameters = sum(sizes)
        # The embedding's gradient is sparse on the source side; as a tensor it costs one exchange and no gathering.
        dense = [tf.reshape(tf.convert_to_tensor(gradient), [-1]) for gradient in tf.gradients(self.loss, variables)]
        mean = world.mean(tf.concat(dense, axis=0))
        self.gradient_norm = tf.norm(mean)
        pairs = [(tf.reshape(part, of.shape), of) for part, of in zip(tf.split(mean, sizes), variables, strict=True)]
        optimizer = tf.train.AdamOptimizer(self.learning_rate, **params.get("optimizer_params", {}))
        optimizer._create_slots(variables)  # Outside of the condition below, where they could not be initialized.
        optimizer._prepare()

        def update() -> tf.Tensor:
            with tf.control_dependencies([optimizer.apply_gradients(pairs, step)]):
                return step.read_value()

        if (
            params.get("dtype") == "mixed"
        ):  # Computed in 32 bits; what overflows 16 is skipped, and the step does not advance.
            safe = tf.reduce_max(tf.abs(mean)) < GREATEST_HALF  # Not a number is never smaller.
            self.step_after = tf.cond(safe, update, step.read_value)
        else:
            self.step_after = update()


def session() -> tf.Session:
    """A session with one thread: ranks share the cores, and each has its own process. The graph runs as it was built: rewriting
    it takes two seconds at every start and makes a step of a small model hardly quicker.
    """
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return tf.Session(config=config)


def _smoothed_cross_entropy(logits: tf.Tensor, labels: tf.Tensor, smoothing: float) -> tf.Tensor:
    """The mean over pieces that are not padding; the best possible value is 0, as the smoothing's own share is taken off.

    Args:
        smoothing: probability that is spread evenly over all wrong pieces.
    """
    size = logits.shape[-1].value
    log_probabilities = tf.nn.log_softmax(logits)
    right = tf.gather(log_probabilities, labels, batch_dims=2)
    confidence, low = 1.0 - smoothing, smoothing / (size - 1)
    loss = -confidence * right
    if smoothing:
        best = -(confidence * numpy.log(confidence) + (size - 1) * low * numpy.log(low + 1e-20))
        loss += -low * (tf.reduce_sum(log_probabilities, axis=-1) - right) - best
    weights = tf.cast(tf.not_equal(labels, PAD), tf.float32)
    return tf.reduce_sum(loss * weights) / tf.reduce_sum(weights)


def _linear(name: str, states: tf.Tensor, width: int, *, bias: bool = False) -> tf.Tensor:
    with tf.variable_scope(name):
        kernel = tf.get_variable("kernel", [states.shape[-1], width], initializer=tf.glorot_uniform_initializer())
        linear = tf.einsum("spi,io->spo", states, kernel)
        return linear + tf.get_variable("bias", [width], initializer=tf.zeros_initializer()) if bias else linear


def _normalize(states: tf.Tensor) -> tf.Tensor:
    with tf.variable_scope("norm"):
        width = states.shape[-1].value
        scale = tf.get_variable("scale", [width], initializer=tf.ones_initializer())
        shift = tf.get_variable("shift", [width], initializer=tf.zeros_initializer())
        mean, variance = tf.nn.moments(states, axes=[-1], keepdims=True)
        return (states - mean) * tf.rsqrt(variance + NORM_EPSILON) * scale + shift


def _padding_bias(numbers: tf.Tensor) -> tf.Tensor:
    return tf.cast(tf.equal(numbers, PAD), tf.float32)[:, None, None, :] * MASKED


def _future_bias(length: tf.Tensor) -> tf.Tensor:
    return (1.0 - tf.linalg.band_part(tf.ones([length, length]), -1, 0)) * MASKED


def _positions(length: tf.Tensor, hidden: int) -> tf.Tensor:
    waves = LONGEST_WAVE ** (-numpy.arange(hidden // 2) / max(1, hidden // 2 - 1))
    angles = tf.cast(tf.range(length), tf.float32)[:, None] * waves[None, :].astype(numpy.float32)
    return tf.concat([tf.sin(angles), tf.cos(angles)], axis=1)[None]
