#!/usr/bin/python3
"""Show the GPUs that the machine's flavor would have, in the words of NVIDIA's tool.

A GPU is as busy as the processors that play it: those of the rank that would have it.
"""

import json
import os
import sys
import time

GPUS = "/var/lib/machine/gpus.json"
NOTHING = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
UNITS = {"memory.total": " MiB", "utilization.gpu": " %"}
FIELDS = ("index", "name", "uuid", "driver_version", *UNITS)
RANK = "OMPI_COMM_WORLD_LOCAL_RANK="
SAMPLE_S = 0.3


def listing(gpus: list) -> str:
    """The text of ``nvidia-smi -L``, and of the tool alone, whose table is not emulated."""
    return "\n".join(f"GPU {gpu['index']}: {gpu['name']} (UUID: {gpu['uuid']})" for gpu in gpus)


def query(gpus: list, fields: list, form: list) -> str:
    """The text of ``nvidia-smi --query-gpu=FIELDS --format=csv,noheader[,nounits]``."""
    units = {} if "nounits" in form else UNITS
    lines = []
    for gpu in gpus:
        if "utilization.gpu" in fields:
            gpu["utilization.gpu"] = busy(gpu["index"])
        lines.append(", ".join(f"{gpu[field]}{units.get(field, '')}" for field in fields))
    return "\n".join(lines)


def busy(index: int, proc: str = "/proc") -> int:
    """The percentage of a processor that the ranks with this number have used just now."""
    pids = [pid for pid in os.listdir(proc) if pid.isdigit() and _is_rank(f"{proc}/{pid}/environ", index)]
    before = sum(_ticks(f"{proc}/{pid}/stat") for pid in pids)
    time.sleep(SAMPLE_S if pids else 0)
    used = sum(_ticks(f"{proc}/{pid}/stat") for pid in pids) - before
    return max(0, min(100, round(100 * used / os.sysconf("SC_CLK_TCK") / SAMPLE_S)))


def _is_rank(path: str, index: int) -> bool:
    try:
        with open(path, errors="replace") as file:
            return f"{RANK}{index}" in file.read().split("\0")
    except OSError:
        return False


def _ticks(path: str) -> int:
    try:
        with open(path) as file:
            return sum(int(word) for word in file.read().rpartition(")")[2].split()[11:13])
    except OSError:
        return 0


def main(arguments: list, path: str = GPUS) -> int:
    """Answer as the real tool would."""
    with open(path) as file:
        gpus = json.load(file)
    if not gpus:
        print(NOTHING)
        return 9
    options = dict(argument.partition("=")[::2] for argument in arguments)
    fields, form = options.get("--query-gpu", "").split(","), options.get("--format", "").split(",")
    if arguments in ([], ["-L"], ["--list-gpus"]):
        print(listing(gpus))
    elif set(options) == {"--query-gpu", "--format"} and set(fields) <= set(FIELDS) and "noheader" in form:
        print(query(gpus, fields, form))
    else:
        print(f"nvidia-smi (emulated): {' '.join(arguments)} is not emulated.", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
