"""The step time of a training on so many GPUs, predicted from published seconds of one GPU and the links of recorded runs."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from agent import step_time_model
from microcluster.planning.recorded_runs import LinkKind, compute_s, link_kinds
from microcluster.planning.run_cost import Span

BAND = 0.10
"""The share by which the seconds of one machine may be wrong: an assumption, for they are published and no run recorded them."""
OWN_PACE = Span(0.90, 1, 1.17)
"""Recorded over foretold seconds where a job's own pace on two machines foretold four: 18 published pairs, at worst 17 % slower."""
ALONE = "one machine"
"""Name of the missing link of one machine, among the kinds of link."""
INTERVAL_MBPS = {1000: 2000}
"""Line rate by the port of the step from which the usual interval between checkpoints follows.

A run's id depends on the interval, so that it does not change with what recorded runs tell.
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
        compute_s: the share of the GPUs.
        wire_bytes: sent, and received, by each network card; 0 with one node.
        links: seconds with their band by the kind of link that such a port was recorded to have, the most frequent first; empty where
            nobody recorded one.
        interval_s: what the usual interval between checkpoints is made of.
    """

    compute_s: float
    wire_bytes: int
    links: Mapping[str, Span]
    interval_s: float

    @property
    def span(self) -> Span:
        """Seconds over all kinds of link; the usual ones are those of the most frequent kind."""
        return over_all(self.links, self.compute_s)

    @property
    def seconds(self) -> float:
        """The usual seconds."""
        return self.span.usual


def predict(setup: TrainingSetup, link: LinkKind | None = None) -> Prediction | None:
    """Return the time of one step, or None for what was never measured.

    Args:
        link: the kind of link, where it is known.
    """
    computing = compute_s(setup.gpu, setup.model, setup.precision, setup.units, setup.gpus)
    if computing is None:
        return None
    volume = round(step_time_model.ring_bytes(setup.gradient_bytes, setup.gpus * setup.nodes, setup.nodes))
    port = step_time_model.bytes_per_s(INTERVAL_MBPS.get(setup.port_speed_mbps, setup.port_speed_mbps))
    links = links_by_kind(setup.model, computing, volume, nodes=setup.nodes, port_mbps=setup.port_speed_mbps, link=link)
    return Prediction(round(computing, 4), volume, links, round(step_time_model.step_s(computing, volume, port), 4))


def links_by_kind(
    model: str,
    computing_s: float,
    wire_bytes: float,
    *,
    nodes: int,
    port_mbps: int | None,
    link: LinkKind | None = None,
) -> dict[str, Span]:
    """Return the seconds of a step by kind of link, the most frequent kind first."""
    if nodes < 2:
        return {ALONE: Span(*(round(computing_s * share, 4) for share in (1 - BAND, 1, 1 + BAND)))}
    kinds = [link] if link else [kind for kind in link_kinds(model) if port_mbps in kind.ports]
    return {kind.name: kind.step_s(computing_s, wire_bytes, nodes) for kind in kinds}


def over_all(links: Mapping[str, Span], compute_s: float) -> Span:
    """Return the seconds over all kinds of link; where none was recorded, a step is not faster than its computing."""
    spans = list(links.values()) or [Span(compute_s, compute_s, math.inf)]
    return Span(min(each.low for each in spans), spans[0].usual, max(each.high for each in spans))


@dataclass(frozen=True)
class MeasuredRun:
    """Pace of a run by its report.

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
        """Compute seconds of a step: T = t/3 + max(2t/3, V/B), solved for t."""
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
