"""Finished data of this computer on their way to the launcher, which is a folder here."""

import hashlib
import subprocess
from dataclasses import replace

import pytest
from fake_machine import FACTS, FakeMachine
from launching import transformer

from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.finished_data import Data, SentFile
from microcluster.remote.errors import Completed, RemoteError, UnreachableError
from microcluster.remote.file_transfer import send_data

CONTENT = bytes(range(256)) * 4000


class Launcher(FakeMachine):
    """Runs words on this computer; the connection may be lost after so many bytes, and bytes may change on their way."""

    def __init__(self, lost_at=None, garbled=0):
        super().__init__()
        self.lost_at, self.garbled, self.sent = lost_at, garbled, 0

    def run(self, argv, *, stdin="", timeout_s=None, accept=(0,)):
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode in accept, done.stderr
        return Completed(done.returncode, done.stdout, done.stderr)

    def extend(self, local, path):
        self.run(("mkdir", "-p", path.rpartition("/")[0]))
        with local.open("rb") as content, open(path, "ab") as target:
            content.seek(target.tell())
            while piece := content.read(100_000):
                if self.lost_at is not None and target.tell() >= self.lost_at:
                    self.lost_at = None
                    raise UnreachableError("lost")
                if self.garbled:
                    self.garbled, piece = self.garbled - 1, b"X" + piece[1:]
                target.write(piece)
                self.sent += len(piece)
                yield target.tell()


@pytest.fixture
def local(tmp_path):
    folder = tmp_path / "operator"
    folder.mkdir()
    for name in ("train.en.tok", "train.de.tok"):
        (folder / name).write_bytes(CONTENT)
    return folder


def cluster(tmp_path, local, is_tar=False):
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    names = ("train.en.tok",) if is_tar else ("train.de.tok", "train.en.tok")
    files = tuple(SentFile(name, len(CONTENT), sha256) for name in names)
    data = Data(path=str(local / names[0] if is_tar else local), is_tar=is_tar, files=files)
    job = transformer()
    return ClusterFacts("dev", "1f3a9c42", (FACTS,), mount_point=str(tmp_path / "data"), job=job, data=data)


def arrived(tmp_path):
    return {path.name: path.read_bytes() for path in (tmp_path / "data" / "sent").glob("*/*")}


@pytest.mark.parametrize("is_tar", [True, False])
def test_what_was_named_lies_on_the_launcher_and_is_not_sent_again(tmp_path, local, is_tar):
    launcher, wanted = Launcher(), cluster(tmp_path, local, is_tar)
    assert send_data([launcher], wanted) is True
    assert arrived(tmp_path) == {file.name: CONTENT for file in wanted.data.files}
    before = launcher.sent
    assert send_data([launcher], wanted) is True
    assert launcher.sent == before


def test_an_upload_resumes_at_the_byte_where_the_connection_was_lost(tmp_path, local):
    launcher, wanted = Launcher(lost_at=500_000), cluster(tmp_path, local)
    with pytest.raises(UnreachableError):
        send_data([launcher], wanted)
    send_data([launcher], wanted)
    assert launcher.sent == 2 * len(CONTENT)
    assert set(arrived(tmp_path).values()) == {CONTENT}


def test_bytes_changed_on_their_way_are_sent_again_once_and_then_refused(tmp_path, local):
    send_data([Launcher(garbled=1)], cluster(tmp_path, local))
    assert set(arrived(tmp_path).values()) == {CONTENT}
    other = tmp_path / "other"
    with pytest.raises(RemoteError, match="arrived 3 times with a wrong hash"):
        send_data([Launcher(garbled=99)], cluster(other, local))
    assert not list((other / "data" / "sent").glob("*/*"))


def test_a_host_with_the_whole_data_makes_sending_needless(tmp_path, local):
    wanted = cluster(tmp_path, local)
    folder = tmp_path / "data" / f"debian_en_de-{wanted.data.id}"
    folder.mkdir(parents=True)
    (folder / "ID").write_text(f"{wanted.data.id}\n")
    subprocess.run(["sh", "-c", "sha256sum ID > SHA256SUMS"], cwd=folder, check=True)
    for path in local.iterdir():
        path.unlink()
    assert send_data([Launcher()], wanted) is False
    (folder / "ID").write_text("d2\n")
    with pytest.raises(RemoteError, match="no machine has the data"):
        send_data([Launcher()], wanted)


def test_a_recipe_and_an_address_need_nothing_from_this_computer(tmp_path, local):
    wanted = cluster(tmp_path, local)
    for data in (None, Data("https://example.com/t.tar")):
        assert send_data([Launcher()], replace(wanted, data=data)) is False
