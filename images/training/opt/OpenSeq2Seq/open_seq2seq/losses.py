"""Parameters of the loss."""


class PaddedCrossEntropyLossWithSmoothing:
    """Cross entropy with smoothed labels, averaged over what is not padding."""

    required = {"batch_size": int, "tgt_vocab_size": int}
    optional = {"label_smoothing": float, "pad_embeddings_2_eight": bool, "dtype": None}
