"""Puts the training image's own code on the import path: the image installs it, no package does."""

from __future__ import annotations

import sys
from pathlib import Path

TRAINING = Path(__file__).parents[2] / "images" / "training"

sys.path += [str(TRAINING / "opt" / "OpenSeq2Seq"), str(TRAINING / "corpus")]
