"""The stand-in's entry: same arguments, configuration files, log lines and files as OpenSeq2Seq's ``run.py``."""

import sys

from standin.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
