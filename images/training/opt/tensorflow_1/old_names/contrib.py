"""``tf.contrib``: what OpenSeq2Seq's Transformer and Texar's language model use of it, and names without content for the rest.

For OpenSeq2Seq:

- ``data.AUTOTUNE``: ``data/text2text/text2text.py``, a data layer's default of how far it reads ahead;
- ``opt.LazyAdamOptimizer``: the configuration file;
- ``layers.apply_regularization``: ``optimizers/mp_wrapper.py``, only with a regularizer, which the Transformer
  has none of; ``opt.AdamWOptimizer``: ``optimizers/optimizers.py`` lists it; both are names only.

For Texar, below ``texar/tf``:

- ``framework.nest`` and ``is_tensor``: encoders, decoders and ``utils/shapes.py``;
- ``layers.optimize_loss``: ``core/optimization.py`` makes the update with it;
- ``rnn``: ``core/layers.py`` makes the cells, and the configuration names ``LSTMBlockCell``;
- ``seq2seq.Decoder``: the base class of ``modules/decoders/rnn_decoder_base.py``, and ``_transpose_batch_time`` for its helpers.
"""

import sys

from old_names.absent import CONTRIB, AbsentModule


class Decoder:
    """What ``dynamic_decode`` steps through; a subclass has everything but this."""

    tracks_own_finished = False
    """Whether a row that has ended may begin again."""


def build(tf):
    """Return the module ``tensorflow.contrib``, known to the import system."""
    from tensorflow.python.ops import rnn  # noqa: PLC0415 -- loads TensorFlow
    from tensorflow.python.util import nest  # noqa: PLC0415

    from old_names.lazy_adam import LazyAdamOptimizer  # noqa: PLC0415
    from old_names.optimize_loss import optimize_loss  # noqa: PLC0415

    cells = tf.nn.rnn_cell
    names = {
        "": {},
        "data": {"AUTOTUNE": tf.data.experimental.AUTOTUNE},
        "framework": {"is_tensor": tf.is_tensor, "nest": nest},
        "layers": {"optimize_loss": optimize_loss},
        "opt": {"LazyAdamOptimizer": LazyAdamOptimizer},
        "rnn": {name: getattr(cells, name) for name in ("DropoutWrapper", "LSTMStateTuple", "MultiRNNCell", "RNNCell")},
        "seq2seq": {"Decoder": Decoder},
        "seq2seq.python": {},
        "seq2seq.python.ops": {},
        "seq2seq.python.ops.decoder": {"_transpose_batch_time": rnn._transpose_batch_time},
    }
    # LSTMBlockCell has the equations of BasicLSTMCell, as one operation, whose gradient TensorFlow 2 no longer has.
    names["rnn"]["LSTMBlockCell"] = cells.BasicLSTMCell
    for name, held in names.items():
        module = AbsentModule((CONTRIB + name).rstrip("."))
        module.__dict__.update(held)
        sys.modules[module.__name__] = module
        parent, _, own = module.__name__.rpartition(".")
        if name:
            setattr(sys.modules[parent], own, module)
    return sys.modules[CONTRIB[:-1]]
