"""A machine's read-only folder ``/var/lib/machine``: its keys, disks, GPUs and gate."""

import json
import uuid
from collections.abc import Mapping
from pathlib import Path

import yaml

from emulator.machines.host_tools import write_private
from emulator.machines.spec import MachineError, MachineSpec, Share

GATE = "gate"
CLOUD_CONFIG = "#cloud-config"
MEMORY_MIB = {"Tesla P100-PCIE-16GB": 16280, "Tesla V100-PCIE-16GB": 16160}
DRIVER = "440.118.02"


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
        return yaml.safe_load(user_data)["ssh_keys"]["ed25519_private"].rstrip("\n") + "\n"
    except (yaml.YAMLError, KeyError, TypeError, AttributeError):
        return None


def write(folder: Path, contents: Mapping[str, str]) -> None:
    """Write the files, each in one step and for root alone."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, content in contents.items():
        write_private(folder / name, content)


def gpus_json(spec: MachineSpec) -> str:
    """The GPUs of the guest's flavor, named as emulated; a GPU keeps its identity over reboots."""
    return json.dumps([_gpu(spec, index) for index in range(spec.gpu_count if spec.gpu_model else 0)], indent=1)


def _gpu(spec: MachineSpec, index: int) -> dict[str, object]:
    memory_mib = MEMORY_MIB.get(spec.gpu_model, spec.gpu_memory_mib)
    if not memory_mib:
        known = ", ".join(MEMORY_MIB)
        raise MachineError(f"Preparing machine {spec.guest_id}: no GPU '{spec.gpu_model}' is emulated. Use {known}.")
    return {
        "index": index,
        "name": f"{spec.gpu_model} (emulated)",
        "uuid": f"GPU-{uuid.uuid5(uuid.NAMESPACE_OID, f'{spec.guest_id}/{index}')}",
        "memory.total": memory_mib,
        "driver_version": DRIVER,
    }
