"""How much of a run a crash may cost: the steps between two checkpoints, in minutes and dollars."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

from microcluster.planning.costs import HOUR_S
from microcluster.planning.prediction import BAND

MOST_MINUTES, MOST_DOLLARS = 10, 1
"""What a crash may cost unless a person says otherwise: the work of this time, or of this money, whichever is less."""
WRITE_S = (5, 9)
"""What writing a checkpoint of 0.85 GB takes, by the speed of the disks that are sold."""
MOST_STEPS = 5000


@dataclass(frozen=True)
class AtRisk:
    """What is lost at most when a run ends just before a checkpoint."""

    steps: int
    seconds: float
    dollars: float


def at_risk(steps: int, step_s: float, per_hour: Decimal, max_steps: int) -> AtRisk:
    """Return what stands at risk with a checkpoint every ``steps``; the last step always saves."""
    lost = min(steps, max_steps)
    seconds = lost * step_s
    return AtRisk(lost, seconds, seconds / HOUR_S * float(per_hour))


def interval(step_s: float, per_hour: Decimal) -> int:
    """Return the steps between checkpoints that keep to both limits, also at the upper end of the prediction's band.

    Two digits, rounded down; at least 1. It does not depend on how long the run is, because asking for more steps goes on with
    the same run, and a run with another interval is another run.
    """
    by_money = MOST_DOLLARS * HOUR_S / float(per_hour) if per_hour > 0 else math.inf
    limit_s = min(MOST_MINUTES * 60, by_money)
    return _two_digits(min(max(math.floor(limit_s / (step_s * (1 + BAND))), 1), MOST_STEPS))


def _two_digits(number: int) -> int:
    unit = 10 ** max(len(str(number)) - 2, 0)
    return number // unit * unit
