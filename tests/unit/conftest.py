"""Puts on the import path what no package installs: the training image's own code, and what lies flat on a launcher."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

from agent import log_parser, step_time_model

# No clock decides over a test: the machines that run them are slow and have other work.
settings.register_profile("no clock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no clock")

TRAINING = Path(__file__).parents[2] / "images" / "training"

sys.path += [str(TRAINING / "opt" / "OpenSeq2Seq"), str(TRAINING / "corpus")]
sys.modules.setdefault("log_parser", log_parser)  # Both lie beside the supervisor there.
sys.modules.setdefault("step_time_model", step_time_model)
