"""A machine's read-only folder ``/var/lib/machine``: its keys, disks, GPUs and gate."""

import os
from collections.abc import Mapping
from pathlib import Path

import yaml

from emulator.machines.gpus import gpus_json
from emulator.machines.spec import MachineSpec, Share

GATE = "gate"
CLOUD_CONFIG = "#cloud-config"


def files(spec: MachineSpec, disk_lines: str, registry: str, authority: str, pip_conf: str = "") -> dict[str, str]:
    """The files that a machine gets before it starts: name to content."""
    return {
        "authorized_keys": "".join(f"{key.strip()}\n" for key in spec.ssh_keys),
        "ca.crt": authority,
        "disks": disk_lines,
        "gpus.json": gpus_json(spec),
        "pip.conf": pip_conf,
        "registry": f"{registry}\n",
        "root_password": spec.root_password,
        "ssh_host_ed25519_key": host_key(spec.user_data) or "",
        "startup_script": spec.startup_script,
        **_share(spec.share),
    }


def _share(share: Share | None) -> dict[str, str]:
    return {"share": share.name, "username": share.username, "password": share.password} if share else {}


def host_key(user_data: str) -> str | None:
    """The private ed25519 host key in cloud-init's user data; None in any other user data."""
    if not user_data.startswith(CLOUD_CONFIG):
        return None
    try:
        document = yaml.safe_load(user_data)
    except yaml.YAMLError:
        return None
    keys = document.get("ssh_keys") if isinstance(document, dict) else None
    key = keys.get("ed25519_private") if isinstance(keys, dict) else None
    return key.rstrip("\n") + "\n" if isinstance(key, str) else None


def write(folder: Path, contents: Mapping[str, str]) -> None:
    """Write the files, each in one step and for root alone."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, content in contents.items():
        write_private(folder / name, content)


def write_private(path: Path, content: str) -> None:
    """Replace a file in one step; nobody but root reads it."""
    part = path.with_name(f".{path.name}.part")
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(content)
    part.replace(path)
