"""Compute how long a step should take on this network, where anything like the run was ever timed."""

import json
import os

from agent import step_time_model


def of(run):
    """Return {seconds, mbps, source} of a step, or None for what was never timed."""
    spec = run.spec
    if spec.predicted_s is None:
        return None
    mbps = step_time_model.slowest_mbps(read_preflight(run.path("preflight.json")))
    bytes_per_s = step_time_model.expected_bytes_per_s(spec.port_speed_mbps or 0, mbps)
    if not spec.wire_bytes:
        return {"seconds": round(spec.compute_s, 3), "mbps": None, "source": "for one machine"}
    if not bytes_per_s:
        return {"seconds": spec.predicted_s, "mbps": None, "source": "before anything was measured"}
    seconds = step_time_model.step_s(spec.compute_s, spec.wire_bytes, bytes_per_s)
    data_mbps = round(bytes_per_s * 8 / 1e6)
    measured = mbps is not None and data_mbps <= mbps + 1
    source = "at {} Mb/s, {}".format(
        data_mbps, "as the preflight measured" if measured else "what the ordered port carries"
    )
    return {"seconds": round(seconds, 3), "mbps": data_mbps, "source": source}


def read_preflight(path):
    """Return what the preflight wrote down, or nothing."""
    if not os.path.exists(path):
        return {}
    with open(path) as file:
        return json.load(file)
