"""``tf.contrib.layers.optimize_loss``, with which Texar makes an update out of a loss and an optimizer."""


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
    """Return the operation that clips the gradients of ``loss`` and applies them.

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
