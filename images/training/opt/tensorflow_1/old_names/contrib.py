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

import tensorflow.compat.v1 as tf
from tensorflow.python.ops import rnn
from tensorflow.python.util import nest

from old_names.absent import CONTRIB, AbsentModule


class LazyAdamOptimizer(tf.train.AdamOptimizer):
    """Adam whose moments and weights change only in the rows of a sparse gradient; dense gradients are Adam's own.

    Written from its definition (Kingma and Ba 2015, algorithm 1, applied to the rows of a sparse gradient).
    """

    def _apply_sparse_shared(self, grad, var, indices, scatter_add):
        """Update the rows ``indices`` of ``var``; upstream's base class calls this with rows that are all different."""
        del scatter_add  # It adds; here rows are replaced.
        power1, power2 = (tf.cast(power, var.dtype.base_dtype) for power in self._get_beta_accumulators())
        rate, beta1, beta2, epsilon = (
            tf.cast(value, var.dtype.base_dtype)
            for value in (self._lr_t, self._beta1_t, self._beta2_t, self._epsilon_t)
        )
        first, second = self.get_slot(var, "m"), self.get_slot(var, "v")
        mean = beta1 * tf.gather(first, indices) + (1 - beta1) * grad
        square = beta2 * tf.gather(second, indices) + (1 - beta2) * tf.square(grad)
        step = rate * tf.sqrt(1 - power2) / (1 - power1) * mean / (tf.sqrt(square) + epsilon)
        return tf.group(
            tf.scatter_update(first, indices, mean),
            tf.scatter_update(second, indices, square),
            tf.scatter_update(var, indices, tf.gather(var, indices) - step),
        )

    def _resource_apply_sparse(self, grad, var, indices):
        return self._apply_sparse_shared(grad, var, indices, None)


def optimize_loss(
    loss,
    global_step,
    learning_rate,
    optimizer,
    *,
    gradient_noise_scale=None,
    clip_gradients=None,
    variables=None,
    name=None,
    increment_global_step=True,
):
    """Return Texar's update: the operation that clips the gradients of ``loss`` and applies them.

    Args:
        learning_rate: None; the optimizer has its own.
        clip_gradients: takes and returns pairs of a gradient and its variable.
    """
    if learning_rate is not None or gradient_noise_scale is not None:
        raise NotImplementedError(
            "The local training image updates with an optimizer of a rate of its own, without noise."
        )
    gradients = optimizer.compute_gradients(loss, variables)
    if clip_gradients:
        gradients = clip_gradients(gradients)
    return optimizer.apply_gradients(gradients, global_step=global_step if increment_global_step else None, name=name)


class Decoder:
    """Base of decoders for ``dynamic_decode``: a subclass brings every method."""

    tracks_own_finished = False
    """Whether a row that has ended may begin again."""


def build():
    """Return the module ``tensorflow.contrib``, known to the import system."""
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
