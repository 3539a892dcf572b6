"""Run, stop and show the emulated account on this computer: ``python -m emulator --help``."""

import sys

from emulator.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
