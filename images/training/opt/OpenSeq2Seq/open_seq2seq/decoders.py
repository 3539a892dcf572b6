"""Parameters of the decoder."""


class TransformerDecoder:
    """Self-attention over the target sentence so far, and attention to the encoder."""

    required = {
        "EOS_ID": int,
        "layer_postprocess_dropout": float,
        "num_hidden_layers": int,
        "hidden_size": int,
        "num_heads": int,
        "attention_dropout": float,
        "relu_dropout": float,
        "filter_size": int,
        "batch_size": int,
        "tgt_vocab_size": int,
        "beam_size": int,
        "alpha": float,
        "extra_decode_length": int,
    }
    optional = {
        "regularizer": None,
        "regularizer_params": dict,
        "initializer": None,
        "initializer_params": dict,
        "GO_SYMBOL": int,
        "PAD_SYMBOL": int,
        "END_SYMBOL": int,
        "norm_params": dict,
        "dtype": None,
    }
