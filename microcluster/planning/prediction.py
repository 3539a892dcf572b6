"""The step time of a training on so many GPUs, predicted from published runs."""

from dataclasses import dataclass

from agent import step_time_model
from core.catalog.gpus import GPUS, MEASURED_UNITS

BAND = 0.10
"""Predictions are right within this share: the backtest's runs are within 7 %, the constants of the GPUs within 10 %."""
EFFICIENCY = {1: 1.0, 2: 0.965}
"""By the GPUs of a node: the published scaling is 1.93 on two."""
CARRIED_MBPS = {1000: 2000}
"""Mb/s that a port carried, by its nominal speed, where they differ.

Monitors of published runs showed 200 to 220 MB/s each way on ports of 1000, whose step times fit 1.9 to 2.2 Gb/s; a port of
100 carried 12.5 MB/s. Plans use this figure; a running job is compared with its own preflight.
"""


@dataclass(frozen=True)
class TrainingSetup:
    """A model on its hardware; ``gpus`` are those of one node, ``units`` the samples of each GPU in a step."""

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
    """The time of one step.

    Attributes:
        seconds: on a link of ``link_mbps``.
        compute_s: the share of the GPUs.
        wire_bytes: sent, and received, by each network card; 0 with one node.
        link_mbps: the expected line rate between the nodes.
    """

    seconds: float
    compute_s: float
    wire_bytes: int
    link_mbps: int


def predict(setup: TrainingSetup) -> Prediction | None:
    """Return the time of one step on ports as they usually are, or None for what was never measured."""
    gpu, efficiency = GPUS.get(setup.gpu), EFFICIENCY.get(setup.gpus)
    whole = gpu.seconds.get((setup.model, setup.precision)) if gpu else None
    if whole is None or efficiency is None:
        return None
    compute_s = whole * setup.units / MEASURED_UNITS / efficiency
    volume = step_time_model.ring_bytes(setup.gradient_bytes, setup.gpus * setup.nodes, setup.nodes)
    link = CARRIED_MBPS.get(setup.port_speed_mbps, setup.port_speed_mbps)
    seconds = step_time_model.step_s(compute_s, volume, step_time_model.bytes_per_s(link))
    return Prediction(round(seconds, 4), round(compute_s, 4), round(volume), link)


@dataclass(frozen=True)
class MeasuredRun:
    """What a run's report says of its pace.

    Attributes:
        step_s: of a step; of an epoch where ``unit`` says so.
        gradient_bytes: what every rank exchanged in a step; None where nothing measured it.
        link_mbps: what the network between the nodes carried; None with one node.
    """

    run: str
    gpu: str
    ranks: int
    nodes: int
    step_s: float
    unit: str
    gradient_bytes: float | None
    link_mbps: float | None
    emulated: bool

    @property
    def compute_s(self) -> float:
        """What the GPUs computed in a step: T = t/3 + max(2t/3, V/B), solved for t."""
        if not self.gradient_bytes or not self.link_mbps:
            return self.step_s
        volume = step_time_model.ring_bytes(self.gradient_bytes, self.ranks, self.nodes)
        exchange_s = volume / step_time_model.carried_bytes_per_s(self.link_mbps)
        hidden_s = (1 - step_time_model.FORWARD_SHARE) * self.step_s
        if (
            not hidden_s < exchange_s < self.step_s
        ):  # A step that is shorter than its exchange proves the link faster than measured.
            return self.step_s
        return (self.step_s - exchange_s) / step_time_model.FORWARD_SHARE

    def step_on(self, nodes: int) -> float | None:
        """Return the seconds of a step on so many nodes of the same kind; None where the exchange was never measured."""
        if nodes == self.nodes:
            return self.step_s
        if nodes == 1:
            return self.compute_s
        if not self.gradient_bytes or not self.link_mbps:
            return None
        volume = step_time_model.ring_bytes(self.gradient_bytes, self.ranks // self.nodes * nodes, nodes)
        return step_time_model.step_s(self.compute_s, volume, step_time_model.carried_bytes_per_s(self.link_mbps))
