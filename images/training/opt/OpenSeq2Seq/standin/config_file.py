"""Read a configuration file of OpenSeq2Seq and merge it for one mode."""

from __future__ import annotations

import copy
import runpy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from standin.command_line import overridden
from standin.tensorflow_names import instead_of_tensorflow


@dataclass(frozen=True)
class ConfigFile:
    """The file's parameters, the base ones already with what the command line changes."""

    base: dict[str, Any]
    model: type
    modes: Mapping[str, dict[str, Any]]

    def merged(self, mode: str) -> dict[str, Any]:
        """The base parameters with those of ``mode`` (train, eval or infer) laid over them, nested ones key by key."""
        return merge(self.base, self.modes.get(mode, {}))


def read_config(path: str, overrides: Sequence[str]) -> ConfigFile:
    """Run the file as Python, with ``tf`` among its names, and apply ``--key=value`` words."""
    with instead_of_tensorflow() as names:
        content = runpy.run_path(path, init_globals={"tf": names})
    base, model = content.get("base_params"), content.get("base_model")
    if base is None:
        raise ValueError("base_config dictionary has to be defined in the config file")
    if model is None:
        raise ValueError("base_config class has to be defined in the config file")
    modes = {mode: content[f"{mode}_params"] for mode in ("train", "eval", "infer") if f"{mode}_params" in content}
    return ConfigFile(overridden(base, overrides), model, modes)


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of ``base`` in which ``over`` wins."""
    merged = copy.copy(dict(base))
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = merge(merged[key], value) if both else value
    return merged


def for_benchmark(params: Mapping[str, Any], steps: int, start: int | None) -> dict[str, Any]:
    """The training parameters of ``--benchmark``: a loss each step, and nothing written."""
    silent = {"print_samples_steps": None, "save_summaries_steps": None, "save_checkpoint_steps": None}
    bench_start = start if start is not None else params.get("bench_start", 10)
    changed = {**params, **silent, "print_loss_steps": 1, "logdir": "", "max_steps": steps, "bench_start": bench_start}
    changed.pop("num_epochs", None)
    return changed
