"""The arguments of ``run.py``, and the configuration file with the names that it imports, which are not OpenSeq2Seq's own."""

import argparse
import runpy
import sys
from collections.abc import Mapping, Sequence
from enum import Enum
from types import ModuleType, SimpleNamespace
from typing import Any

Params = Mapping[str, Any]


class SpecialTextTokens(Enum):
    """Numbers of the special pieces in every vocabulary."""

    PAD_ID = 0
    EOS_ID = 1
    S_ID = 2
    UNK_ID = 3


def transformer_policy(global_step: float, learning_rate: float, d_model: int, warmup_steps: int) -> float:
    """Rise for ``warmup_steps``, then fall with the root of the step (Vaswani et al. 2017, section 5.3)."""
    step = global_step + 1.0
    return learning_rate * d_model**-0.5 * min(step * warmup_steps**-1.5, step**-0.5)


# The gradients are dense, so that the optimizer is plain Adam.
CONTRIB = SimpleNamespace(opt=SimpleNamespace(LazyAdamOptimizer="Adam"))
TEXTS = {"ParallelTextDataLayer": "ParallelTextDataLayer", "SpecialTextTokens": SpecialTextTokens}
MODULES = {
    "tensorflow": {"contrib": CONTRIB, "float32": "float32"},
    "open_seq2seq.data.text2text.text2text": TEXTS,
    "open_seq2seq.data.text2text.tokenizer": {"EOS_ID": SpecialTextTokens.EOS_ID.value},
    "open_seq2seq.decoders": {"TransformerDecoder": "TransformerDecoder"},
    "open_seq2seq.encoders": {"TransformerEncoder": "TransformerEncoder"},
    "open_seq2seq.losses": {"PaddedCrossEntropyLossWithSmoothing": "PaddedCrossEntropyLossWithSmoothing"},
    "open_seq2seq.models": {"Text2Text": "Text2Text"},
    "open_seq2seq.optimizers.lr_policies": {"transformer_policy": transformer_policy},
}
"""Importable modules of a configuration file, with their names: the stand-in has one model."""


def parse_options(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options; a word that is none of them ends the program with code 2."""
    parser = argparse.ArgumentParser(description="Experiment parameters")
    parser.add_argument("--config_file", required=True)
    parser.add_argument("--mode", required=True, choices=("train_eval", "infer"))
    parser.add_argument("--use_horovod", help="not read: training uses it, translating does not")
    parser.add_argument("--logdir", help="instead of the file's")
    parser.add_argument("--infer_output_file", default="infer-out.txt")
    parser.add_argument("--continue_learning", action="store_true")
    return parser.parse_args(arguments)


def read_config(path: str) -> dict[str, Any]:
    """Run the file as Python, before TensorFlow itself is imported, and return its names."""
    for name, names in MODULES.items():
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name]).update(names)
    try:
        return runpy.run_path(path)
    finally:
        for name in MODULES:
            del sys.modules[name]


def merge(base: Params, over: Params) -> dict[str, Any]:
    """A copy of ``base`` in which ``over`` wins, in nested parameters key by key."""
    merged = dict(base)
    for key, value in over.items():
        merged[key] = merge(merged.get(key, {}), value) if isinstance(value, Mapping) else value
    return merged
