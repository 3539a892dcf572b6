"""Seconds of a run's step that wait for the network: measured, derived or expected."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.step_time_model import TCP_SHARE
from microcluster.analysis.run_questions import Answer
from microcluster.analysis.samples import MEGABIT_BYTES, Traffic

QUESTION = "Was the network the bottleneck?"
RELATION = "How does a step relate to the network between the nodes?"
MEASURED, DERIVED, EXPECTED = "measured", "derived", "expected"
BOTTLENECK_SHARE, SLIGHT_SHARE = 0.3, 0.1
"""Shares of a step that wait for the network: from the first on it is the bottleneck, below the second it does not matter."""
COMPUTE_BAND = 0.10
"""Relative uncertainty of a GPU's expected compute time."""
COMPUTING, NETWORK, INPUT = "computing", "waiting for the network", "input and all else"
BACKWARD_SHARE = 2 / 3
"""The share of the compute time during which gradients can be exchanged."""


@dataclass(frozen=True)
class Link:
    """A run's step time and network.

    Attributes:
        step_s: an average step, measured.
        probed_mbps: the slowest connection in the preflight; None when the preflight was skipped.
        ring_bytes: of one card each way in a step, by the ring's law; None when nobody knows the model's size.
        compute_s: predicted compute time of a step; None for what was never timed.
    """

    nodes: int
    step_s: float | None
    ordered_mbps: int
    probed_mbps: float | None = None
    ring_bytes: float | None = None
    compute_s: float | None = None
    predicted_s: float | None = None

    @property
    def carries_mbps(self) -> float:
        """Mb/s of the link: probed, or else the usual rate of the ordered port."""
        return self.probed_mbps or TCP_SHARE * self.ordered_mbps


@dataclass(frozen=True)
class Exposed:
    """Seconds of a step that wait for the network, at least and at most, and how they were derived.

    Attributes:
        on_link: seconds that the bytes of a step take on the link.
        rest: seconds that neither computing nor the network explains.
    """

    least: float
    most: float
    how: str
    on_link: float
    rest: float = 0.0


def exposed(traffic: Traffic | None, link: Link) -> Exposed | None:
    """Derive the seconds of a step that wait for the network; None where they are unknown."""
    volume = traffic.usual.bytes_per_step if traffic else link.ring_bytes
    if link.nodes < 2 or not link.step_s or not volume or not link.carries_mbps:
        return None
    on_link = volume / (link.carries_mbps * MEGABIT_BYTES)
    if link.compute_s is not None:
        over = [link.step_s - link.compute_s * (1 + band) for band in (COMPUTE_BAND, 0, -COMPUTE_BAND)]
        least, likely, most = (min(max(seconds, 0.0), on_link) for seconds in over)
        explanation = (
            f"the measured step less the {link.compute_s:.2f} s (+-{COMPUTE_BAND:.0%}) that its GPUs should compute"
        )
        return Exposed(least, most, explanation, on_link, rest=max(over[1], 0.0) - likely)
    # T = t/3 + max(2t/3, V/B) when everything hides that can, solved for T - t; V/B when nothing does.
    hidden_best = max((on_link - BACKWARD_SHARE * link.step_s) / (1 - BACKWARD_SHARE), 0.0)
    most = min(on_link, link.step_s)
    explanation = (
        f"the {on_link:.3g} s that these bytes take on the link, hidden by computing as far as possible or not at all"
    )
    return Exposed(min(hidden_best, most), most, explanation, on_link)


def by_cause(link: Link) -> dict[str, tuple[float, float]]:
    """Return the predicted and the measured seconds of a step, by what takes them; nothing of what was never timed.

    Nothing measures the computing alone: it counts as predicted, and what neither it nor the network explains stands by itself.
    """
    exposure = exposed(None, link)
    if not link.step_s or None in (link.compute_s, link.predicted_s) or (link.nodes > 1 and not exposure):
        return {}
    computing = min(link.compute_s, link.step_s)
    rest = exposure.rest if exposure else link.step_s - computing
    causes = {COMPUTING: (link.compute_s, computing)}
    if exposure:
        causes[NETWORK] = (max(link.predicted_s - link.compute_s, 0.0), max(link.step_s - computing - rest, 0.0))
    return causes | {INPUT: (0.0, rest)}


def answers(traffic: Traffic | None, link: Link) -> tuple[Answer, Answer]:
    """Say whether the network was the bottleneck, and how a step relates to it, and from which figures."""
    if link.nodes < 2:
        return (
            Answer(QUESTION, "No: all ranks share one machine."),
            Answer(RELATION, "It does not: all ranks share one machine."),
        )
    exposure = exposed(traffic, link)
    if exposure is None or not link.step_s:
        unknown = "Unknown: neither a step time nor the traffic of a step is known."
        return Answer(QUESTION, unknown), Answer(RELATION, unknown)
    least, most = exposure.least / link.step_s, exposure.most / link.step_s
    verdict = "In part" if least > 0 else "At most in part"
    if least > BOTTLENECK_SHARE:
        verdict = "Yes"
    elif most < SLIGHT_SHARE:
        verdict = "No"
    known_figures = figures(traffic, link)
    text = (
        f"{verdict}: {_seconds((exposure.least, exposure.most))} of the {link.step_s:.2f} s of a step ({least:.0%} to {most:.0%}) wait "
        f"for the network (derived: {exposure.how})."
    )
    if exposure.rest > SLIGHT_SHARE * link.step_s:
        text += (
            f" Another {exposure.rest:.2f} s are neither this computing nor what the network needs: slower GPUs, waiting for data, "
            "or a network that has become slower since the preflight."
        )
    takes = f"On the link alone these bytes take {exposure.on_link:.2f} s; a step takes {link.step_s:.2f} s."
    return Answer(QUESTION, text, known_figures), Answer(RELATION, f"{_moved(known_figures)} {takes}")


