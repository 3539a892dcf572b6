"""Our own LSTM language model: its graph, its epochs on all ranks, then validation and checkpoint on the first one, and its test at the end."""

import importlib
import math
import os
import time
from types import ModuleType
from typing import Any

import horovod.tensorflow as hvd
import numpy
import tensorflow.compat.v1 as tf
from one_exchange import mean_gradients

from lm.words import Texts, batches, updates

CHECKPOINTS_KEPT = 5
LINES_OF_EPOCH = 10
FLAGS = tf.flags.FLAGS


def run() -> None:
    """Read the arguments and train; TensorFlow's own start, as in the example, makes it print every line of the log twice."""
    tf.flags.DEFINE_string("data_path", "./", "Folder of ptb.train.txt, ptb.valid.txt and ptb.test.txt.")
    tf.flags.DEFINE_string("config", "config_small", "Name of the module with the configuration.")
    tf.flags.DEFINE_string(
        "checkpoint_dir", "", "Folder of the checkpoints, to go on from the newest; none without it."
    )
    tf.app.run(main=_main)


class Training:
    """One rank of a run; ``checkpoint_dir`` is empty for a run without checkpoints."""

    def __init__(self, config: ModuleType, texts: Texts, checkpoint_dir: str) -> None:
        self._config, self._texts, self._checkpoint_dir = config, texts, checkpoint_dir
        self._first = hvd.rank() == 0
        self._model = LanguageModel(config, texts.vocabulary_size)
        self._epochs_done = tf.train.get_or_create_global_step()
        self._count = self._epochs_done.assign_add(1)
        self._saver = tf.train.Saver(max_to_keep=CHECKPOINTS_KEPT, save_relative_paths=True)

    def run(self) -> None:
        """Train from the newest checkpoint, or from scratch, to the last epoch."""
        equalise = hvd.broadcast_global_variables(0)
        # Ranks share the processors, and each is a process of its own.
        threads = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
        with tf.Session(config=threads) as self._session:
            self._session.run(tf.global_variables_initializer())
            self._restore()
            self._session.run(equalise)
            for epoch in range(int(self._session.run(self._epochs_done)), self._config.num_epochs):
                self._epoch(epoch)
            if self._first:
                tf.logging.info(f"Test Perplexity: {self._read(self._texts.test):.3f}")

    def _restore(self) -> None:
        """Read the newest checkpoint on the first rank, which gives it to the others."""
        newest = tf.train.latest_checkpoint(self._checkpoint_dir) if self._checkpoint_dir and self._first else None
        if newest:
            self._saver.restore(self._session, newest)
            print(f"Restored checkpoint from {newest}", flush=True)

    def _epoch(self, epoch: int) -> None:
        tf.logging.info(f"Epoch: {epoch} Train Perplexity: {self._learn(epoch):.3f}")
        self._session.run(self._count)
        if self._first:
            tf.logging.info(f"Epoch: {epoch} Valid Perplexity: {self._read(self._texts.valid):.3f}")
            if self._checkpoint_dir:
                os.makedirs(self._checkpoint_dir, exist_ok=True)
                self._saver.save(self._session, os.path.join(self._checkpoint_dir, "model.ckpt"), self._epochs_done)

    def _learn(self, epoch: int) -> float:
        """Make the updates of an epoch with this rank's rows; return the perplexity."""
        opt, model = self._config.opt, self._model
        decay = opt["learning_rate_decay"]
        decayed = decay["kwargs"]["decay_rate"] ** max(epoch - decay["start_decay_step"], 0)
        rate = opt["optimizer"]["kwargs"]["learning_rate"] * decayed
        return self._passed(self._texts.train, {model.learning_rate: rate, model.keep_prob: self._config.keep_prob})

    def _read(self, text: numpy.ndarray) -> float:
        """Return the perplexity of a text, which is read whole, and without learning."""
        return self._passed(text, {self._model.keep_prob: 1.0})

    def _passed(self, text: numpy.ndarray, fixed: dict[tf.Tensor, float]) -> float:
        """Pass over a text once, learning where the rate is ``fixed``; return the perplexity.

        The state of the cells goes from batch to batch, and the losses add up.
        """
        model, rows, length = self._model, self._config.batch_size, self._config.num_steps
        fetches, passed_batches = [model.loss, model.final_states], batches(text, rows, length)
        learning = model.learning_rate in fixed
        if learning:
            fetches.append(model.update)
            passed_batches = batches(text, rows, length, share=hvd.rank(), shares=hvd.size())
        last, began = updates(text, rows, length), time.monotonic()
        loss, perplexity, state = 0.0, 0.0, {}
        for number, (words, next_words) in enumerate(passed_batches, 1):
            feed = {**fixed, **state, model.words: words, model.next_words: next_words}
            nats, final, *_ = self._session.run(fetches, feed)
            state = dict(zip(model.states, final, strict=True))
            loss += float(nats)
            perplexity = math.exp(loss / (number * length))
            if learning and self._first and number % max(last // LINES_OF_EPOCH, 1) == 0:
                speed = number * length * rows / (time.monotonic() - began)
                tf.logging.info(f"{number / last:.3f} perplexity: {perplexity:.3f} speed: {speed:.0f} wps")
        tf.logging.info(f"epoch time elapsed: {time.monotonic() - began:f}")
        return perplexity


class LanguageModel:
    """An embedding, layers of LSTM cells and a softmax. The loss of a batch is in nats, summed over a sequence and averaged over its
    rows; ``update`` changes the variables with the mean gradient of all ranks.
    """

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
        variables = tf.trainable_variables()
        _, means = mean_gradients(self.loss, variables)
        clipped, _ = tf.clip_by_global_norm(means, config.opt["gradient_clip"]["kwargs"]["clip_norm"])
        optimizer = tf.train.GradientDescentOptimizer(self.learning_rate)
        self.update = optimizer.apply_gradients(zip(clipped, variables, strict=True))

    def _dropped(self, hidden: tf.Tensor) -> tf.Tensor:
        return tf.nn.dropout(hidden, rate=1 - self.keep_prob)

    def _layer(self, hidden: tf.Tensor, name: str) -> tf.Tensor:
        """Run one layer over all words of the rows: [words, rows, in] to [words, rows, units]."""
        units, shape = self._units, tf.shape(hidden)
        state = [tf.placeholder_with_default(tf.zeros([shape[1], units]), [None, units]) for _ in range(2)]
        with tf.variable_scope(name):
            weights = tf.get_variable("weights", [int(hidden.shape[2]) + units, 4 * units])
            bias = tf.get_variable("bias", [4 * units])
        none = tf.zeros([units])
        _, cells, _, _, _, _, outputs = tf.raw_ops.BlockLSTM(
            seq_len_max=tf.cast(shape[0], tf.int64),
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
        self.states += state
        self.final_states += [cells[-1], outputs[-1]]
        return outputs


def _main(_: Any) -> None:
    tf.logging.set_verbosity(tf.logging.INFO)
    tf.disable_v2_behavior()
    hvd.init()
    config = importlib.import_module(FLAGS.config)
    Training(config, Texts.read(FLAGS.data_path), FLAGS.checkpoint_dir).run()
