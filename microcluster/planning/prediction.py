"""The step time of a training on so many GPUs, predicted from published runs."""

from __future__ import annotations

from dataclasses import dataclass

from agent import step_time_model
from microcluster.catalog.gpus import GPUS, MEASURED_UNITS

BAND = 0.10
"""Predictions are right within this share: the backtest's runs are within 7 %, the constants of the GPUs within 10 %."""
EFFICIENCY = {1: 1.0, 2: 0.965}
"""Of the GPUs of one node together: the published scaling is 1.93 on two."""
CARRIED_MBPS = {1000: 2000}
"""What ports have carried, where that is not what they are called.

Monitors of published runs showed 200 to 220 MB/s each way on ports of 1000, whose step times fit 1.9 to 2.2 Gb/s; a port of
100 carried 12.5 MB/s. Plans before renting go by this figure; the running job is held to what its own preflight measured.
"""


@dataclass(frozen=True)
class Setting:
    """What is trained on what; ``gpus`` are those of one node, ``units`` the samples that each computes in a step."""

    gpu: str
    gpus: int
    nodes: int
    port_speed_mbps: int
    model: str
    precision: str
    units: int
    gradient_bytes: int


@dataclass(frozen=True)
class Prediction:
    """One update of the weights.

    Attributes:
        seconds: what it takes on a link that carries ``link_mbps``.
        compute_s: what of that the GPUs compute.
        wire_bytes: what every network card sends, and receives; 0 with one node.
        link_mbps: the line rate that is expected between the nodes.
    """

    seconds: float
    compute_s: float
    wire_bytes: int
    link_mbps: int


def predict(setting: Setting, link_mbps: int | None = None) -> Prediction | None:
    """Return what an update takes, or None for what was never measured.

    Args:
        link_mbps: the line rate between the nodes; by the experience with such ports when left out.
    """
    gpu, efficiency = GPUS.get(setting.gpu), EFFICIENCY.get(setting.gpus)
    whole = gpu.seconds.get((setting.model, setting.precision)) if gpu else None
    if whole is None or efficiency is None:
        return None
    compute_s = whole * setting.units / MEASURED_UNITS / efficiency
    volume = step_time_model.ring_bytes(setting.gradient_bytes, setting.gpus * setting.nodes, setting.nodes)
    link = link_mbps or CARRIED_MBPS.get(setting.port_speed_mbps, setting.port_speed_mbps)
    seconds = step_time_model.step_s(compute_s, volume, step_time_model.bytes_per_s(link))
    return Prediction(round(seconds, 4), round(compute_s, 4), round(volume), link)
