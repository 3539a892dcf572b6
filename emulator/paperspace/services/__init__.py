"""Every operation that is emulated, and the paths of the vendor's that are not."""

import re

from emulator.paperspace.operations import Operation
from emulator.paperspace.services import (
    machine_events,
    machines,
    offers,
    private_networks,
    public_ips,
    session,
    shared_drives,
    startup_scripts,
)

OPERATIONS: tuple[Operation, ...] = (
    *session.OPERATIONS,
    *offers.OPERATIONS,
    *machines.OPERATIONS,
    *machine_events.OPERATIONS,
    *private_networks.OPERATIONS,
    *shared_drives.OPERATIONS,
    *startup_scripts.OPERATIONS,
    *public_ips.OPERATIONS,
)
_PARAMETER = re.compile(r"\{(\w+)\}")
_PATTERNS = [(each, re.compile(_PARAMETER.sub(r"(?P<\1>[^/]+)", each.path))) for each in OPERATIONS]


def find(method: str, path: str) -> tuple[Operation | None, dict[str, str], bool]:
    """The operation of a method and a path, its path parameters, and whether the path has any operation."""
    known = False
    for operation, pattern in _PATTERNS:
        if match := pattern.fullmatch(path):
            known = True
            if operation.method == method:
                return operation, match.groupdict(), True
    return None, {}, known
