"""Become a program of TensorFlow 1, unchanged, out of a source that `make images` brought."""

import os
import runpy
import sys
from pathlib import Path

from old_names import install

HERE = Path(__file__).resolve().parent.parent
TRAINERS = HERE / "TRAINER"
"""File that names the sources of the trainers, one a line, for example "OpenSeq2Seq 8681d381"."""
# TensorFlow reads these when it is loaded: no banner on stderr, and the same rounding on every kind of processor.
TENSORFLOW_SETTINGS = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"}


def become(program, script, *libraries):
    """Print the trainer's name, supply the missing names, and run the script.

    Args:
        script, libraries: a file, and further folders of modules, both below this folder.
    """
    script = HERE / script
    if not script.is_file():
        sys.exit(f"This training image holds no {program}. Run `make up` again, or set job.trainer: stand-in.")
    if os.environ.get("OMPI_COMM_WORLD_RANK", "0") == "0":
        names = TRAINERS.read_text(encoding="utf-8").splitlines()
        name = next((name for name in names if name.startswith(f"{program} ")), program)
        print(f"*** {name} on TensorFlow 2.12 through our compatibility module", flush=True)
    for setting, value in TENSORFLOW_SETTINGS.items():
        os.environ.setdefault(setting, value)
    install()
    sys.path[:1] = [str(script.parent), *(str(HERE / folder) for folder in libraries)]
    runpy.run_path(str(script), run_name="__main__")
