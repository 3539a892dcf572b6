"""The arguments of ``run.py``: fixed options, then ``--key=value`` for keys that stand in ``base_params``."""

from __future__ import annotations

import argparse
import ast
from collections.abc import Mapping, Sequence
from typing import Any

MODES = ("train", "eval", "train_eval", "infer", "interactive_infer")


def parse_options(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Return the fixed options and what is left for the keys of the configuration."""
    parser = argparse.ArgumentParser(description="Experiment parameters")
    parser.add_argument("--config_file", required=True)
    parser.add_argument("--mode", default="train")
    parser.add_argument("--infer_output_file", default="infer-out.txt")
    for switch in ("continue_learning", "no_dir_check", "benchmark", "enable_logs", "use_xla_jit"):
        parser.add_argument(f"--{switch}", action="store_true")
    parser.add_argument("--bench_steps", type=int, default=20)
    parser.add_argument("--bench_start", type=int)
    parser.add_argument("--debug_port", type=int)
    options, rest = parser.parse_known_args(arguments)
    if options.mode not in MODES:
        raise ValueError(f"Mode has to be one of {list(MODES)}")
    if options.mode == "interactive_infer":
        raise ValueError("Interactive infer is meant to be run from an IPython notebook, not from the command line.")
    if options.benchmark:
        options.mode, options.no_dir_check = "train", True
    return options, rest


def overridden(base: Mapping[str, Any], rest: Sequence[str]) -> dict[str, Any]:
    """Return ``base`` with the values that ``rest`` gives for its keys; an unknown key ends the program with code 2."""
    parser = argparse.ArgumentParser()
    for path, value in flat(base).items():
        kind = ast.literal_eval if isinstance(value, bool) else type(value)
        parser.add_argument(f"--{path}", default=value, type=kind)
    merged = dict(base)
    for path, value in vars(parser.parse_args(rest)).items():
        _set(merged, path.split("/"), value)
    return merged


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The numbers, strings and booleans of a nested dict, by their path with slashes."""
    leaves: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            leaves |= flat(value, f"{prefix}{key}/")
        elif type(value) in {bool, int, float, str}:
            leaves[f"{prefix}{key}"] = value
    return leaves


def _set(tree: dict[str, Any], path: Sequence[str], value: Any) -> None:
    first, *rest = path
    if rest:
        tree[first] = dict(tree[first])
        _set(tree[first], rest, value)
    else:
        tree[first] = value
