"""The step time of a training on so many GPUs, predicted from published runs."""

from __future__ import annotations

from dataclasses import dataclass

from agent import step_time_model

BAND = 0.10
"""Predictions are right within this share: the backtest's runs are within 7 %, the constants of the GPUs within 10 %."""
PAIRS = 256
COMPUTE_S = {
    ("V100", "mixed"): 0.572,
    ("V100", "fp32"): 0.87,
    ("P100", "fp32"): 0.998,
}
"""Seconds that one GPU computes for 256 sentence pairs of transformer-base.

V100: NVIDIA's published curves on four GPUs in one box (1.63 and 1.07 steps a second), divided by Horovod's scaling of 3.73.
P100: the published 0.4 s a step of about 50 k tokens on eight of them. Other batches are taken as proportional, which holds
for batches that fill the GPU.
"""
EFFICIENCY = {1: 1.0, 2: 0.965}
"""Of the GPUs of one node together: Horovod's published scaling is 1.93 on two."""
PARAMETERS = {("transformer-base", "wmt16-en-de"): 60_880_896}
"""From the size of a published checkpoint (852.27 MB at 14 bytes each). Another data set has another vocabulary and other
lengths of sentences, so that neither bytes nor seconds are those of the published runs."""
GRADIENT_BYTES = 4
"""Gradients travel in 32 bits in mixed precision as well: the framework casts them before they are added up."""
CARRIED_MBPS = {1000: 2000}
"""What ports have carried, where that is not what they are called.

Monitors of published runs showed 200 to 220 MB/s each way on ports of 1000, whose step times fit 1.9 to 2.2 Gb/s; a port of
100 carried 12.5 MB/s. Plans before renting go by this figure; the running job is held to what its own preflight measured.
"""


@dataclass(frozen=True)
class Setting:
    """What is trained on what; ``gpus`` are those of one node, ``batch_per_gpu`` counts sentence pairs."""

    gpu: str
    gpus: int
    nodes: int
    port_speed_mbps: int
    model: str
    dataset: str
    precision: str
    batch_per_gpu: int


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
    whole = COMPUTE_S.get((setting.gpu, setting.precision))
    parameters = PARAMETERS.get((setting.model, setting.dataset))
    efficiency = EFFICIENCY.get(setting.gpus)
    if whole is None or parameters is None or efficiency is None:
        return None
    compute_s = whole * setting.batch_per_gpu / PAIRS / efficiency
    volume = step_time_model.ring_bytes(GRADIENT_BYTES * parameters, setting.gpus * setting.nodes, setting.nodes)
    link = link_mbps or CARRIED_MBPS.get(setting.port_speed_mbps, setting.port_speed_mbps)
    seconds = step_time_model.step_s(compute_s, volume, step_time_model.bytes_per_s(link))
    return Prediction(round(seconds, 4), round(compute_s, 4), round(volume), link)
