"""The data disk: only an empty one is formatted, and a second run changes nothing."""

import pytest
from fake_machine import GIB, Disk, FakeMachine

from microcluster.remote.errors import RemoteError
from microcluster.remote.storage import RECORD, DataDisk, ensure_data_disk

WANTED = DataDisk(2000, "/data", "1f3a9c42")


def test_an_empty_disk_is_formatted_labelled_and_mounted_once():
    machine = FakeMachine()
    others = "# head\n/dev/xvda1 / ext4 defaults 0 1\n"
    machine.files["/etc/fstab"] = f"{others}/dev/xvdc /data ext4 defaults,noatime 0 0\n"
    assert ensure_data_disk(machine, WANTED)
    assert machine.disks["/dev/xvdc"].label == "mc-1f3a9c42"
    assert machine.mounts == {"/data": "/dev/xvdc"}
    assert machine.files["/etc/fstab"] == f"{others}UUID=u-1 /data ext4 defaults,noatime,nofail 0 0\n"
    assert RECORD not in machine.files
    machine.changes.clear()
    assert not ensure_data_disk(machine, WANTED)
    machine.mounts.clear()  # As after a reboot.
    assert ensure_data_disk(machine, WANTED)
    assert machine.changes == ["mount /data"]


@pytest.mark.parametrize(
    ("disk", "reason"),
    [
        (Disk(2000 * GIB, kind="ext4", label="somebody"), "holds somebody,ext4"),
        (Disk(2000 * GIB, kind="ext4", label="a,b"), "holds a,b,ext4"),
        (Disk(2000 * GIB, signatures="gpt"), "holds ,gpt"),
        (Disk(2000 * GIB, partitions=1), "partitions"),
        (Disk(2000 * GIB, dirty="first"), "first 64 MiB"),
        (Disk(2000 * GIB, dirty="last"), "last 64 MiB"),
        (Disk(2000 * GIB, kind="ext4", label="mc-00000000"), "holds mc-00000000,ext4"),
    ],
)
def test_a_disk_that_holds_anything_is_refused_and_not_touched(disk, reason):
    machine = FakeMachine(disks={"/dev/xvdc": disk})
    with pytest.raises(RemoteError, match=reason):
        ensure_data_disk(machine, WANTED)
    assert machine.changes == []
    assert not machine.mounts


def test_interrupted_formatting_is_resumed_unless_another_file_system_is_there():
    machine = FakeMachine(disks={"/dev/xvdc": Disk(2000 * GIB, dirty="first")})
    machine.files[RECORD] = record = f"/dev/xvdc {2000 * GIB} mc-1f3a9c42\n"
    assert ensure_data_disk(machine, WANTED)
    assert machine.mounts == {"/data": "/dev/xvdc"}
    machine = FakeMachine(disks={"/dev/xvdc": Disk(2000 * GIB, kind="xfs")}, files=machine.files | {RECORD: record})
    with pytest.raises(RemoteError, match="xfs"):
        ensure_data_disk(machine, WANTED)


def test_a_disk_of_another_size_is_not_taken():
    machine = FakeMachine(disks={"/dev/xvdc": Disk(2000 * GIB - 512), "/dev/xvda": Disk(2000 * GIB)})
    with pytest.raises(RemoteError, match="2000 GB"):
        ensure_data_disk(machine, WANTED)


def test_a_mount_point_that_another_file_system_has_is_left_to_a_person():
    machine = FakeMachine(mounts={"/data": "/dev/xvdd"})
    machine.disks["/dev/xvdd"] = Disk(100 * GIB, kind="ext4", label="another")
    with pytest.raises(RemoteError, match=r"already\..*: fab ssh gpu-0, then umount /data; then run the same command"):
        ensure_data_disk(machine, WANTED)
