"""Command of the stand-in: a run from its arguments to its end, with checks and output in OpenSeq2Seq's order."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from standin import VERSION
from standin.configuration import merge, parse_options, read_config
from standin.lines import note, say

# TensorFlow reads these when it is loaded: no banner on stderr, and the same rounding on every kind of processor.
TENSORFLOW_SETTINGS = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"}


def main(arguments: Sequence[str]) -> int:
    """Run one rank; errors leave as exceptions (exit code 1) or through argparse (exit code 2), as upstream's do."""
    if os.environ.get("OMPI_COMM_WORLD_RANK", "0") == "0":
        say(note(f"stand-in trainer, not OpenSeq2Seq (version {VERSION})"))
    options = parse_options(arguments)
    config = read_config(options.config_file)
    base = config["base_params"]
    logdir = options.logdir or base["logdir"]
    checkpoint = check_logdir(logdir, options.mode, resume=options.continue_learning)
    for name, value in TENSORFLOW_SETTINGS.items():
        os.environ.setdefault(name, value)
    # These load TensorFlow, which takes seconds and is not needed to refuse; translating must not load Horovod.
    if options.mode == "infer":
        from standin.inference import infer  # noqa: PLC0415

        infer(merge(base, config["infer_params"]), str(checkpoint), Path(options.infer_output_file))
    else:
        from standin.training import train  # noqa: PLC0415

        train(merge(base, config["train_params"]), merge(base, config["eval_params"]), checkpoint)
    return 0


def check_logdir(logdir: str, mode: str, *, resume: bool) -> str | None:
    """Return the checkpoint to go on from, or None to start from scratch."""
    filled = os.path.isdir(logdir) and bool(os.listdir(logdir))
    if mode == "infer":
        if not filled:
            raise OSError(f"{logdir} does not exist or is empty, can't restore model")
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
