"""The arguments of ``run.py`` and the configuration file: read, merged for one mode, and checked with upstream's messages."""

import argparse
import ast
import runpy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from typing import Any

from standin.upstream_names import importable

MODES = ("train", "eval", "train_eval", "infer")
PARTS = ("data_layer", "encoder", "decoder", "loss")


@dataclass(frozen=True)
class ConfigFile:
    """The file's parameters, the base ones already with what the command line changes."""

    base: dict[str, Any]
    model: type
    modes: Mapping[str, dict[str, Any]]

    def merged(self, mode: str) -> dict[str, Any]:
        """The base parameters with those of ``mode`` (train, eval or infer) laid over them, checked."""
        params = merge(self.base, self.modes.get(mode, {}))
        check(params, self.model)
        for part in PARTS:
            check(params[f"{part}_params"], params[part])
        return params


def parse_options(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Return the options and what is left for the keys of the configuration."""
    parser = argparse.ArgumentParser(description="Experiment parameters")
    parser.add_argument("--config_file", required=True)
    parser.add_argument("--mode", default="train")
    parser.add_argument("--infer_output_file", default="infer-out.txt")
    parser.add_argument("--continue_learning", action="store_true")
    options, rest = parser.parse_known_args(arguments)
    if options.mode not in MODES:
        raise ValueError(f"Mode has to be one of {list(MODES)}")
    return options, rest


def read_config(path: str, overrides: Sequence[str]) -> ConfigFile:
    """Run the file as Python, with ``tf`` among its names, and apply ``--key=value`` words."""
    with importable() as tensorflow:
        content = runpy.run_path(path, init_globals={"tf": tensorflow})
    for name in ("base_params", "base_model"):
        if name not in content:
            raise ValueError(f"{name} has to be defined in the config file")
    modes = {mode: content[f"{mode}_params"] for mode in ("train", "eval", "infer") if f"{mode}_params" in content}
    return ConfigFile(overridden(content["base_params"], overrides), content["base_model"], modes)


def overridden(base: dict[str, Any], words: Sequence[str]) -> dict[str, Any]:
    """Give the keys of ``base`` the values that ``words`` have for them; an unknown key ends the program with code 2."""
    parser = argparse.ArgumentParser(argument_default=argparse.SUPPRESS)
    for path, value in _leaves(base):
        parser.add_argument(f"--{path}", type=ast.literal_eval if isinstance(value, bool) else type(value))
    for path, value in vars(parser.parse_args(words)).items():
        *parents, key = path.split("/")
        reduce(getitem, parents, base)[key] = value
    return base


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of ``base`` in which ``over`` wins, in nested parameters key by key."""
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = merge(merged[key], value) if both else value
    return merged


def check(params: Mapping[str, Any], part: type) -> None:
    """Refuse a missing, ill-typed or unknown key; for a key ``part`` has a type, a list of values, or None for anything."""
    for name in part.required:
        if name not in params:
            raise ValueError(f"{name} parameter has to be specified")
    kinds = part.required | part.optional
    for name, value in params.items():
        if name not in kinds:
            raise ValueError(f"Unknown parameter: {name} (the stand-in trainer knows fewer than OpenSeq2Seq)")
        kind = kinds[name]
        if isinstance(kind, list) and value not in kind:
            raise ValueError(f"{name} has to be one of {kind}")
        if isinstance(kind, type) and not isinstance(value, kind):
            raise ValueError(f"{name} has to be of type {kind}")


def _leaves(tree: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """The numbers, strings and booleans of a nested dict, each with its path in slashes."""
    leaves = []
    for key, value in tree.items():
        if isinstance(value, Mapping):
            leaves += _leaves(value, f"{prefix}{key}/")
        elif type(value) in {bool, int, float, str}:
            leaves.append((f"{prefix}{key}", value))
    return leaves
