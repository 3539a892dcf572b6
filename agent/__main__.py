"""Call the ``main`` of the module that the first argument names with the other arguments."""

import importlib
import os
import sys

if __name__ == "__main__":
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    package = importlib.import_module("agent")
    del sys.path[0]  # Files of the run beside the package must not hide modules of others.
    sys.exit(importlib.import_module(package.__name__ + "." + sys.argv[1]).main(*sys.argv[2:]))
