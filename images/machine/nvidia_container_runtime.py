#!/usr/bin/python3
"""Bring the machine's GPU tool into a container, as NVIDIA's runtime does, and let runc do the rest.

A real machine's root may raise every limit; here a limit that this host cannot give is lowered to what it has.
"""

import json
import os
import resource
import sys

BROUGHT = ("/usr/bin/nvidia-smi", "/var/lib/machine/gpus.json")
UNLIMITED = 2**64 - 1  # As the OCI runtime specification writes it.


def with_gpus(config: dict) -> dict:
    """Return a container's configuration with the tool and what it reads, read-only."""
    options = ["bind", "ro", "nosuid", "nodev"]
    mounts = [{"destination": path, "source": path, "type": "bind", "options": options} for path in BROUGHT]
    return {**config, "mounts": [*config.get("mounts", []), *mounts]}


def with_possible_limits(process: dict) -> dict:
    """Return a container's configuration with its limits lowered to those that this host can give."""
    limits = []
    for one in process.get("rlimits") or []:
        hard = possible(one["type"], one["hard"])
        limits.append({**one, "hard": hard, "soft": min(one["soft"], hard)})
    return {**process, "rlimits": limits}


def possible(kind: str, wanted: int) -> int:
    """Raise this process's own limit, which runc inherits, where that is allowed; return what a container can have."""
    number = getattr(resource, kind)
    soft, hard = resource.getrlimit(number)
    if hard == resource.RLIM_INFINITY or wanted <= hard:
        return wanted
    try:
        resource.setrlimit(number, (soft, resource.RLIM_INFINITY if wanted == UNLIMITED else wanted))
    except (ValueError, OSError):
        return hard
    return wanted


def change(path: str, make) -> None:
    """Replace the document in a file by what ``make`` makes of it."""
    with open(path) as file:
        document = make(json.load(file))
    with open(path, "w") as file:
        json.dump(document, file)


def main(arguments: list) -> None:
    """Change the bundle of a container that is being made, or the process that is started in one, then become runc."""
    if "create" in arguments and "--bundle" in arguments:
        path = os.path.join(arguments[arguments.index("--bundle") + 1], "config.json")
        change(path, lambda config: {**with_gpus(config), "process": with_possible_limits(config["process"])})
    if "exec" in arguments and "--process" in arguments:
        change(arguments[arguments.index("--process") + 1], with_possible_limits)
    os.execvp("runc", ["runc", *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
