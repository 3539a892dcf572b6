"""The steps between checkpoints that keep a crash cheap, in time and in money."""

import math
from decimal import Decimal

from microcluster.planning.run_cost import HOUR_S

MOST_MINUTES, MOST_DOLLARS = 10, 1
"""The default limits of what a crash may cost, in time and in money; the lower one decides."""
WRITE_S = (5, 9)
"""Seconds to write a checkpoint of 0.85 GB, on the fastest and the slowest disk that is sold."""
MOST_STEPS = 5000
SLOWER = 0.10
"""The share by which a step may take longer than the usual one before the limits are passed."""


def interval(step_s: float, per_hour: Decimal) -> int:
    """Return the steps between checkpoints that keep both limits, also where a step takes a tenth longer.

    Two digits, rounded down; at least 1. The length of the run does not matter: raising ``maxSteps`` must continue the same run,
    and another interval would make another run.
    """
    by_money = MOST_DOLLARS * HOUR_S / float(per_hour) if per_hour > 0 else math.inf
    limit_s = min(MOST_MINUTES * 60, by_money)
    steps = min(max(math.floor(limit_s / (step_s * (1 + SLOWER))), 1), MOST_STEPS)
    unit = 10 ** max(len(str(steps)) - 2, 0)
    return steps // unit * unit
