"""What a run will take and cost, before it is rented and while it runs: step time, hours, dollars, money at risk. Pure.

Every figure has a band of 10 % (`BAND`): the computing of a GPU is known to about that, what a port carries to 6 %. What no
measurement stands behind (the stand-in's small model on processors, mixed precision on a P100) has no prediction.
"""

from microcluster.planning.checkpoints import AtRisk, at_risk, interval
from microcluster.planning.costs import Bill, next_started_hour
from microcluster.planning.prediction import BAND, Prediction, Setting, predict

__all__ = [
    "BAND",
    "AtRisk",
    "Bill",
    "Prediction",
    "Setting",
    "at_risk",
    "interval",
    "next_started_hour",
    "predict",
]
