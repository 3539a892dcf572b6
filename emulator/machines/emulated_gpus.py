"""Emulated GPUs of a machine, with the memory and driver version that its `nvidia-smi` shows."""

import json
import uuid

from emulator.machines.spec import MachineError, MachineSpec

MEMORY_MIB = {"Tesla P100-PCIE-16GB": 16280, "Tesla V100-PCIE-16GB": 16160}
DRIVER = "440.118.02"


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
