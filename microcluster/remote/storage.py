"""Storage of data: a data disk, formatted only if proved empty, or a network drive, proved to be one for all hosts."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from microcluster.core.plain_text import note
from microcluster.core.polling import NotReadyError, wait_until
from microcluster.jobs.cluster_facts import Drive
from microcluster.remote.answers import SIZE, read_answer
from microcluster.remote.errors import RemoteError
from microcluster.remote.host import Host
from microcluster.remote.system import ensure_commands

GIB = 1024**3
CHECKED_BYTES = 64 * 1024**2
RECORD = "/etc/microcluster/formatting"
OPTIONS = "defaults,noatime,nofail"
CANDIDATES = tuple(f"/dev/xvd{letter}" for letter in "cdefghijklmnop")
"""SoftLayer's device names; xvda is the system, xvdb is swap."""
BLKID_NOTHING = 2
CREDENTIALS = "/etc/microcluster/drive.credentials"
RCLONE = "/etc/microcluster/rclone.conf"
FSTAB = "/etc/fstab"
READY_TIMEOUT_S = 180.0
"""The vendor says nothing of how soon a new drive can be mounted."""
SEEN_TIMEOUT_S = 30.0
MOUNT_TIMEOUT_S = 60.0
REFUSED = ("error(13)", "LOGON_FAILURE", "logon is invalid", "ACCESS_DENIED", "unknown user name or bad password")
"""Words in the output of mount.cifs and rclone when the drive refuses the password."""
# A directory cache of one second: with the default of five minutes a node resumes from what it saw before.
# The delay of five seconds before a closed file is written stays: without it a rename meets its own upload.
RCLONE_OPTIONS = ("--vfs-cache-mode", "writes", "--dir-cache-time", "1s", "--allow-other", "--daemon")
WRITE = 'mkdir -p "${1%/*}" && cat > "$1" && sync "$1"'


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
    line = f"UUID={_field(host, device, 'UUID')} {disk.mount_point} ext4 {OPTIONS} 0 0"
    changed = _ensure_fstab(host, disk.mount_point, line) or changed
    return _ensure_mounted(host, device, disk) or changed


def _find(host: Host, disk: DataDisk) -> str:
    wanted_bytes = disk.capacity_gb * GIB
    for device in CANDIDATES:
        if host.run(("test", "-b", device), accept=(0, 1)).exit_code == 0 and _bytes(host, device) == wanted_bytes:
            return device
    raise RemoteError(
        f"looking for the data disk of {host}: no device from {CANDIDATES[0]} on has {disk.capacity_gb} GB "
        f"({wanted_bytes} bytes). List the disks: fab ssh {host.facts.name}, then lsblk -b"
    )


def _bytes(host: Host, device: str) -> int:
    size = host.run(("blockdev", "--getsize64", device)).stdout
    return read_answer(SIZE, size, f"reading the size of {device} of {host}")


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
    # Lines "offset,uuid,label,type", the last two for people; the options that print less need a newer util-linux than Ubuntu 16.04 has.
    lines = host.run(("wipefs", "--parsable", device)).stdout.splitlines()
    signatures = ["".join(line.split(",", 2)[2:]) for line in lines if line and not line.startswith("#")]
    if signatures:
        raise _refusal(host, device, f"it already holds {'; '.join(signatures)}")
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


def _refusal(host: Host, device: str, why: str) -> RemoteError:
    return RemoteError(
        f"preparing the data disk {device} of {host}: {why}, and it is not ours. It was not changed. If its data are "
        f"not needed: fab ssh {host.facts.name}, then wipefs -a {device} and clear its first and last 64 MiB; then run the same command again."
    )


def _ensure_fstab(host: Host, mount_point: str, line: str) -> bool:
    """Let ``line`` be the only one for a mount point; return whether it was not."""
    lines = (host.read(FSTAB) or "").splitlines()
    others = [line for line in lines if line.startswith("#") or line.split()[1:2] != [mount_point]]
    return host.put(FSTAB, "\n".join([*others, line]) + "\n")


def _ensure_mounted(host: Host, device: str, disk: DataDisk) -> bool:
    mounted = host.run(("findmnt", "-nro", "SOURCE,LABEL", "-M", disk.mount_point), accept=(0, 1)).stdout.strip()
    if not mounted:
        host.run(("mkdir", "-p", disk.mount_point))
        host.run(("mount", disk.mount_point))
        host.run(("chmod", "755", disk.mount_point))
        return True
    number = ("stat", "-L", "-c", "%t:%T", device)
    same = host.run(("sh", "-c", 'stat -L -c %t:%T "$(findmnt -nro SOURCE -M "$1")"', "source", disk.mount_point))
    source, _, label = mounted.partition(" ")
    if same.stdout != host.run(number).stdout and label != disk.label:
        raise RemoteError(
            f"mounting {device} of {host} at {disk.mount_point}: {source} is mounted there already. If nothing needs it there: "
            f"fab ssh {host.facts.name}, then umount {disk.mount_point}; then run the same command again."
        )
    return False


