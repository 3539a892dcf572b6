"""What a configuration file of OpenSeq2Seq imports; each class lists the parameters that the stand-in carries out."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from types import ModuleType, SimpleNamespace


class DType(Enum):
    """The only type of numbers, by TensorFlow's name."""

    float32 = "float32"


class LazyAdamOptimizer:
    """The name of Adam that skips what a batch did not touch; the stand-in's gradients are dense, so it is Adam."""


class SpecialTextTokens(Enum):
    """Numbers of the special pieces in every vocabulary."""

    PAD_ID = 0
    EOS_ID = 1
    S_ID = 2
    UNK_ID = 3


class ParallelTextDataLayer:
    """Two files with one tokenized sentence a line."""

    required = {
        **dict.fromkeys(("source_file", "target_file", "src_vocab_file", "tgt_vocab_file"), str),
        **{"max_length": int, "shuffle": bool, "repeat": bool},
    }
    optional = {
        **{"delimiter": str, "pad_vocab_to_eight": bool},
        **dict.fromkeys(("map_parallel_calls", "prefetch_buffer_size", "shuffle_buffer_size"), int),
    }


SIZES = dict.fromkeys(("hidden_size", "num_heads", "filter_size"), int)
DROPOUTS = dict.fromkeys(("attention_dropout", "relu_dropout", "layer_postprocess_dropout"), float)


class TransformerEncoder:
    """Self-attention over the source sentence."""

    required = {"encoder_layers": int, "remove_padding": bool, **SIZES, **DROPOUTS}
    optional = {"pad_embeddings_2_eight": bool}


class TransformerDecoder:
    """Self-attention over the target sentence so far, and attention to the encoder."""

    required = {
        **dict.fromkeys(("EOS_ID", "num_hidden_layers", "beam_size", "extra_decode_length"), int),
        **{"alpha": float, **SIZES, **DROPOUTS},
    }
    optional = dict.fromkeys(("GO_SYMBOL", "PAD_SYMBOL", "END_SYMBOL"), int)


class PaddedCrossEntropyLossWithSmoothing:
    """Cross entropy with smoothed labels, averaged over what is not padding."""

    required = {}
    optional = {"label_smoothing": float}


class Text2Text:
    """An encoder, a decoder and a loss over two languages."""

    required = {
        **{"use_horovod": bool, "batch_size_per_gpu": int, "max_steps": int, "logdir": str},
        **dict.fromkeys(("eval_steps", "print_loss_steps", "print_samples_steps"), int),
        **dict.fromkeys(("save_summaries_steps", "save_checkpoint_steps"), int),
        **dict.fromkeys(("lr_policy", "data_layer", "encoder", "decoder", "loss")),
        **{f"{part}_params": dict for part in ("lr_policy", "data_layer", "encoder", "decoder", "loss")},
    }
    optional = {
        **{"dtype": [DType.float32, "mixed"], "loss_scaling": ["Backoff"], "num_gpus": [1]},
        **{"optimizer": [LazyAdamOptimizer, "Adam"], "optimizer_params": dict},
    }


def transformer_policy(global_step: float, learning_rate: float, d_model: int, warmup_steps: int) -> float:
    """Rise for ``warmup_steps``, then fall with the root of the step (Vaswani et al. 2017, section 5.3)."""
    step = global_step + 1.0
    return learning_rate * d_model**-0.5 * min(step * warmup_steps**-1.5, step**-0.5)


CONTRIB = SimpleNamespace(opt=SimpleNamespace(LazyAdamOptimizer=LazyAdamOptimizer))
MODULES = {
    "tensorflow": {"contrib": CONTRIB, "float32": DType.float32},
    "open_seq2seq.data.text2text.text2text": {
        "ParallelTextDataLayer": ParallelTextDataLayer,
        "SpecialTextTokens": SpecialTextTokens,
    },
    "open_seq2seq.data.text2text.tokenizer": {"EOS_ID": SpecialTextTokens.EOS_ID.value},
    "open_seq2seq.decoders": {"TransformerDecoder": TransformerDecoder},
    "open_seq2seq.encoders": {"TransformerEncoder": TransformerEncoder},
    "open_seq2seq.losses": {"PaddedCrossEntropyLossWithSmoothing": PaddedCrossEntropyLossWithSmoothing},
    "open_seq2seq.models": {"Text2Text": Text2Text},
    "open_seq2seq.optimizers.lr_policies": {"transformer_policy": transformer_policy},
}


@contextmanager
def importable() -> Iterator[ModuleType]:
    """Let the names be imported for a while, before TensorFlow itself is; gives the one called ``tensorflow``."""
    for name, names in MODULES.items():
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name]).update(names)
    try:
        yield sys.modules["tensorflow"]
    finally:
        for name in MODULES:
            del sys.modules[name]
