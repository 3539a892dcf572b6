"""The Transformer (Vaswani et al. 2017) with layer norms before each part, and its graphs that train and evaluate."""

from collections.abc import Callable, Sequence

import numpy
import tensorflow.compat.v1 as tf

from standin.configuration import Params
from standin.parallel_text import PAD

Exchange = Callable[[tf.Tensor, Sequence[tf.Variable]], tuple[tf.Tensor, list[tf.Tensor]]]
MASKED = -1e9
LONGEST_WAVE = 1e4
NORM_EPSILON = 1e-6
GREATEST_HALF = 65504.0  # The greatest number of a 16-bit float: gradients beyond it overflow.


class Transformer:
    """Builds logits out of piece numbers, with one embedding for both languages; another one shares the variables."""

    def __init__(self, params: Params, vocabulary_size: int, *, training: bool) -> None:
        self._params, self._training = params, training
        self._hidden = params["encoder_params"]["hidden_size"]
        with tf.variable_scope("shared", reuse=tf.AUTO_REUSE):
            start = tf.random_normal_initializer(stddev=self._hidden**-0.5)
            self._embedding = tf.get_variable("embedding", [vocabulary_size, self._hidden], initializer=start)

    def logits(self, source: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
        """Piece numbers (sentences, pieces) to logits (sentences, pieces, vocabulary) of what follows each piece of ``target``."""
        padding = tf.cast(tf.equal(source, PAD), tf.float32)[:, None, None, :] * MASKED
        length = tf.shape(target)[1]
        future = (1.0 - tf.linalg.band_part(tf.ones([length, length]), -1, 0)) * MASKED
        memory = self._states("encoder", "encoder_layers", source, padding)
        states = self._states("decoder", "num_hidden_layers", target, future, memory, padding)
        return tf.einsum("sph,vh->spv", states, self._embedding)

    def _states(self, name: str, count: str, numbers: tf.Tensor, bias: tf.Tensor, *across: tf.Tensor) -> tf.Tensor:
        """Pass embedded pieces through layers; ``across`` is another side's memory and the bias of attention to it."""
        side = self._params[f"{name}_params"]
        with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
            states = tf.gather(self._embedding, numbers) * self._hidden**0.5
            states += _positions(tf.shape(numbers)[1], self._hidden)
            states = self._dropout(states, side["layer_postprocess_dropout"])
            for layer in range(side[count]):
                with tf.variable_scope(f"layer_{layer}"):
                    states += self._attend("self", side, states, None, bias)
                    if across:
                        states += self._attend("cross", side, states, *across)
                    states += self._feed_forward(side, states)
            return _normalize(states)

    def _attend(
        self, name: str, side: Params, states: tf.Tensor, memory: tf.Tensor | None, bias: tf.Tensor
    ) -> tf.Tensor:
        """Multi-head attention of the states to ``memory``, or to themselves without one, before the residual sum."""
        count, width = side["num_heads"], self._hidden // side["num_heads"]

        def heads(name: str, states: tf.Tensor) -> tf.Tensor:
            shape = tf.shape(states)
            return tf.reshape(_linear(name, states, self._hidden), [shape[0], shape[1], count, width])

        with tf.variable_scope(name):
            asking = _normalize(states)
            memory = asking if memory is None else memory
            queries, keys = heads("query", asking) * width**-0.5, heads("key", memory)
            scores = tf.nn.softmax(tf.einsum("sqhw,smhw->shqm", queries, keys) + bias)
            weights = self._dropout(scores, side["attention_dropout"])
            mixed = tf.einsum("shqm,smhw->sqhw", weights, heads("value", memory))
            found = _linear("output", tf.reshape(mixed, tf.shape(states)), self._hidden)
        return self._dropout(found, side["layer_postprocess_dropout"])

    def _feed_forward(self, side: Params, states: tf.Tensor) -> tf.Tensor:
        """Feed-forward network of a layer, before the residual sum."""
        with tf.variable_scope("feed_forward"):
            inner = tf.nn.relu(_linear("inner", _normalize(states), side["filter_size"], bias=True))
            found = _linear("outer", self._dropout(inner, side["relu_dropout"]), self._hidden, bias=True)
        return self._dropout(found, side["layer_postprocess_dropout"])

    def _dropout(self, tensor: tf.Tensor, rate: float) -> tf.Tensor:
        return tf.nn.dropout(tensor, rate=rate) if self._training else tensor


class EvaluationGraph:
    """Loss and most likely pieces of the sentence pairs that are fed, given the true pieces before them."""

    def __init__(self, params: Params, vocabulary_size: int, *, training: bool = False) -> None:
        self.source, self.target = (tf.placeholder(tf.int32, [None, None]) for _ in range(2))
        model = Transformer(params, vocabulary_size, training=training)
        logits = model.logits(self.source, self.target[:, :-1])
        smoothing = params["loss_params"]["label_smoothing"] if training else 0.0
        self.loss = _smoothed_cross_entropy(logits, self.target[:, 1:], smoothing)
        self.prediction = tf.argmax(logits, axis=-1, output_type=tf.int32)


class TrainingGraph(EvaluationGraph):
    """One update with the mean gradient of all ranks."""

    def __init__(self, params: Params, vocabulary_size: int, exchange: Exchange) -> None:
        super().__init__(params, vocabulary_size, training=True)
        self.learning_rate = tf.placeholder(tf.float32, [])
        step, variables = tf.train.get_or_create_global_step(), tf.trainable_variables()
        self.parameters = sum(variable.shape.num_elements() for variable in variables)
        gradient, means = exchange(self.loss, variables)
        pairs = list(zip(means, variables, strict=True))
        optimizer = tf.train.AdamOptimizer(self.learning_rate, **params["optimizer_params"])
        optimizer._create_slots(variables)  # Outside of the condition below, where they could not be initialized.
        optimizer._prepare()

        def update() -> tf.Tensor:
            with tf.control_dependencies([optimizer.apply_gradients(pairs, step)]):
                return step.read_value()

        if params["dtype"] == "mixed":
            # Computed in 32 bits; what overflows 16 is skipped, and the step does not advance. Not a number is never smaller.
            safe = tf.reduce_max(tf.abs(gradient)) < GREATEST_HALF
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


def prepare() -> None:
    """Let TensorFlow 2 behave as TensorFlow 1 did."""
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_v2_behavior()
    tf.enable_resource_variables()


def _smoothed_cross_entropy(logits: tf.Tensor, labels: tf.Tensor, smoothing: float) -> tf.Tensor:
    """The mean over pieces that are not padding; the best possible value is 0, as the smoothing's own share is taken off.

    Args:
        smoothing: probability that is spread evenly over all wrong pieces.
    """
    log_probabilities = tf.nn.log_softmax(logits)
    right = tf.gather(log_probabilities, labels, batch_dims=2)
    confidence = 1.0 - smoothing
    loss = -confidence * right
    if smoothing:
        wrong = logits.shape[-1].value - 1
        low = smoothing / wrong
        best = -(confidence * numpy.log(confidence) + smoothing * numpy.log(low + 1e-20))
        loss += -low * (tf.reduce_sum(log_probabilities, axis=-1) - right) - best
    weights = tf.cast(tf.not_equal(labels, PAD), tf.float32)
    return tf.reduce_sum(loss * weights) / tf.reduce_sum(weights)


def _linear(name: str, states: tf.Tensor, width: int, *, bias: bool = False) -> tf.Tensor:
    with tf.variable_scope(name):
        kernel = tf.get_variable("kernel", [states.shape[-1], width], initializer=tf.glorot_uniform_initializer())
        linear = tf.einsum("spi,io->spo", states, kernel)
        if bias:
            linear += tf.get_variable("bias", [width], initializer=tf.zeros_initializer())
        return linear


def _normalize(states: tf.Tensor) -> tf.Tensor:
    with tf.variable_scope("norm"):
        width = states.shape[-1].value
        scale = tf.get_variable("scale", [width], initializer=tf.ones_initializer())
        shift = tf.get_variable("shift", [width], initializer=tf.zeros_initializer())
        mean, variance = tf.nn.moments(states, axes=[-1], keepdims=True)
        return (states - mean) * tf.rsqrt(variance + NORM_EPSILON) * scale + shift


def _positions(length: tf.Tensor, hidden: int) -> tf.Tensor:
    waves = LONGEST_WAVE ** (-numpy.arange(hidden // 2) / (hidden // 2 - 1))
    angles = tf.cast(tf.range(length), tf.float32)[:, None] * waves.astype(numpy.float32)
    return tf.concat([tf.sin(angles), tf.cos(angles)], axis=1)[None]