@dataclass(frozen=True)
class Mount:
    """Mount of a drive: the mount point, and the owner of its files."""

    drive: Drive
    mount_point: str
    user: str

    @property
    def source(self) -> str:
        """The share, as mount.cifs names it."""
        return f"//{self.drive.address}/{self.drive.share}"


def ensure_mounted(root: Host, mount: Mount, password: str) -> bool:
    """Mount the drive; return whether anything changed.

    The password is written into files that only root reads, and is never in an argument.
    """
    if root.run(("findmnt", "-nro", "FSTYPE", "-M", mount.mount_point), accept=(0, 1)).stdout.strip():
        return False
    root.run(("mkdir", "-p", "-m", "755", CREDENTIALS.rpartition("/")[0]))
    root.run(("mkdir", "-p", mount.mount_point))
    if _kernel_has_cifs(root):
        _by_kernel(root, mount, password)
    else:
        note(f"{root.facts.name}: rclone mounts the drive, since this kernel has no CIFS")
        _by_rclone(root, mount, password)
    return True


def prove_same(hosts: Sequence[Host], mount_point: str, mark: str) -> None:
    """Write a word on the first host, and return once every other one reads it."""
    path, word = f"{mount_point}/microcluster/{mark}/.same-drive", secrets.token_hex(16)
    hosts[0].run(("sh", "-c", WRITE, "write", path), stdin=word)
    for host in hosts[1:]:
        try:
            wait_until(
                f"{host} to see what {hosts[0].facts.name} wrote on the drive",
                lambda host=host: host.run(("cat", path), accept=(0, 1)).stdout == word,
                timeout_s=SEEN_TIMEOUT_S,
                usual_s=2,
            )
        except NotReadyError as late:
            raise RemoteError(
                f"comparing the drive at {mount_point}: {host} does not read there what {hosts[0]} wrote, so it mounts another one, "
                f"or none. Check it: fab ssh {host.facts.name} -- findmnt {mount_point}, then run the same command again."
            ) from late
    hosts[0].run(("rm", "-f", path))


def _kernel_has_cifs(root: Host) -> bool:
    root.run(("modprobe", "cifs"), accept=range(256))
    return root.run(("grep", "-qw", "cifs", "/proc/filesystems"), accept=(0, 1)).exit_code == 0


def _by_kernel(root: Host, mount: Mount, password: str) -> None:
    ensure_commands(root, {"mount.cifs": "cifs-utils"})
    root.put(CREDENTIALS, f"username={mount.drive.username}\npassword={password}\n", "0600")
    uid, gid = _ids(root, mount.user)
    options = f"credentials={CREDENTIALS},uid={uid},gid={gid},rw,nofail,_netdev"
    _ensure_fstab(root, mount.mount_point, f"{mount.source} {mount.mount_point} cifs {options} 0 0")
    _until_it_answers(root, mount, ("mount", mount.mount_point))


def _by_rclone(root: Host, mount: Mount, password: str) -> None:
    ensure_commands(root, {"rclone": "rclone", "fusermount3": "fuse3"})
    hidden = root.run(("rclone", "obscure", "-"), stdin=password).stdout.strip()
    text = f"[drive]\ntype = smb\nhost = {mount.drive.address}\nuser = {mount.drive.username}\npass = {hidden}\n"
    root.put(RCLONE, text, "0600")
    uid, gid = _ids(root, mount.user)
    share = ("--config", RCLONE, f"drive:{mount.drive.share}")
    # The mount itself succeeds with a wrong password and fails at the first file.
    _until_it_answers(root, mount, ("rclone", "lsd", "--retries", "1", *share))
    root.run(("rclone", "mount", *share, mount.mount_point, "--uid", uid, "--gid", gid, *RCLONE_OPTIONS))


def _until_it_answers(root: Host, mount: Mount, argv: Sequence[str]) -> None:
    """Repeat a command until the drive answers; a refused password ends it at once."""
    doing, last = f"mounting drive {mount.drive.id} ({mount.source}) on {root}", ""

    def done() -> bool:
        nonlocal last
        completed = root.run(argv, timeout_s=MOUNT_TIMEOUT_S, accept=range(256))
        last = (completed.stdout + completed.stderr).strip()
        if any(sign in last for sign in REFUSED):
            raise RemoteError(
                f"{doing}: it refuses the password of user {mount.drive.username}. Run the same command again, which reads the "
                "password from the account once more."
            )
        return completed.exit_code == 0

    try:
        wait_until(f"drive {mount.drive.id} on {root}", done, timeout_s=READY_TIMEOUT_S, usual_s=10, every_s=5)
    except NotReadyError as late:
        raise RemoteError(
            f"{doing}: {last or 'no answer'}. See that it exists, then run the same command again."
        ) from late


def _ids(root: Host, user: str) -> tuple[str, str]:
    return root.run(("id", "-u", user)).stdout.strip(), root.run(("id", "-g", user)).stdout.strip()
