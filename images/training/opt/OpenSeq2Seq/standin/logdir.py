"""What a run may find in its log folder, before anything starts."""

from __future__ import annotations

import os
import re
from pathlib import Path

from standin.lines import note, say

CHECKPOINT_FILE = "checkpoint"


def check_logdir(logdir: str, mode: str, *, resume: bool, checkpoints: str) -> str | None:
    """Return the checkpoint to go on from, or None to start from scratch.

    Args:
        checkpoints: the folder of the checkpoints, which is below ``logdir`` where logs are enabled.
    """
    if os.path.isfile(logdir):
        raise OSError('There is a file with the same name as "logdir" parameter. Change the path or delete the file.')
    filled = os.path.isdir(logdir) and bool(os.listdir(logdir))
    if mode in {"eval", "infer"}:
        if not filled:
            raise OSError(f"{checkpoints} does not exist or is empty, can't restore model")
        say(note("Restoring from the latest checkpoint"))  # On every rank.
        return _valid(checkpoints)
    if not filled:
        if resume:
            raise OSError(
                "The log directory is empty or does not exist. "
                'You should probably not provide "--continue_learning" flag?'
            )
        return None
    if not resume:
        raise OSError(
            "Log directory is not empty. If you want to continue learning, "
            'you should provide "--continue_learning" flag'
        )
    return _valid(checkpoints)


def forgiven(error: OSError, mode: str, *, resume: bool, filled: bool) -> None:
    """Go on after a failed check as ``--no_dir_check`` does upstream: it says so, and mostly crashes a moment later."""
    print(f"Warning: {error}")
    print("Resuming operation since no_dir_check argument was provided")
    if mode in {"train", "train_eval"} and filled and resume:
        return
    raise UnboundLocalError("local variable 'checkpoint' referenced before assignment")


def latest_checkpoint(folder: str) -> str | None:
    """The checkpoint that the folder's ``checkpoint`` file names, where it is there."""
    try:
        text = (Path(folder) / CHECKPOINT_FILE).read_text(encoding="utf-8")
    except OSError:
        return None
    named = re.search(r'^model_checkpoint_path: "(.*)"$', text, flags=re.MULTILINE)
    if named is None:
        return None
    path = os.path.join(folder, named[1])
    return path if os.path.exists(f"{path}.index") else None


def _valid(checkpoints: str) -> str:
    checkpoint = latest_checkpoint(checkpoints)
    if checkpoint is None:
        raise OSError(f"There is no valid TensorFlow checkpoint in the {checkpoints} directory. Can't load model")
    return checkpoint
