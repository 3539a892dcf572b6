"""Time of an update by the law of the ring.

Source of the law: a flat ring over p ranks moves 2 (p - 1) / p of the gradients through every network card each way, reproduced
at full size on shaped links within 6 % at up to 2 Gb/s. The backward pass is two thirds of the computing and hides the exchange.
"""

from typing import Any, Dict, Optional

from agent.run.document import RunDocument

TCP_SHARE = 0.941
"""Share of a line rate that TCP leaves for the data themselves."""
FORWARD_SHARE = 1.0 / 3


def bytes_per_s(mbps: float) -> float:
    """Return the data that TCP carries over a line of so many megabits a second."""
    return TCP_SHARE * carried_bytes_per_s(mbps)


def carried_bytes_per_s(mbps: float) -> float:
    """Return bytes a second for megabits a second of data, as a probe of the network counts them."""
    return mbps * 1e6 / 8


def ring_bytes(parameter_bytes: float, ranks: int, nodes: int) -> float:
    """Return the bytes of an update for one network card in one direction; none where all ranks share a machine."""
    return 0.0 if nodes < 2 else 2.0 * (ranks - 1) / ranks * parameter_bytes


def step_s(compute_s: float, wire_bytes: float, link_bytes_per_s: float) -> float:
    """Return the seconds of one update of one micro-step: T = t/3 + max(2t/3, V/B)."""
    if not wire_bytes:
        return compute_s
    return FORWARD_SHARE * compute_s + max((1 - FORWARD_SHARE) * compute_s, wire_bytes / link_bytes_per_s)


def line_mbps(seconds: float, compute_s: float, wire_bytes: float) -> Optional[float]:
    """Return the line rate in Mb/s on which an update takes so long: the law of ``step_s`` solved for it; None where none is enough."""
    exchange_s = seconds - FORWARD_SHARE * compute_s
    if seconds < compute_s or exchange_s <= 0:
        return None
    return wire_bytes / exchange_s / TCP_SHARE * 8 / 1e6


def expected_bytes_per_s(port_mbps: float, measured_mbps: Optional[float]) -> float:
    """Return what a link may be held to: what was measured on it, and never less than the port that was ordered.

    Ports of 1000 have carried about 2 Gb/s; a run on one that carries 1 Gb/s is not slow, and is on one that carries less.
    """
    return max(bytes_per_s(port_mbps), carried_bytes_per_s(measured_mbps or 0))


def slowest_mbps(preflight: Dict[str, Any]) -> Optional[float]:
    """Return what the slowest way between two machines carried, or None when nothing measured it.

    An earlier version measured with a single stream too, which may be held back by its window.
    """
    links = [one for one in preflight.get("bandwidth") or [] if one.get("streams") != 1]
    return min([one["mbps"] for one in links if one.get("mbps") is not None] or [None])


def expected_step(spec: RunDocument, preflight: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """Return {seconds, mbps, source} of a step on the network that the preflight measured, or None for what was never timed."""
    if spec.expected.predicted_s is None:
        return None
    mbps = slowest_mbps(preflight)
    carried = expected_bytes_per_s(spec.machines.port_speed_mbps or 0, mbps)
    if not spec.expected.wire_bytes:
        return {"seconds": round(spec.expected.compute_s, 3), "mbps": None, "source": "for one machine"}
    if not carried:
        return {"seconds": spec.expected.predicted_s, "mbps": None, "source": "before anything was measured"}
    data_mbps = round(carried * 8 / 1e6)
    measured = mbps is not None and data_mbps <= mbps + 1
    source = "as the preflight measured" if measured else "what the ordered port carries"
    return {
        "seconds": round(step_s(spec.expected.compute_s, spec.expected.wire_bytes, carried), 3),
        "mbps": data_mbps,
        "source": "at {} Mb/s, {}".format(data_mbps, source),
    }
