"""Each machine's access rules on disk, so that they hold from its first start on."""

import json
from dataclasses import asdict, replace
from pathlib import Path

from emulator.machines.firewall import firewall_text
from emulator.machines.machine_mount import write_private
from emulator.machines.network_access import Access

OPEN = firewall_text(None, None)


class AccessFile:
    """One machine's file."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "access.json"

    def read(self, otherwise_mbps: int = 0) -> Access:
        """The rules that were written last; by default everything is open."""
        if not self._file.exists():
            return Access(OPEN, otherwise_mbps, otherwise_mbps)
        kept = Access(**json.loads(self._file.read_text()))
        return replace(
            kept,
            private_mbps=kept.private_mbps or otherwise_mbps,
            public_mbps=kept.public_mbps or otherwise_mbps,
        )

    def write(self, access: Access) -> None:
        """Keep it."""
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(self._file, json.dumps(asdict(access)))
