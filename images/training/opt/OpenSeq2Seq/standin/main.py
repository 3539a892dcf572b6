"""From the arguments to the end of a run, in the order in which OpenSeq2Seq checks and says things."""

from __future__ import annotations

import os
import pprint
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from standin.command_line import parse_options
from standin.config_file import ConfigFile, for_benchmark, read_config
from standin.lines import note, say
from standin.logdir import check_logdir, forgiven
from standin.run_logs import open_run_logs
from standin.validation import check_honoured, check_model

if TYPE_CHECKING:
    from standin.run import Run

VERSION = (Path(__file__).resolve().parent.parent / "STANDIN_VERSION").read_text(encoding="utf-8").strip()
LOGS = "logs"
TRAINING = ("train", "train_eval")
PARTS = {"train": ("train",), "train_eval": ("train", "eval"), "eval": ("eval",), "infer": ("infer",)}
TITLES = {"train": "Training config:", "eval": "Evaluation config:", "infer": "Inference config:"}
# TensorFlow reads these when it is loaded: no banner on stderr, and the same rounding on every kind of processor.
TENSORFLOW_SETTINGS = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"}


def main(arguments: Sequence[str]) -> int:
    """Run one rank; errors leave as exceptions (exit code 1) or through argparse (exit code 2), as upstream's do."""
    if os.environ.get("OMPI_COMM_WORLD_RANK", "0") == "0":
        say(note(f"stand-in trainer, not OpenSeq2Seq (version {VERSION})"))
    options, overrides = parse_options(arguments)
    config = read_config(options.config_file, overrides)
    checkpoint = _checkpoint(options, config.base["logdir"])
    for name, value in TENSORFLOW_SETTINGS.items():
        os.environ.setdefault(name, value)
    from standin.run import Run  # noqa: PLC0415 -- loads TensorFlow, which takes seconds and is not needed to refuse

    run = Run.start(horovod=bool(config.base.get("use_horovod")))
    if options.enable_logs:
        if run.first:
            open_run_logs(config.base["logdir"], options.config_file, arguments)
        config.base["logdir"] = os.path.join(config.base["logdir"], LOGS)
    run.note(_announcement(options, checkpoint))
    _carry_out(run, config, options, checkpoint)
    return 0


def _carry_out(run: Run, config: ConfigFile, options: Namespace, checkpoint: str | None) -> None:
    merged = {part: _merged(config, part, options) for part in PARTS[options.mode]}
    for part, params in merged.items():
        run.note(f"{TITLES[part]}\n{pprint.pformat(params)}")
    if options.mode in TRAINING:
        run.train(merged, checkpoint)
    elif options.mode == "eval":
        run.evaluate(merged["eval"], str(checkpoint))
    else:
        run.infer(merged["infer"], str(checkpoint), Path(options.infer_output_file))


def _checkpoint(options: Namespace, logdir: str) -> str | None:
    checkpoints = os.path.join(logdir, LOGS) if options.enable_logs else logdir
    try:
        found = check_logdir(logdir, options.mode, resume=options.continue_learning, checkpoints=checkpoints)
    except OSError as refused:
        if not options.no_dir_check:
            raise
        filled = os.path.isdir(logdir) and bool(os.listdir(logdir))
        forgiven(refused, options.mode, resume=options.continue_learning, filled=filled)
        return None
    return None if options.benchmark else found


def _announcement(options: Namespace, checkpoint: str | None) -> str:
    if options.mode not in TRAINING:
        return f"Loading model from {checkpoint}"
    if checkpoint is None:
        return "Starting training from scratch"
    return f"Restored checkpoint from {checkpoint}. Resuming training"


def _merged(config: ConfigFile, part: str, options: Namespace) -> dict[str, Any]:
    params = config.merged(part)
    if options.benchmark:
        params = for_benchmark(params, options.bench_steps, options.bench_start)
    check_model(params, part, config.model)
    if options.mode == "train_eval" and "eval_steps" not in params:
        raise ValueError("eval_steps parameter has to be specified for train_eval mode")
    check_honoured(params)
    return params
