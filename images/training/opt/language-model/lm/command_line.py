"""The arguments: those of the example, and where checkpoints are kept, which it has none of."""

from __future__ import annotations

import importlib
from typing import Any

import horovod.tensorflow as hvd
import tensorflow.compat.v1 as tf

from lm.training import Training
from lm.words import Texts

FLAGS = tf.flags.FLAGS


def run() -> None:
    """Read the arguments and train; TensorFlow's own start, as in the example, makes it print every line of the log twice."""
    tf.flags.DEFINE_string("data_path", "./", "Folder of ptb.train.txt, ptb.valid.txt and ptb.test.txt.")
    tf.flags.DEFINE_string("config", "config_small", "Name of the module with the configuration.")
    tf.flags.DEFINE_string(
        "checkpoint_dir", "", "Folder of the checkpoints, to go on from the newest; none without it."
    )
    tf.app.run(main=_main)


def _main(_: Any) -> None:
    tf.logging.set_verbosity(tf.logging.INFO)
    tf.disable_v2_behavior()
    hvd.init()
    config = importlib.import_module(FLAGS.config)
    Training(config, Texts.read(FLAGS.data_path), FLAGS.checkpoint_dir).run()
