"""The data disk: found by size and position, formatted only if it is proved empty, mounted by UUID."""

from dataclasses import dataclass

from microcluster.remote.errors import RemoteError
from microcluster.remote.host import Host

GIB = 1024**3
CHECKED_BYTES = 64 * 1024**2
RECORD = "/etc/microcluster/formatting"
FSTAB = "/etc/fstab"
OPTIONS = "defaults,noatime,nofail"
CANDIDATES = tuple(f"/dev/xvd{letter}" for letter in "cdefghijklmnop")
"""SoftLayer's device names; xvda is the system, xvdb is swap."""
BLKID_NOTHING = 2


class DiskRefusedError(RemoteError):
    """The disk may hold data; it was not changed."""


@dataclass(frozen=True)
class DataDisk:
    """The wanted disk; ``label`` identifies our file system."""

    capacity_gb: int
    mount_point: str
    mark: str

    @property
    def label(self) -> str:
        """At most 16 bytes, the limit of ext4."""
        return f"mc-{self.mark}"


def ensure_data_disk(host: Host, disk: DataDisk) -> bool:
    """Format and mount the disk as needed; return whether anything changed."""
    device = _find(host, disk)
    changed = False
    if _field(host, device, "LABEL") != disk.label or _field(host, device, "TYPE") != "ext4":
        _format(host, device, disk)
        changed = True
    changed = _ensure_fstab(host, _field(host, device, "UUID"), disk.mount_point) or changed
    return _ensure_mounted(host, device, disk) or changed


def _find(host: Host, disk: DataDisk) -> str:
    wanted = disk.capacity_gb * GIB
    for device in CANDIDATES:
        if host.run(("test", "-b", device), accept=(0, 1)).exit_code == 0 and _bytes(host, device) == wanted:
            return device
    raise DiskRefusedError(
        f"looking for the data disk of {host}: no device from {CANDIDATES[0]} on has {disk.capacity_gb} GB "
        f"({wanted} bytes). List the disks: fab ssh {host.facts.name}, then lsblk -b"
    )


def _bytes(host: Host, device: str) -> int:
    return int(host.run(("blockdev", "--getsize64", device)).stdout)


def _field(host: Host, device: str, name: str) -> str:
    """Return one field of the device's file system, or an empty text."""
    return host.run(("blkid", "-p", "-o", "value", "-s", name, device), accept=(0, BLKID_NOTHING)).stdout.strip()


def _format(host: Host, device: str, disk: DataDisk) -> None:
    size = _bytes(host, device)
    record = f"{device} {size} {disk.label}\n"
    if host.read(RECORD) != record:  # Else it was proved empty before, and formatting was interrupted.
        _refuse_unless_empty(host, device, size)
        host.run(("mkdir", "-p", RECORD.rpartition("/")[0]))
        host.put(RECORD, record)
    elif _field(host, device, "TYPE") not in ("", "ext4"):
        raise _refusal(host, device, f"it holds {_field(host, device, 'TYPE')}")
    fast = "lazy_itable_init=1,lazy_journal_init=1,nodiscard"
    host.run(("mkfs.ext4", "-q", "-L", disk.label, "-E", fast, device), timeout_s=600)
    host.run(("rm", "-f", RECORD))


def _refuse_unless_empty(host: Host, device: str, size: int) -> None:
    # Lines "offset,uuid,label,type"; the options that print less need a newer util-linux than Ubuntu 16.04 has.
    lines = host.run(("wipefs", "--parsable", device)).stdout.splitlines()
    signatures = [line.split(",")[2:] for line in lines if line and not line.startswith("#")]
    if signatures:
        held = ", ".join(" ".join(filter(None, (kind, ",".join(label)))) for *label, kind in signatures)
        raise _refusal(host, device, f"it already holds {held}")
    found = host.run(("blkid", "-p", device), accept=(0, BLKID_NOTHING)).stdout.strip()
    if found:
        raise _refusal(host, device, f"it already holds something ({found})")
    children = host.run(("lsblk", "-nro", "NAME", device)).stdout.split()[1:]
    if children:
        raise _refusal(host, device, f"it has partitions ({', '.join(children)})")
    for end, offset in (("first", 0), ("last", max(0, size - CHECKED_BYTES))):
        same = ("cmp", "-s", "-n", str(CHECKED_BYTES), "-i", f"{offset}:0", device, "/dev/zero")
        if host.run(same, accept=(0, 1)).exit_code:
            raise _refusal(host, device, f"its {end} {CHECKED_BYTES // 1024**2} MiB are not all zero")


def _refusal(host: Host, device: str, why: str) -> DiskRefusedError:
    return DiskRefusedError(
        f"preparing the data disk {device} of {host}: {why}, and it is not ours. It was not changed. If its data are "
        f"not needed: fab ssh {host.facts.name}, then wipefs -a {device} and clear its first and last 64 MiB; then run the same command again."
    )


def _ensure_fstab(host: Host, uuid: str, mount_point: str) -> bool:
    lines = (host.read(FSTAB) or "").splitlines()
    others = [line for line in lines if line.startswith("#") or line.split()[1:2] != [mount_point]]
    return host.put(FSTAB, "\n".join([*others, f"UUID={uuid} {mount_point} ext4 {OPTIONS} 0 0"]) + "\n")


def _ensure_mounted(host: Host, device: str, disk: DataDisk) -> bool:
    mounted = host.run(("findmnt", "-nro", "SOURCE,LABEL", "-M", disk.mount_point), accept=(0, 1)).stdout.strip()
    if not mounted:
        host.run(("mkdir", "-p", "-m", "777", disk.mount_point))
        host.run(("mount", disk.mount_point))
        host.run(("chmod", "777", disk.mount_point))
        return True
    number = ("stat", "-L", "-c", "%t:%T", device)
    same = host.run(("sh", "-c", 'stat -L -c %t:%T "$(findmnt -nro SOURCE -M "$1")"', "source", disk.mount_point))
    if same.stdout != host.run(number).stdout and mounted.split()[-1] != disk.label:
        raise DiskRefusedError(
            f"mounting {device} of {host} at {disk.mount_point}: {mounted.split()[0]} is mounted there already."
        )
    return False
