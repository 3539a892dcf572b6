"""Put the training image's own code, which no package installs, on the import path."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

# No clock decides over a test: the machines that run them are slow and have other work.
settings.register_profile("no clock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no clock")

TRAINING = Path(__file__).parents[2] / "images" / "training"

sys.path += [str(TRAINING / "opt" / "OpenSeq2Seq"), str(TRAINING / "corpus")]
