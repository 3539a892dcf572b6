"""What ``--enable_logs`` keeps in the log folder: configuration, arguments, version, and both output streams."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO


class Both:
    """A stream that writes to two places."""

    def __init__(self, stream: TextIO, copy: TextIO) -> None:
        self._stream, self._copy = stream, copy

    def write(self, text: str) -> int:
        self._copy.write(text)
        return self._stream.write(text)

    def flush(self) -> None:
        self._copy.flush()
        self._stream.flush()


def open_run_logs(logdir: str, config_file: str, arguments: Sequence[str]) -> None:
    """Write the files of this start and copy both streams from now on."""
    folder, stamp = Path(logdir), time.strftime("%Y-%m-%d_%H-%M-%S")
    os.makedirs(folder / "logs", exist_ok=True)
    shutil.copy(config_file, folder / f"config_{stamp}.py")
    (folder / f"cmd-args_{stamp}.log").write_text(f"{shlex.join(arguments)}\n", encoding="utf-8")
    version = (Path(__file__).resolve().parent.parent / "STANDIN_VERSION").read_text(encoding="utf-8")
    (folder / f"git-info_{stamp}.log").write_text(
        f"stand-in trainer, not OpenSeq2Seq, version {version}", encoding="utf-8"
    )
    sys.stdout = Both(sys.stdout, (folder / f"stdout_{stamp}.log").open("w", encoding="utf-8"))
    sys.stderr = Both(sys.stderr, (folder / f"stderr_{stamp}.log").open("w", encoding="utf-8"))
