"""Tracking of a run with Weights & Biases, where its program installs that package: offline, or online with a key that was given."""

import re
from collections.abc import Iterable

from agent.run.document import RunDocument
from microcluster.jobs.ranks import Argv

KEY, FOLDER = "WANDB_API_KEY", "wandb"
"""Environment variable of the key, and the folder that the package makes below the one that it is given."""
PACKAGE = re.compile(r"wandb(\[.*\])?==|.*\binstall\b.*\bwandb\b")
MODE = f"""if [ "${{GROUP_RANK:-${{NODE_RANK:-0}}}}" != 0 ]; then export WANDB_MODE=disabled
elif [ -r "$0" ]; then {KEY}=$(cat "$0"); export {KEY} WANDB_MODE=online; fi
exec "$@"
"""
"""Script that lets the first node alone take part: a program that starts it on each node would claim one run twice.

The key stays in its file until then.
"""


def is_installed_by(lines: Iterable[str]) -> bool:
    """Whether requirements, or lines of job.setup, install the package."""
    return any(map(PACKAGE.match, lines))


def tracked(begun: RunDocument) -> Argv:
    """Return the words before a command that tracks itself.

    The run there has our run's id and word, so that an attempt that goes on continues its curves, and a second training does not.
    """
    settings = (
        "WANDB_MODE=offline",
        f"WANDB_DIR={begun.folder}",
        f"WANDB_RUN_ID={begun.run}-{begun.word}",
        "WANDB_RESUME=allow",
    )
    return ("env", *settings, "sh", "-c", MODE, f"{begun.program.secrets_folder}/{KEY}")
