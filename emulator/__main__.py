"""Runs, stops and shows the SoftLayer account on this machine: ``python -m emulator --help``."""

from __future__ import annotations

import sys

from emulator.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
