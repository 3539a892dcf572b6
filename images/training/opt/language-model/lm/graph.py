"""The graph: an embedding, layers of LSTM cells, a softmax, and one update with the mean gradient of all ranks."""

from __future__ import annotations

from types import ModuleType

import horovod.tensorflow as hvd
import tensorflow.compat.v1 as tf


class LanguageModel:
    """Loss of a batch in nats, summed over a sequence and averaged over its rows; ``update`` changes the variables."""

    def __init__(self, config: ModuleType, vocabulary_size: int) -> None:
        self.words = tf.placeholder(tf.int32, [None, config.num_steps])
        self.next_words = tf.placeholder(tf.int32, [None, config.num_steps])
        self.learning_rate, self.keep_prob = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
        self._units, self._forget_bias = config.hidden_size, config.cell["kwargs"]["forget_bias"]
        uniform = tf.random_uniform_initializer(-config.init_scale, config.init_scale)
        with tf.variable_scope("model", initializer=uniform):
            embedding = tf.get_variable("embedding", [vocabulary_size, config.emb["dim"]])
            hidden = self._dropped(tf.nn.embedding_lookup(embedding, tf.transpose(self.words)))
            self.states, self.final_states = [], []
            for layer in range(config.cell["num_layers"]):
                hidden = self._dropped(self._layer(hidden, f"layer_{layer}"))
            weights = tf.get_variable("softmax", [self._units, vocabulary_size])
            logits = tf.einsum("tbh,hv->tbv", hidden, weights) + tf.get_variable("bias", [vocabulary_size])
        labels = tf.transpose(self.next_words)
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        self.loss = tf.reduce_mean(tf.reduce_sum(each, axis=0))
        self.update = self._update(config.opt["gradient_clip"]["kwargs"]["clip_norm"])

    def _dropped(self, hidden: tf.Tensor) -> tf.Tensor:
        return tf.nn.dropout(hidden, rate=1 - self.keep_prob)

    def _layer(self, hidden: tf.Tensor, name: str) -> tf.Tensor:
        """Run one layer over all words of the rows: [words, rows, in] to [words, rows, units]."""
        units, width = self._units, int(hidden.shape[2])
        rows = tf.shape(hidden)[1]
        state = tuple(tf.placeholder_with_default(tf.zeros([rows, units]), [None, units]) for _ in range(2))
        with tf.variable_scope(name):
            weights, bias = tf.get_variable("weights", [width + units, 4 * units]), tf.get_variable("bias", [4 * units])
        none = tf.zeros([units])
        _, cells, _, _, _, _, outputs = tf.raw_ops.BlockLSTM(
            seq_len_max=tf.cast(tf.shape(hidden)[0], tf.int64),
            x=hidden,
            cs_prev=state[0],
            h_prev=state[1],
            w=weights,
            wci=none,
            wcf=none,
            wco=none,
            b=bias,
            forget_bias=self._forget_bias,
            cell_clip=-1.0,
        )
        self.states.append(state)
        self.final_states.append((cells[-1], outputs[-1]))
        return outputs

    def _update(self, clip_norm: float) -> tf.Operation:
        """Return the update, for which the ranks exchange all gradients as one tensor; a sparse one becomes dense."""
        variables = tf.trainable_variables()
        sizes = [variable.shape.num_elements() for variable in variables]
        own = [tf.reshape(tf.convert_to_tensor(one), [-1]) for one in tf.gradients(self.loss, variables)]
        parts = tf.split(hvd.allreduce(tf.concat(own, axis=0), op=hvd.Average), sizes)
        means = [tf.reshape(part, of.shape) for part, of in zip(parts, variables, strict=True)]
        clipped, _ = tf.clip_by_global_norm(means, clip_norm)
        optimizer = tf.train.GradientDescentOptimizer(self.learning_rate)
        return optimizer.apply_gradients(zip(clipped, variables, strict=True))
