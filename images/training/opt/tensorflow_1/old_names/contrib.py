"""``tf.contrib``: what the Transformer uses of it, and names without content for the rest.

- ``tf.contrib.data.AUTOTUNE``: ``data/text2text/text2text.py``, a data layer's default of how far it reads ahead;
- ``tf.contrib.opt.LazyAdamOptimizer``: the configuration file;
- ``tf.contrib.layers.apply_regularization``: ``optimizers/mp_wrapper.py``, only with a regularizer, which the Transformer
  has none of; ``tf.contrib.opt.AdamWOptimizer``: ``optimizers/optimizers.py`` lists it; both are names only.
"""

import sys

from old_names.absent import CONTRIB, AbsentModule


def build(tf):
    """Return the module ``tensorflow.contrib``, known to the import system."""
    from old_names.lazy_adam import LazyAdamOptimizer  # noqa: PLC0415 -- loads TensorFlow

    contrib, data, opt = (AbsentModule(name) for name in (CONTRIB[:-1], CONTRIB + "data", CONTRIB + "opt"))
    data.AUTOTUNE, opt.LazyAdamOptimizer = tf.data.experimental.AUTOTUNE, LazyAdamOptimizer
    contrib.data, contrib.opt = data, opt
    sys.modules.update({module.__name__: module for module in (contrib, data, opt)})
    return contrib
