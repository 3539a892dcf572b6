"""Whether a run waited for its network: its exposed communication, measured, derived or expected."""

from dataclasses import dataclass
from typing import Any

from microcluster.analysis.run_questions import Answer
from microcluster.analysis.samples import MEGABIT_BYTES, Traffic

QUESTION = "Was the network the bottleneck, and how does a step relate to it?"
MEASURED, DERIVED, EXPECTED = "measured", "derived", "expected"
BOTTLENECK_SHARE, SLIGHT_SHARE = 0.3, 0.1
"""Shares of a step that wait for the network: from the first on it is the bottleneck, below the second it does not matter."""
COMPUTE_BAND = 0.10
"""How exactly the compute time of a GPU is known."""
COMPUTING, NETWORK, INPUT = "computing", "waiting for the network", "input and all else"
BACKWARD_SHARE = 2 / 3
"""The share of the compute time during which gradients can be exchanged."""

Row = tuple[str, str, str]


@dataclass(frozen=True)
class Link:
    """A run's step time and network.

    Attributes:
        step_s: an average step, measured.
        probed_mbps: the slowest connection in the preflight; None when the preflight was skipped.
        carries_mbps: as probed, else the usual rate of the ordered port.
        ring_bytes: of one card each way in a step, by the ring's law; None when the model's size was not logged.
        compute_s: predicted compute time of a step; None for what was never timed.
    """

    nodes: int
    step_s: float | None
    ordered_mbps: int
    carries_mbps: float
    probed_mbps: float | None = None
    ring_bytes: float | None = None
    compute_s: float | None = None
    predicted_s: float | None = None


@dataclass(frozen=True)
class Exposed:
    """Seconds of a step that wait for the network, at least and at most, and how they were derived.

    Attributes:
        rest: seconds that neither computing nor the network explains.
    """

    least: float
    most: float
    how: str
    rest: float = 0.0


def exposed(traffic: Traffic | None, link: Link) -> Exposed | None:
    """Derive the exposed communication of a step; None where it is unknown."""
    volume = traffic.usual.bytes_per_step if traffic else link.ring_bytes
    if link.nodes < 2 or not link.step_s or not volume or not link.carries_mbps:
        return None
    on_link = volume / (link.carries_mbps * MEGABIT_BYTES)
    if link.compute_s is not None:
        over = [link.step_s - link.compute_s * (1 + band) for band in (COMPUTE_BAND, 0, -COMPUTE_BAND)]
        least, likely, most = (min(max(seconds, 0.0), on_link) for seconds in over)
        how = f"the measured step less the {link.compute_s:.2f} s (+-{COMPUTE_BAND:.0%}) that its GPUs should compute"
        return Exposed(least, most, how, rest=max(over[1], 0.0) - likely)
    # T = t/3 + max(2t/3, V/B) when everything hides that can, solved for T - t; V/B when nothing does.
    hidden_best = max((on_link - BACKWARD_SHARE * link.step_s) / (1 - BACKWARD_SHARE), 0.0)
    most = min(on_link, link.step_s)
    how = f"the {on_link:.3g} s that these bytes take on the link, hidden by computing as far as possible or not at all"
    return Exposed(min(hidden_best, most), most, how)


def by_cause(link: Link) -> dict[str, tuple[float, float]]:
    """Return the predicted and the measured seconds of a step, by what takes them; nothing of what was never timed.

    Nothing measures the computing alone: it counts as predicted, and what neither it nor the network explains stands by itself.
    """
    found = exposed(None, link)
    if not link.step_s or link.compute_s is None or link.predicted_s is None or (link.nodes > 1 and found is None):
        return {}
    computing = min(link.compute_s, link.step_s)
    rest = found.rest if found else link.step_s - computing
    causes = {COMPUTING: (link.compute_s, computing)}
    if link.nodes > 1:
        causes[NETWORK] = (max(link.predicted_s - link.compute_s, 0.0), max(link.step_s - computing - rest, 0.0))
    return causes | {INPUT: (0.0, rest)}


def answer(traffic: Traffic | None, link: Link) -> Answer:
    """Say whether the network was the bottleneck, and from which figures."""
    if link.nodes < 2:
        return Answer(QUESTION, "No: all ranks share one machine.", {})
    found = exposed(traffic, link)
    if found is None or not link.step_s:
        return Answer(QUESTION, "Unknown: neither a step time nor the traffic of a step is known.", {})
    least, most = found.least / link.step_s, found.most / link.step_s
    verdict = "In part" if least > 0 else "At most in part"
    if least > BOTTLENECK_SHARE or most < SLIGHT_SHARE:
        verdict = "Yes" if least > BOTTLENECK_SHARE else "No"
    text = (
        f"{verdict}: {_range(found)} s of the {link.step_s:.2f} s of a step ({_shares(least, most)}) are exposed communication "
        f"(derived: {found.how}). {_moved(traffic, link)}"
    )
    if found.rest > SLIGHT_SHARE * link.step_s:
        text += (
            f" Another {found.rest:.2f} s are neither this computing nor what the network needs: slower GPUs, waiting for data, "
            "or a network that has become slower since the preflight."
        )
    return Answer(QUESTION, text, figures(traffic, link))


