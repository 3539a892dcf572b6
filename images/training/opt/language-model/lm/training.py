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

from lm.words import Batch, Texts, batches, updates

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
        config, model = self._config, self._model
        rows, length = config.batch_size, config.num_steps
        decay = config.opt["learning_rate_decay"]
        rate = decay["kwargs"]["decay_rate"] ** max(epoch - decay["start_decay_step"], 0)
        fixed = {
            model.learning_rate: config.opt["optimizer"]["kwargs"]["learning_rate"] * rate,
            model.keep_prob: config.keep_prob,
        }
        text, last = self._texts.train, updates(self._texts.train, rows, length)
        own = batches(text, rows, length, share=hvd.rank(), shares=hvd.size())
        passing = Pass(self._session, model, fixed)
        for update, batch in enumerate(own, 1):
            passing.take(batch, model.update)
            if self._first and update % max(last // LINES_OF_EPOCH, 1) == 0:
                speed = update * length * rows / passing.seconds
                tf.logging.info(f"{update / last:.3f} perplexity: {passing.perplexity:.3f} speed: {speed:.0f} wps")
        return passing.end()

    def _read(self, text: numpy.ndarray) -> float:
        """Return the perplexity of a text, which is read without learning."""
        passing = Pass(self._session, self._model, {self._model.keep_prob: 1.0})
        for batch in batches(text, self._config.batch_size, self._config.num_steps):
            passing.take(batch)
        return passing.end()


class Pass:
    """One pass over a text: the state of the cells goes from batch to batch, and the losses add up."""

    def __init__(self, session: tf.Session, model: "LanguageModel", fixed: dict[tf.Tensor, Any]) -> None:
        self._session, self._model, self._fixed = session, model, fixed
        self._began, self._loss, self._words = time.monotonic(), 0.0, 0
        self._state: dict[tf.Tensor, numpy.ndarray] = {}

    def take(self, batch: Batch, *more: tf.Operation) -> None:
        """Read a batch and run ``more``."""
        model = self._model
        feed = {**self._fixed, **self._state, model.words: batch[0], model.next_words: batch[1]}
        loss, final, *_ = self._session.run([model.loss, model.final_states, *more], feed)
        self._state = dict(zip(model.states, final, strict=True))
        self._loss += float(loss)
        self._words += batch[0].shape[1]

    def end(self) -> float:
        """Print how long it took and return the perplexity."""
        tf.logging.info(f"epoch time elapsed: {self.seconds:f}")
        return self.perplexity

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    @property
    def perplexity(self) -> float:
        return math.exp(self._loss / self._words)


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
        self.states += state
        self.final_states += [cells[-1], outputs[-1]]
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


def _main(_: Any) -> None:
    tf.logging.set_verbosity(tf.logging.INFO)
    tf.disable_v2_behavior()
    hvd.init()
    config = importlib.import_module(FLAGS.config)
    Training(config, Texts.read(FLAGS.data_path), FLAGS.checkpoint_dir).run()
