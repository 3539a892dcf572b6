"""The stand-in's entry: the arguments, configuration modules and log lines of Texar's example of this name."""

import os

from lm import VERSION

if __name__ == "__main__":
    if os.environ.get("OMPI_COMM_WORLD_RANK", "0") == "0":
        print(f"stand-in language model, not Texar (version {VERSION})", flush=True)
    # TensorFlow reads these when it is loaded: no banner on stderr, and the same rounding on every kind of processor.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

    from lm.training import run

    run()