def figures(traffic: Traffic | None, link: Link) -> dict[str, Any]:
    """Return the numbers for a program: measured, derived, expected."""
    found, usual = exposed(traffic, link), traffic.usual if traffic else None
    known: dict[str, dict[str, Any]] = {MEASURED: {"seconds_per_step": link.step_s, "preflight_mbps": link.probed_mbps}}
    if traffic and usual:
        known[MEASURED] |= {
            "bytes_per_step": round(usual.bytes_per_step),
            "bytes_per_step_bounds": [round(bound) for bound in usual.bounds],
            "mbps": round(usual.mbps, 1),
            "peak_mbps": round(max(card.peak_mbps for card in traffic.cards), 1),
            "cards": {f"{card.node} {card.direction}": round(card.bytes_per_step) for card in traffic.cards},
        }
    known[DERIVED] = {
        "exposed_s": [round(found.least, 4), round(found.most, 4)] if found else None,
        "unexplained_s": round(found.rest, 4) if found else None,
        "share_of_port": round(usual.mbps / link.ordered_mbps, 4) if usual and link.ordered_mbps else None,
        "share_of_preflight": round(usual.mbps / link.probed_mbps, 4) if usual and link.probed_mbps else None,
    }
    known[EXPECTED] = {
        "bytes_per_step": round(link.ring_bytes) if link.ring_bytes else None,
        "compute_s": link.compute_s,
        "seconds_per_step": link.predicted_s,
    }
    return known


def rows(traffic: Traffic | None, link: Link) -> list[Row]:
    """Return ``(name, value, source)`` for the page."""
    if link.nodes < 2:
        return []
    found, listed = exposed(traffic, link), []

    def add(what: str, value: str | None, how: str) -> None:
        if value is not None:
            listed.append((what, value, how))

    add("a step", f"{link.step_s:.3f} s" if link.step_s else None, f"{MEASURED}: the log")
    if traffic:
        usual = traffic.usual
        low, high = usual.bounds
        add(
            "a card moves each way in a step",
            f"{_size(usual.bytes_per_step)} ({_size(low)} to {_size(high)})",
            f"{MEASURED}: counters of the cards over {usual.steps:.0f} steps, the median of {len(traffic.cards)} cards and ways",
        )
        peak = max(card.peak_mbps for card in traffic.cards)
        add(
            "the link carried",
            f"{usual.mbps:.1f} Mb/s on average, {peak:.1f} at its highest",
            f"{MEASURED}: the same counters",
        )
        add("of the ordered port", _share(usual.mbps, link.ordered_mbps), f"{DERIVED} from the line above")
        add("of what the preflight measured", _share(usual.mbps, link.probed_mbps), f"{DERIVED} from the line above")
    add(
        "the link can carry",
        f"{link.probed_mbps:.0f} Mb/s" if link.probed_mbps else None,
        f"{MEASURED}: preflight, all nodes at once",
    )
    if found and link.step_s:
        shares = _shares(found.least / link.step_s, found.most / link.step_s)
        add("exposed communication in a step", f"{_range(found)} s ({shares})", f"{DERIVED}: {found.how}")
    by_law = f"{EXPECTED}: the law of a flat ring"
    add("a card moves each way in a step", _size(link.ring_bytes) if link.ring_bytes else None, by_law)
    add("the GPUs compute in a step", _seconds(link.compute_s), f"{EXPECTED}: published runs, +-{COMPUTE_BAND:.0%}")
    add("a step on this network", _seconds(link.predicted_s), f"{EXPECTED}: both lines above")
    return listed


def _moved(traffic: Traffic | None, link: Link) -> str:
    by_law = f" by the ring's law {_size(link.ring_bytes)} are expected" if link.ring_bytes else ""
    if traffic is None:
        return f"Nothing measured the traffic;{by_law}." if by_law else "Nothing measured the traffic."
    usual = traffic.usual
    ordered, probed = _share(usual.mbps, link.ordered_mbps), _share(usual.mbps, link.probed_mbps)
    against = [f"{ordered} of the ordered port"] if ordered else []
    against += [f"{probed} of what the preflight measured"] if probed else []
    share = f", {' and '.join(against)}" if against else ""
    rest = f";{by_law}" if by_law else ""
    return (
        f"Measured: each card moved {_size(usual.bytes_per_step)} each way in a step, {usual.mbps:.1f} Mb/s on average"
        f"{share}{rest}."
    )


def _range(found: Exposed) -> str:
    return "less than 0.01" if found.most < 0.005 else f"{found.least:.2f} to {found.most:.2f}"


def _shares(least: float, most: float) -> str:
    return f"{least:.0%} to {most:.0%}"


def _share(mbps: float, of: float | None) -> str | None:
    return f"{mbps / of:.0%}" if of else None


def _seconds(seconds: float | None) -> str | None:
    return None if seconds is None else f"{seconds:.3f} s"


def _size(count: float) -> str:
    return f"{count / 1e6:.0f} MB" if count >= 1e7 else f"{count / 1e6:.2f} MB"
