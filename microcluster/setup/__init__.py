"""Installation of everything that this computer needs."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - before any import that such a Python cannot read
    sys.exit(f"Python {sys.version.split()[0]} is not supported; 3.11 to 3.13 are. Name one: make PYTHON=python3.13")
