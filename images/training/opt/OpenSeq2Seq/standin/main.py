"""From the arguments to the end of a run, in the order in which OpenSeq2Seq checks and says things."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from standin import VERSION
from standin.configuration import parse_options, read_config
from standin.lines import note, say

PARTS = {"train": ("train",), "train_eval": ("train", "eval"), "eval": ("eval",), "infer": ("infer",)}
# TensorFlow reads these when it is loaded: no banner on stderr, and the same rounding on every kind of processor.
TENSORFLOW_SETTINGS = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"}


def main(arguments: Sequence[str]) -> int:
    """Run one rank; errors leave as exceptions (exit code 1) or through argparse (exit code 2), as upstream's do."""
    if os.environ.get("OMPI_COMM_WORLD_RANK", "0") == "0":
        say(note(f"stand-in trainer, not OpenSeq2Seq (version {VERSION})"))
    options, overrides = parse_options(arguments)
    config = read_config(options.config_file, overrides)
    parts = {part: config.merged(part) for part in PARTS[options.mode]}
    checkpoint = check_logdir(config.base["logdir"], options.mode, resume=options.continue_learning)
    for name, value in TENSORFLOW_SETTINGS.items():
        os.environ.setdefault(name, value)
    from standin.modes import carry_out  # noqa: PLC0415 -- loads TensorFlow, which takes seconds and is not needed to refuse

    carry_out(options.mode, parts, checkpoint, Path(options.infer_output_file))
    return 0


def check_logdir(logdir: str, mode: str, *, resume: bool) -> str | None:
    """Return the checkpoint to go on from, or None to start from scratch."""
    filled = os.path.isdir(logdir) and bool(os.listdir(logdir))
    if mode in {"eval", "infer"}:
        if not filled:
            raise OSError(f"{logdir} does not exist or is empty, can't restore model")
        say(note("Restoring from the latest checkpoint"))  # On every rank.
    elif resume and not filled:
        raise OSError(
            'The log directory is empty or does not exist. You should probably not provide "--continue_learning" flag?'
        )
    elif filled and not resume:
        raise OSError(
            "Log directory is not empty. If you want to continue learning, "
            'you should provide "--continue_learning" flag'
        )
    if not filled:
        return None
    checkpoint = latest_checkpoint(logdir)
    if checkpoint is None:
        raise OSError(f"There is no valid TensorFlow checkpoint in the {logdir} directory. Can't load model")
    return checkpoint


def latest_checkpoint(folder: str) -> str | None:
    """The checkpoint that the folder's ``checkpoint`` file names, where it is there."""
    pointer = Path(folder, "checkpoint")
    text = pointer.read_text(encoding="utf-8") if pointer.is_file() else ""
    named = re.search(r'^model_checkpoint_path: "(.*)"$', text, flags=re.MULTILINE)
    path = os.path.join(folder, named[1]) if named else None
    return path if path and os.path.exists(f"{path}.index") else None
