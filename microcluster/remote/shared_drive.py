"""The network drive of a cluster: mounted on every host over SMB, and proved to be the same one."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from core.waiting import NotReadyError, wait_until
from microcluster.jobs.cluster_facts import Drive
from microcluster.remote.errors import Completed, RemoteError
from microcluster.remote.host import Host
from microcluster.remote.system import apt_get, has_command

CREDENTIALS = "/etc/microcluster/drive.credentials"
RCLONE = "/etc/microcluster/rclone.conf"
FSTAB = "/etc/fstab"
READY_TIMEOUT_S = 180.0
"""The vendor says nothing of how soon a new drive can be mounted."""
SEEN_TIMEOUT_S = 30.0
MOUNT_TIMEOUT_S = 60.0
REFUSED = ("error(13)", "LOGON_FAILURE", "logon is invalid", "ACCESS_DENIED", "unknown user name or bad password")
"""In what mount.cifs and rclone print when the drive refuses the password."""
# A directory cache of one second: with the default of five minutes a node resumes from what it saw before.
# The delay of five seconds before a closed file is written stays: without it a rename meets its own upload.
RCLONE_OPTIONS = ("--vfs-cache-mode", "writes", "--dir-cache-time", "1s", "--allow-other", "--daemon")
KERNEL, USER_SPACE = "the kernel's CIFS", "rclone, since this kernel has no CIFS"
WRITE = 'mkdir -p "${1%/*}" && cat > "$1" && sync "$1"'


@dataclass(frozen=True)
class Mount:
    """Where a drive is mounted, and whose its files are."""

    drive: Drive
    mount_point: str
    user: str

    @property
    def source(self) -> str:
        """The share, as mount.cifs names it."""
        return f"//{self.drive.address}/{self.drive.share}"


def ensure_mounted(root: Host, mount: Mount, password: str) -> tuple[bool, str]:
    """Mount the drive; return whether anything changed, and what mounts it.

    The password is written into files that only root reads, and is never in an argument.
    """
    has_cifs = _kernel_has_cifs(root)
    how = KERNEL if has_cifs else USER_SPACE
    if root.run(("findmnt", "-nro", "FSTYPE", "-M", mount.mount_point), accept=(0, 1)).stdout.strip():
        return False, how
    root.run(("mkdir", "-p", "-m", "755", CREDENTIALS.rpartition("/")[0]))
    root.run(("mkdir", "-p", mount.mount_point))
    if has_cifs:
        _by_kernel(root, mount, password)
    else:
        _by_rclone(root, mount, password)
    return True, how


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
    _ensure_command(root, "mount.cifs", "cifs-utils")
    root.put(CREDENTIALS, f"username={mount.drive.username}\npassword={password}\n", "0600")
    uid, gid = _ids(root, mount.user)
    options = f"credentials={CREDENTIALS},uid={uid},gid={gid},rw,nofail,_netdev"
    lines = (root.read(FSTAB) or "").splitlines()
    others = [line for line in lines if line.startswith("#") or line.split()[1:2] != [mount.mount_point]]
    root.put(FSTAB, "\n".join([*others, f"{mount.source} {mount.mount_point} cifs {options} 0 0"]) + "\n")
    _until_mounted(root, mount, lambda: _run(root, ("mount", mount.mount_point)))


def _by_rclone(root: Host, mount: Mount, password: str) -> None:
    _ensure_command(root, "rclone", "rclone")
    _ensure_command(root, "fusermount3", "fuse3")
    hidden = root.run(("rclone", "obscure", "-"), stdin=password).stdout.strip()
    text = f"[drive]\ntype = smb\nhost = {mount.drive.address}\nuser = {mount.drive.username}\npass = {hidden}\n"
    root.put(RCLONE, text, "0600")
    uid, gid = _ids(root, mount.user)
    share = ("--config", RCLONE, f"drive:{mount.drive.share}")
    # The mount itself succeeds with a wrong password and fails at the first file.
    _until_mounted(root, mount, lambda: _run(root, ("rclone", "lsd", "--retries", "1", *share)))
    root.run(("rclone", "mount", *share, mount.mount_point, "--uid", uid, "--gid", gid, *RCLONE_OPTIONS))


def _until_mounted(root: Host, mount: Mount, attempt: Callable[[], Completed]) -> None:
    """Repeat until the drive answers; a refused password ends it at once."""
    doing, last = f"mounting drive {mount.drive.id} ({mount.source}) on {root}", ""

    def done() -> bool:
        nonlocal last
        ended = attempt()
        last = (ended.stdout + ended.stderr).strip()
        if any(sign in last for sign in REFUSED):
            raise RemoteError(
                f"{doing}: it refuses the password of user {mount.drive.username}. Run the same command again, which reads the "
                "password from the account once more."
            )
        return ended.exit_code == 0

    try:
        wait_until(f"drive {mount.drive.id} on {root}", done, timeout_s=READY_TIMEOUT_S, usual_s=10, every_s=5)
    except NotReadyError as late:
        raise RemoteError(
            f"{doing}: {last or 'no answer'}. See that it exists, then run the same command again."
        ) from late


def _run(root: Host, argv: Sequence[str]) -> Completed:
    return root.run(argv, timeout_s=MOUNT_TIMEOUT_S, accept=range(256))


def _ensure_command(root: Host, command: str, package: str) -> None:
    if not has_command(root, command):
        apt_get(root, "update")
        apt_get(root, "install", "--no-install-recommends", package)


def _ids(root: Host, user: str) -> tuple[str, str]:
    return root.run(("id", "-u", user)).stdout.strip(), root.run(("id", "-g", user)).stdout.strip()
