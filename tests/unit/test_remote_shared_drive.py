"""The shared drive: how it is mounted, what of its password is seen, and how it is proved to be one drive."""

import dataclasses

import pytest
from fake_machine import FakeMachine

from microcluster.jobs.cluster_facts import Drive
from microcluster.remote import storage
from microcluster.remote.errors import RemoteError
from microcluster.remote.storage import CREDENTIALS, FSTAB, RCLONE, Mount, ensure_mounted, prove_same

pytestmark = pytest.mark.usefixtures("no_pauses")
PASSWORD = "s3cret, of the drive"
POINT = "/mnt/training-data"
MOUNT = Mount(Drive("sd1", "10.64.21.9", "sdshare", "u1"), POINT, "paperspace")


@dataclasses.dataclass
class Box(FakeMachine):
    """A machine to root; ``kernel`` says whether its kernel has CIFS."""

    kernel: bool = True
    refusals: int = 0
    says: str = "mount error(113): could not connect"
    argv: list[tuple[str, ...]] = dataclasses.field(default_factory=list)

    def run(self, argv, **options):
        self.argv.append(tuple(argv))
        return super().run(argv, **options)

    def _findmnt(self, words, stdin):
        return (0, "cifs") if POINT in self.mounts else (1, "")

    def _modprobe(self, words, stdin):
        return (0, "") if self.kernel else (1, "", "Module cifs not found")

    def _grep(self, words, stdin):
        return (0, "") if self.kernel else (1, "")

    def _id(self, words, stdin):
        return "1000\n"

    def _answers(self):
        self.refusals -= 1
        return (32, "", self.says) if self.refusals >= 0 else (0, "")

    def _mount(self, words, stdin):
        code, *said = self._answers()
        self.mounts |= {} if code else {POINT: "cifs"}
        return (code, *said)

    def _rclone(self, words, stdin):
        if words[1] == "obscure":
            return f"hidden {len(stdin)}"
        if words[1] == "mount":
            self.mounts[POINT] = "fuse.rclone"
        return self._answers() if words[1] == "lsd" else ""


def test_the_kernel_mounts_by_its_table_where_it_can_and_rclone_elsewhere(capsys):
    box = Box()
    assert ensure_mounted(box, MOUNT, PASSWORD)
    assert "//10.64.21.9/sdshare /mnt/training-data cifs credentials=" in box.files[FSTAB]
    assert "uid=1000,gid=1000" in box.files[FSTAB]
    assert not ensure_mounted(box, MOUNT, PASSWORD)
    box = Box(kernel=False)
    assert ensure_mounted(box, MOUNT, PASSWORD)
    assert "rclone mounts the drive" in capsys.readouterr().err
    assert "host = 10.64.21.9" in box.files[RCLONE] and box.modes[RCLONE] == 0o600


@pytest.mark.parametrize("kernel", [True, False])
def test_the_password_is_in_no_argument_and_no_readable_file(kernel):
    box = Box(kernel=kernel)
    ensure_mounted(box, MOUNT, PASSWORD)
    assert not [words for words in box.argv if any(PASSWORD in word for word in words)]
    holding = {path for path, text in box.files.items() if PASSWORD in text}
    assert holding == ({CREDENTIALS} if kernel else set())
    assert all(box.modes[path] == 0o600 for path in holding)


def test_a_new_drive_that_does_not_answer_yet_is_asked_again():
    box = Box(refusals=2)
    assert ensure_mounted(box, MOUNT, PASSWORD)


@pytest.mark.parametrize(
    ("kernel", "says"),
    [(True, "mount error(13): Permission denied"), (False, "couldn't connect SMB: NT_STATUS_LOGON_FAILURE")],
)
def test_a_wrong_password_ends_the_mount_at_once_with_its_cause(kernel, says):
    box = Box(kernel=kernel, refusals=100, says=says)
    with pytest.raises(RemoteError, match="mounting drive sd1 .*refuses the password of user u1"):
        ensure_mounted(box, MOUNT, PASSWORD)
    assert box.refusals == 99


@dataclasses.dataclass
class OnDrive(FakeMachine):
    """A machine whose files lie on a drive."""

    def _sh(self, words, stdin):
        self.files[words[4]] = stdin

    def _cat(self, words, stdin):
        return (0, self.files[words[1]]) if words[1] in self.files else (1, "")


def test_two_machines_on_one_drive_read_the_same_probe_and_leave_nothing():
    files: dict[str, str] = {}
    prove_same([OnDrive(files=files), OnDrive(files=files)], POINT, "1f3a9c42")
    assert files == {}


@pytest.mark.parametrize("there", [{}, {f"{POINT}/microcluster/1f3a9c42/.same-drive": "a word of another time"}])
def test_a_machine_on_another_drive_is_named(there, monkeypatch):
    monkeypatch.setattr(storage, "SEEN_TIMEOUT_S", 0.0)
    with pytest.raises(RemoteError, match="comparing the drive at /mnt/training-data: gpu-0 .*mounts another one"):
        prove_same([OnDrive(files={}), OnDrive(files=there)], POINT, "1f3a9c42")
