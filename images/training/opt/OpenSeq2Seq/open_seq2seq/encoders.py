"""Parameters of the encoder."""


class TransformerEncoder:
    """Self-attention over the source sentence."""

    required = {
        "encoder_layers": int,
        "hidden_size": int,
        "num_heads": int,
        "attention_dropout": float,
        "filter_size": int,
        "src_vocab_size": int,
        "relu_dropout": float,
        "layer_postprocess_dropout": float,
        "remove_padding": bool,
    }
    optional = {
        "regularizer": None,
        "regularizer_params": dict,
        "initializer": None,
        "initializer_params": dict,
        "pad_embeddings_2_eight": bool,
        "norm_params": dict,
        "dtype": None,
    }
