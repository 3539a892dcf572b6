"""Measure all figures: what N machines and crashes cost, how image and data spread, preflight and resume, `make up` by stage.

make bench                    the engine and the images as this computer has them
COLD=1 make bench             an empty cache: the engine and the images are built as on a bare machine
"""

import signal
from argparse import ArgumentParser, RawDescriptionHelpFormatter

from rich.console import Console

from tests.bench import crash_loss, fan_out, make_up, resume, scale


def main() -> None:
    """Measure everything; a SIGTERM ends it as Ctrl-C does, so that nothing of it is left."""
    ArgumentParser(
        "python -m tests.bench", description=__doc__, formatter_class=RawDescriptionHelpFormatter
    ).parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for figures in (scale, crash_loss, fan_out, resume, make_up):
        figures.measure(Console())


if __name__ == "__main__":
    main()
