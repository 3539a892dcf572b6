"""``tf.contrib.opt.LazyAdamOptimizer``, which the configuration names: Adam that leaves rows alone which a batch did not touch.

Written from its definition (Kingma and Ba 2015, algorithm 1, applied to the rows of a sparse gradient).
"""

import tensorflow.compat.v1 as tf


class LazyAdamOptimizer(tf.train.AdamOptimizer):
    """Adam whose moments and weights change only in the rows of a sparse gradient; dense gradients are Adam's own."""

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
            _replace_rows(first, indices, mean),
            _replace_rows(second, indices, square),
            _replace_rows(var, indices, tf.gather(var, indices) - step),
        )

    def _resource_apply_sparse(self, grad, var, indices):
        return self._apply_sparse_shared(grad, var, indices, None)


def _replace_rows(variable, indices, rows):
    return tf.scatter_update(variable, indices, rows)
