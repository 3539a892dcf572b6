"""SAN disks: sparse files on loop devices, known by the file behind them."""

import contextlib
import fcntl
import json
import os
import threading
import zlib
from pathlib import Path

from emulator.machines.host_tools import run
from emulator.machines.spec import Disk

GIB = 1024**3
FIRST_LOOP, LOOPS = 1024, 60_000  # beyond those that other programs are given; a device's number has 20 bits
LOOP_CTL_REMOVE = 0x4C81  # linux/loop.h
_attaching = threading.Lock()  # Two that look for a free loop device at the same time find the same one.


def device_name(disk: Disk) -> str:
    """The name inside the machine: SoftLayer's device 2 is xvdc."""
    return f"xvd{chr(ord('a') + disk.device)}"


def parse_loops(text: str) -> list[tuple[str, Path]]:
    """Read the loop devices and the files behind them from ``losetup --json``, which prints nothing where there are none."""
    entries = json.loads(text)["loopdevices"] if text.strip() else []
    return [(each["name"], Path(each["back-file"].removesuffix(" (deleted)"))) for each in entries]


class DiskFolder:
    """The disks of one account."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def attach(self, guest_id: int, disks: tuple[Disk, ...]) -> str:
        """Make and attach a guest's disks; return the lines "NAME MAJOR MINOR" for its init."""
        lines = []
        for disk in disks:
            file = self._folder / f"{guest_id}-{device_name(disk)}.img"
            number = os.stat(self._attached(file, disk.capacity_gb * GIB)).st_rdev
            lines.append(f"{device_name(disk)} {os.major(number)} {os.minor(number)}\n")
        return "".join(lines)

    def remove(self, guest_id: int) -> None:
        """Detach and delete a guest's disks."""
        self._remove(f"{guest_id}-")

    def remove_all(self) -> None:
        """Detach and delete every disk of the account."""
        self._remove("")

    def _attached(self, file: Path, size: int) -> str:
        with _attaching:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file.touch(mode=0o600)
            os.truncate(file, size)  # The size of a machine's disk never changes.
            attached = {behind: device for device, behind in _loops()}
            if file not in attached:
                # Always the same one, also after this computer was restarted: a machine may open no other one.
                own = f"/dev/loop{FIRST_LOOP + zlib.crc32(bytes(file)) % LOOPS}"
                place = "--find" if own in attached.values() else own
                run(f"Attaching disk {file.name}", ("losetup", place, str(file)))
            return next(device for device, behind in _loops() if behind == file)

    def _remove(self, prefix: str) -> None:
        with _attaching:
            for device, file in _loops():
                if file.parent == self._folder and file.name.startswith(prefix):
                    run(f"Detaching disk {file.name}", ("losetup", "--detach", device))
                    with contextlib.suppress(OSError), open("/dev/loop-control") as control:
                        fcntl.ioctl(control, LOOP_CTL_REMOVE, int(device.removeprefix("/dev/loop")))
            for file in self._folder.glob(f"{prefix}*.img"):
                file.unlink()


def _loops() -> list[tuple[str, Path]]:
    return parse_loops(run("Listing the disks", ("losetup", "--json", "--list", "--output", "NAME,BACK-FILE")))
