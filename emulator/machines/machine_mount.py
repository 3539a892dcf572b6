"""The folder that every machine finds at ``/var/lib/machine``, read-only: its keys, its disks, its GPUs, its gate."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from emulator.machines.cloud_config import host_key
from emulator.machines.gpus import gpus_json
from emulator.machines.spec import MachineSpec

GATE = "gate"


def files(spec: MachineSpec, disk_lines: str, registry: str, authority: str) -> dict[str, str]:
    """Name to content of what a machine gets before it starts."""
    return {
        "authorized_keys": "".join(f"{key.strip()}\n" for key in spec.ssh_keys),
        "ca.crt": authority,
        "disks": disk_lines,
        "gpus.json": gpus_json(spec),
        "registry": f"{registry}\n",
        "root_password": spec.root_password,
        "ssh_host_ed25519_key": host_key(spec.user_data) or "",
    }


def write(folder: Path, contents: Mapping[str, str]) -> None:
    """Put the files there, each at once and for root alone."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, content in contents.items():
        write_private(folder / name, content)


def write_private(path: Path, content: str) -> None:
    """Replace a file in one step; nobody but root reads it."""
    part = path.with_name(f".{path.name}.part")
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(content)
    part.replace(path)
