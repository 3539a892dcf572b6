"""``import tensorflow`` answered with TensorFlow's own ``tensorflow.compat.v1``, which has the names of TensorFlow 1."""

import sys


def install():
    """Replace the module for all who import it from now on, and let it behave as TensorFlow 1 did on GPUs.

    Horovod has to know the real one (it asks for the version and for names of both), so it is loaded first.
    ``models/model.py`` needs the dimensions of TensorFlow 1. Without resource variables a processor would report each step
    after its update: steps 1, 11, 21 where GPUs report 0, 10, 20, and best models with a number that is one too high.
    """
    import horovod.tensorflow  # noqa: F401, PLC0415 -- loading it is the point
    import tensorflow.compat.v1 as tf  # noqa: PLC0415 -- takes seconds, and nobody should pay for it who imports the package

    from old_names import contrib  # noqa: PLC0415 -- beside what it needs

    tf.logging.set_verbosity(tf.logging.ERROR)  # Otherwise TensorFlow 2 warns of every name of TensorFlow 1.
    tf.disable_v2_behavior()
    tf.enable_resource_variables()
    tf.contrib = contrib.build(tf)
    sys.modules["tensorflow"] = tf
