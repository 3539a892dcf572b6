#!/usr/bin/python3
"""Show the GPUs that the machine's flavor would have, in the words of NVIDIA's tool.

A GPU is as busy as the processors that play it: those of the rank that would have it.
"""

import json
import os
import sys
import time
from datetime import datetime

GPUS = "/var/lib/machine/gpus.json"
NOTHING = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
UNITS = {"memory.total": " MiB", "memory.used": " MiB", "memory.free": " MiB", "utilization.gpu": " %"}
FIELDS = ("index", "name", "uuid", "driver_version", "count", "pci.bus_id", *UNITS)
RANK = "OMPI_COMM_WORLD_LOCAL_RANK="
SAMPLE_S = 0.3
LINE = "+-----------------------------------------------------------------------------+"


def listing(gpus: list) -> str:
    """The text of ``nvidia-smi -L``."""
    return "\n".join(f"GPU {gpu['index']}: {gpu['name']} (UUID: {gpu['uuid']})" for gpu in gpus)


def query(gpus: list, fields: list, form: list) -> str:
    """The text of ``nvidia-smi --query-gpu=FIELDS --format=csv[,noheader][,nounits]``."""
    unknown = [field for field in fields if field not in FIELDS]
    if unknown:
        raise ValueError(f'Field "{unknown[0]}" is not a valid field to query.')
    units = {} if "nounits" in form else UNITS
    rows = [[f"{_value(gpu, field, len(gpus))}{units.get(field, '')}" for field in fields] for gpu in gpus]
    head = [] if "noheader" in form else [[f"{f} [MiB]" if f.startswith("memory.") else f for f in fields]]
    return "\n".join(", ".join(row) for row in head + rows)


def _value(gpu: dict, field: str, count: int) -> object:
    if field == "utilization.gpu":
        return busy(gpu["index"])
    memory = gpu["memory_mib"]
    special = {"count": count, "memory.total": memory, "memory.used": 0, "memory.free": memory}
    return {**gpu, **special, "pci.bus_id": gpu["bus_id"]}[field]


def table(gpus: list, now: datetime) -> str:
    """The text of ``nvidia-smi`` alone."""
    driver, cuda = gpus[0]["driver_version"], gpus[0]["cuda_version"]
    rows = [
        f"{now:%a %b %e %H:%M:%S %Y}",
        LINE,
        f"| NVIDIA-SMI {driver:<13}Driver Version: {driver:<13}CUDA Version: {cuda:<9}|",
        "|-------------------------------+----------------------+----------------------+",
        "| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |",
        "| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |",
        "|===============================+======================+======================|",
    ]
    for gpu in gpus:
        name, memory = gpu["name"][:15] + "...", f"0MiB / {gpu['memory_mib']}MiB"
        rows += [
            f"| {gpu['index']:>3}  {name:<18}  On   | {gpu['bus_id']} Off |                    0 |",
            f"| N/A   33C    P0    26W / 250W | {memory:>20} |      0%      Default |",
            "+-------------------------------+----------------------+----------------------+",
        ]
    rows += ["", LINE, "| Processes:" + " " * 66 + "|", "|  No running processes found" + " " * 49 + "|", LINE]
    return "\n".join(rows)


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
    if not arguments:
        print(table(gpus, datetime.now()))
    elif arguments in (["-L"], ["--list-gpus"]):
        print(listing(gpus))
    elif set(options) == {"--query-gpu", "--format"}:
        try:
            print(query(gpus, options["--query-gpu"].split(","), options["--format"].split(",")))
        except ValueError as invalid:
            print(invalid)
            return 2
    else:
        print(f"nvidia-smi (emulated): {' '.join(arguments)} is not emulated.", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