def figures(traffic: Traffic | None, link: Link) -> dict[str, dict[str, Any]]:
    """Return the numbers for a program: measured, derived, expected; what is not known is left out."""
    measured: dict[str, Any] = {"seconds_per_step": link.step_s, "preflight_mbps": link.probed_mbps}
    derived: dict[str, Any] = {}
    expected = {
        "bytes_per_step": link.ring_bytes,
        "compute_s": link.compute_s,
        "seconds_per_step": link.predicted_s,
    }
    if traffic:
        usual = traffic.usual
        measured["bytes_per_step"] = round(usual.bytes_per_step)
        measured["mbps"] = round(usual.mbps, 1)
        measured["peak_mbps"] = round(max(card.peak_mbps for card in traffic.cards), 1)
        measured["cards"] = {f"{card.node} {card.direction}": round(card.bytes_per_step) for card in traffic.cards}
        for name, whole in (("share_of_port", link.ordered_mbps), ("share_of_preflight", link.probed_mbps)):
            derived[name] = round(usual.mbps / whole, 4) if whole else None
    exposure = exposed(traffic, link)
    if exposure:
        derived["exposed_s"] = [round(exposure.least, 4), round(exposure.most, 4)]
        derived["unexplained_s"] = round(exposure.rest, 4)
    known = {MEASURED: measured, DERIVED: derived, EXPECTED: expected}
    return {source: {key: one for key, one in each.items() if one is not None} for source, each in known.items()}


def rows(traffic: Traffic | None, link: Link) -> list[tuple[str, str, str]]:
    """Return ``(name, value, source)`` of the figures for the page."""
    if link.nodes < 2:
        return []
    known_figures = figures(traffic, link)
    return [
        (what, show(known_figures[source][key]), f"{source}: {how}")
        for source, key, what, show, how in SHOWN
        if key in known_figures[source]
    ]


def _moved(known: Mapping[str, Mapping[str, Any]]) -> str:
    measured, derived, expected = (known[source] for source in (MEASURED, DERIVED, EXPECTED))
    by_law = ""
    if "bytes_per_step" in expected:
        by_law = f"; by the ring's law {_size(expected['bytes_per_step'])} are expected"
    if "mbps" not in measured:
        return f"Nothing measured the traffic{by_law}."
    shares = " and ".join(f"{derived[name]:.0%} {whole}" for name, whole in SHARES.items() if name in derived)
    carried = f"{measured['mbps']} Mb/s on average" + (f", {shares}" if shares else "")
    return f"Measured: each card moved {_size(measured['bytes_per_step'])} each way in a step, {carried}{by_law}."


def _seconds(found: Sequence[float]) -> str:
    least, most = found
    return "less than 0.01 s" if most < 0.005 else f"{least:.2f} to {most:.2f} s"


def _size(count: float) -> str:
    return f"{count / 1e6:.0f} MB" if count >= 1e7 else f"{count / 1e6:.2f} MB"


SHARES = {"share_of_port": "of the ordered port", "share_of_preflight": "of what the preflight measured"}
SHOWN = (
    (MEASURED, "seconds_per_step", "a step", "{:.3f} s".format, "the log"),
    (MEASURED, "bytes_per_step", "a card moves each way in a step", _size, "counters of the cards, the median"),
    (MEASURED, "mbps", "the link carried on average", "{:.1f} Mb/s".format, "the same counters"),
    (MEASURED, "peak_mbps", "at its highest", "{:.1f} Mb/s".format, "the same counters"),
    *((DERIVED, name, whole, "{:.0%}".format, "from the average above") for name, whole in SHARES.items()),
    (MEASURED, "preflight_mbps", "the link can carry", "{:.0f} Mb/s".format, "preflight, all nodes at once"),
    (DERIVED, "exposed_s", "a step waits for the network", _seconds, "as the answer above says"),
    (EXPECTED, "bytes_per_step", "a card moves each way in a step", _size, "the law of a flat ring"),
    (EXPECTED, "compute_s", "the GPUs compute in a step", "{:.3f} s".format, f"published runs, +-{COMPUTE_BAND:.0%}"),
    (EXPECTED, "seconds_per_step", "a step on this network", "{:.3f} s".format, "both lines above"),
)
"""The figures of the page in their order: where each is from, its name for people, how it is written, and how it is known."""
