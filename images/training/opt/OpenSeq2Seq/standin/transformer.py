"""The Transformer (Vaswani et al. 2017) with layer norms before each part, and one embedding for both languages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy
import tensorflow.compat.v1 as tf

PAD = 0
MASKED = -1e9
LONGEST_WAVE = 1e4
NORM_EPSILON = 1e-6


@dataclass(frozen=True)
class Sizes:
    """One side of the model, from the parameters of the encoder or the decoder."""

    layers: int
    hidden: int
    heads: int
    filter: int
    attention_dropout: float
    relu_dropout: float
    residual_dropout: float

    @classmethod
    def of(cls, params: Mapping[str, Any], layers: str) -> Sizes:
        names = ("hidden_size", "num_heads", "filter_size", "attention_dropout", "relu_dropout")
        return cls(params[layers], *(params[name] for name in names), params["layer_postprocess_dropout"])


class Transformer:
    """Builds logits out of piece numbers; calling it again shares the variables."""

    def __init__(self, params: Mapping[str, Any], vocabulary_size: int, *, training: bool) -> None:
        self._encoder = Sizes.of(params["encoder_params"], "encoder_layers")
        self._decoder = Sizes.of(params["decoder_params"], "num_hidden_layers")
        if self._encoder.hidden != self._decoder.hidden:
            raise ValueError("hidden_size has to be the same in encoder_params and decoder_params")
        if vocabulary_size % 8:
            raise ValueError(f"the vocabulary has {vocabulary_size} entries, which is not a multiple of 8")
        self._vocabulary_size, self._training = vocabulary_size, training
        with tf.variable_scope("shared", reuse=tf.AUTO_REUSE):
            shape, start = (
                [vocabulary_size, self._encoder.hidden],
                tf.random_normal_initializer(stddev=self._encoder.hidden**-0.5),
            )
            self._embedding = tf.get_variable("embedding", shape, initializer=start)

    def encode(self, source: tf.Tensor) -> tf.Tensor:
        """Piece numbers (sentences, pieces) to states (sentences, pieces, hidden)."""
        sizes, bias = self._encoder, _padding_bias(source)
        with tf.variable_scope("encoder", reuse=tf.AUTO_REUSE):
            states = self._dropout(self._embed(source), sizes.residual_dropout)
            for layer in range(sizes.layers):
                with tf.variable_scope(f"layer_{layer}"):
                    states = self._residual("self", sizes, states, lambda x, s=sizes: self._attend(s, x, x, bias))
                    states = self._residual("feed_forward", sizes, states, lambda x, s=sizes: self._feed_forward(s, x))
            return _normalise(states)

    def decode(self, states: tf.Tensor, source: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
        """Logits (sentences, pieces, vocabulary) of what follows each piece of ``target``."""
        sizes, bias, future = self._decoder, _padding_bias(source), _future_bias(tf.shape(target)[1])
        with tf.variable_scope("decoder", reuse=tf.AUTO_REUSE):
            outputs = self._dropout(self._embed(target), sizes.residual_dropout)
            for layer in range(sizes.layers):
                with tf.variable_scope(f"layer_{layer}"):
                    outputs = self._residual("self", sizes, outputs, lambda x: self._attend(sizes, x, x, future))
                    outputs = self._residual("cross", sizes, outputs, lambda x: self._attend(sizes, x, states, bias))
                    outputs = self._residual("feed_forward", sizes, outputs, lambda x: self._feed_forward(sizes, x))
            outputs = _normalise(outputs)
        flat = tf.matmul(tf.reshape(outputs, [-1, sizes.hidden]), self._embedding, transpose_b=True)
        return tf.reshape(flat, tf.concat([tf.shape(target), [self._vocabulary_size]], axis=0))

    def _embed(self, numbers: tf.Tensor) -> tf.Tensor:
        rows = tf.gather(self._embedding, numbers) * self._encoder.hidden**0.5
        return rows + _positions(tf.shape(numbers)[1], self._encoder.hidden)

    def _residual(
        self, name: str, sizes: Sizes, states: tf.Tensor, part: Callable[[tf.Tensor], tf.Tensor]
    ) -> tf.Tensor:
        with tf.variable_scope(name):
            return states + self._dropout(part(_normalise(states)), sizes.residual_dropout)

    def _attend(self, sizes: Sizes, queries: tf.Tensor, memory: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
        width = sizes.hidden // sizes.heads
        query, key, value = (
            _heads(_linear(name, states, sizes.hidden), sizes.heads)
            for name, states in (("query", queries), ("key", memory), ("value", memory))
        )
        weights = tf.nn.softmax(tf.matmul(query * width**-0.5, key, transpose_b=True) + bias)
        mixed = tf.matmul(self._dropout(weights, sizes.attention_dropout), value)
        joined = tf.reshape(tf.transpose(mixed, [0, 2, 1, 3]), tf.shape(queries))
        return _linear("output", joined, sizes.hidden)

    def _feed_forward(self, sizes: Sizes, states: tf.Tensor) -> tf.Tensor:
        inner = tf.nn.relu(_linear("inner", states, sizes.filter, bias=True))
        return _linear("outer", self._dropout(inner, sizes.relu_dropout), sizes.hidden, bias=True)

    def _dropout(self, tensor: tf.Tensor, rate: float) -> tf.Tensor:
        return tf.nn.dropout(tensor, rate=rate) if self._training and rate else tensor


def smoothed_cross_entropy(logits: tf.Tensor, labels: tf.Tensor, smoothing: float) -> tf.Tensor:
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
        inputs = states.shape[-1].value
        kernel = tf.get_variable("kernel", [inputs, width], initializer=tf.glorot_uniform_initializer())
        flat = tf.matmul(tf.reshape(states, [-1, inputs]), kernel)
        if bias:
            flat += tf.get_variable("bias", [width], initializer=tf.zeros_initializer())
        return tf.reshape(flat, tf.concat([tf.shape(states)[:-1], [width]], axis=0))


def _normalise(states: tf.Tensor) -> tf.Tensor:
    with tf.variable_scope("norm"):
        width = states.shape[-1].value
        scale = tf.get_variable("scale", [width], initializer=tf.ones_initializer())
        shift = tf.get_variable("shift", [width], initializer=tf.zeros_initializer())
        centred = states - tf.reduce_mean(states, axis=-1, keepdims=True)
        variance = tf.reduce_mean(tf.square(centred), axis=-1, keepdims=True)
        return centred * tf.rsqrt(variance + NORM_EPSILON) * scale + shift


def _heads(states: tf.Tensor, heads: int) -> tf.Tensor:
    """(sentences, pieces, hidden) to (sentences, heads, pieces, hidden / heads)."""
    shape = tf.concat([tf.shape(states)[:-1], [heads, states.shape[-1].value // heads]], axis=0)
    return tf.transpose(tf.reshape(states, shape), [0, 2, 1, 3])


def _padding_bias(numbers: tf.Tensor) -> tf.Tensor:
    return tf.cast(tf.equal(numbers, PAD), tf.float32)[:, None, None, :] * MASKED


def _future_bias(length: tf.Tensor) -> tf.Tensor:
    return (1.0 - tf.linalg.band_part(tf.ones([length, length]), -1, 0)) * MASKED


def _positions(length: tf.Tensor, hidden: int) -> tf.Tensor:
    waves = LONGEST_WAVE ** (-numpy.arange(hidden // 2) / max(1, hidden // 2 - 1))
    angles = tf.cast(tf.range(length), tf.float32)[:, None] * waves[None, :].astype(numpy.float32)
    return tf.concat([tf.sin(angles), tf.cos(angles)], axis=1)[None]
