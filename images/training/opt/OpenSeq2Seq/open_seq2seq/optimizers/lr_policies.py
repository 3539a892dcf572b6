"""Learning rates as functions of the step."""


def transformer_policy(  # noqa: PLR0917 -- upstream's signature, whose names a configuration file gives
    global_step, learning_rate, d_model, warmup_steps, max_lr=None, coefficient=1.0, dtype=None
):
    """Rise for ``warmup_steps``, then fall with the root of the step (Vaswani et al. 2017, section 5.3)."""
    step = global_step + 1.0
    decay = coefficient * d_model**-0.5 * min(step * warmup_steps**-1.5, step**-0.5)
    rate = learning_rate * decay
    return rate if max_lr is None else min(rate, max_lr)
