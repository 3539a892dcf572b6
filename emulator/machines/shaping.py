"""Port speeds: a token bucket on what a machine sends."""

from __future__ import annotations

LEAST_BURST_BYTES = 64 * 1024  # One segment that the kernel has not yet cut up has to fit in.
BURST_S = 0.002


def shaping_argv(interface: str, mbps: int) -> tuple[str, ...]:
    """The argv that holds ``interface`` to ``mbps`` megabits per second, whatever held it before."""
    burst = max(LEAST_BURST_BYTES, int(mbps * 1e6 / 8 * BURST_S))
    limits = ("rate", f"{mbps}mbit", "burst", str(burst), "latency", "50ms")
    return ("tc", "qdisc", "replace", "dev", interface, "root", "tbf", *limits)
