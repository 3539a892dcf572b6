"""The machines that play the guests of an emulated account."""

from __future__ import annotations

from emulator.machines.spec import Disk, MachineError, Machines, MachineSpec, NoMachines, Rule

__all__ = ["Disk", "MachineError", "MachineSpec", "Machines", "NoMachines", "Rule"]
