"""The machines behind the guests of an emulated account."""

from __future__ import annotations

from emulator.machines.container_machines import ContainerMachines
from emulator.machines.publishing import publish
from emulator.machines.registry import key_of
from emulator.machines.spec import MACHINE_IMAGE, Disk, MachineError, Machines, MachineSpec, NoMachines, Rule, Share

__all__ = [
    "MACHINE_IMAGE",
    "ContainerMachines",
    "Disk",
    "MachineError",
    "MachineSpec",
    "Machines",
    "NoMachines",
    "Rule",
    "Share",
    "key_of",
    "publish",
]
