"""A machine's read-only folder ``/var/lib/machine``: its keys, disks, GPUs and gate."""

from collections.abc import Mapping
from pathlib import Path

import yaml

from emulator.machines.emulated_gpus import gpus_json
from emulator.machines.host_tools import write_private
from emulator.machines.spec import MachineSpec, Share

GATE, DISKS = "gate", "disks"
CLOUD_CONFIG = "#cloud-config"


def files(spec: MachineSpec, disk_lines: str, registry: str, authority: str, pip_conf: str = "") -> dict[str, str]:
    """The files that a machine gets before it starts: name to content."""
    return {
        "authorized_keys": "".join(f"{key.strip()}\n" for key in spec.ssh_keys),
        "ca.crt": authority,
        DISKS: disk_lines,
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
        return yaml.safe_load(user_data)["ssh_keys"]["ed25519_private"].rstrip("\n") + "\n"
    except (yaml.YAMLError, KeyError, TypeError, AttributeError):
        return None


def write(folder: Path, contents: Mapping[str, str]) -> None:
    """Write the files, each in one step and for root alone."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, content in contents.items():
        write_private(folder / name, content)
