"""Run OpenSeq2Seq's own, unchanged ``run.py`` on TensorFlow 2."""

import os
import runpy
import sys
from pathlib import Path

from old_names import install

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "OpenSeq2Seq"
"""The source, as the building machine had it."""
TRAINER = HERE / "TRAINER"
"""What the source is, for example "OpenSeq2Seq 8681d381"."""
# TensorFlow reads these when it is loaded: no banner on stderr, and the same rounding on every kind of processor.
TENSORFLOW_SETTINGS = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"}


def main():
    """Say what trains, supply the missing names, and become upstream's program."""
    if not (SOURCE / "run.py").is_file():
        sys.exit("This training image holds no OpenSeq2Seq. Run `make up` again, or set job.trainer: stand-in.")
    if os.environ.get("OMPI_COMM_WORLD_RANK", "0") == "0":
        name = TRAINER.read_text(encoding="utf-8").strip()
        print(f"*** {name} on TensorFlow 2.12 through our compatibility module", flush=True)
    for setting, value in TENSORFLOW_SETTINGS.items():
        os.environ.setdefault(setting, value)
    install()
    sys.path[0] = str(SOURCE)
    runpy.run_path(str(SOURCE / "run.py"), run_name="__main__")


if __name__ == "__main__":
    main()
