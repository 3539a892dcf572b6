"""Gradients that all ranks exchange as one tensor."""

import horovod.tensorflow as hvd
import tensorflow.compat.v1 as tf


def mean_gradients(loss, variables):
    """Return the gradient averaged over all ranks, as one row and by variable; a sparse one, of an embedding, becomes dense."""
    sizes = [variable.shape.num_elements() for variable in variables]
    own = [tf.reshape(tf.convert_to_tensor(gradient), [-1]) for gradient in tf.gradients(loss, variables)]
    row = hvd.allreduce(tf.concat(own, axis=0), op=hvd.Average)
    parts = tf.split(row, sizes)
    return row, [tf.reshape(part, variable.shape) for part, variable in zip(parts, variables, strict=True)]
