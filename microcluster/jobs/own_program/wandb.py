"""Weights & Biases for a program that brings the package: offline in the run's folder, online with a key that was given.

The run there has our run's id and word, so that an attempt that goes on continues its curves, and a second training does not; offline it adds a folder of the same id. Only the first node takes part: a program that
starts it on each node would claim one run twice.
"""

import re
from collections.abc import Sequence

from microcluster.jobs.values import Run

KEY = "WANDB_API_KEY"
SECRETS = (KEY,)
FOLDER = "wandb"
"""What the package makes in the folder that it is given."""
REQUIREMENT = re.compile(r"wandb(\[.*\])?==")
CHOOSE_MODE = """if [ "${GROUP_RANK:-0}" != 0 ]; then export WANDB_MODE=disabled
elif [ -r "$0" ]; then WANDB_API_KEY=$(cat "$0"); export WANDB_API_KEY WANDB_MODE=online; fi
exec "$@"
"""


def is_used(requirements: Sequence[str]) -> bool:
    """Return whether the program brings the package."""
    return any(REQUIREMENT.match(one) for one in requirements)


def tracked(run: Run, command: Sequence[str]) -> tuple[str, ...]:
    """Return the words that start ``command`` with its settings; the key stays in its file until then."""
    settings = (
        "WANDB_MODE=offline",
        f"WANDB_DIR={run.path}",
        f"WANDB_RUN_ID={run.id}-{run.word}",
        "WANDB_RESUME=allow",
    )
    return ("env", *settings, "sh", "-c", CHOOSE_MODE, f"{run.secrets}/{KEY}", *command)
