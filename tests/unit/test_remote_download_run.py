"""Download of a run: each file comes whole or not at all."""

import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote_to_bytes

import pytest
from fake_machine import FakeMachine
from hypothesis import given
from hypothesis import strategies as st
from test_remote_inventory import write
from test_remote_job import Losing

from microcluster.core.local_name import local_name
from microcluster.core.polling import wait_until
from microcluster.remote import file_transfer
from microcluster.remote.errors import RemoteError, TooSlowError, UnreachableError
from microcluster.remote.file_transfer import download, fetch_files
from microcluster.remote.inventory import RemoteFile

CONTENT = b"0123456789" * 100
FILE = RemoteFile("/data/runs/x/model", "logdir/model", len(CONTENT), hashlib.sha256(CONTENT).hexdigest(), "best model")


class Source(FakeMachine):
    """A machine whose one file may be garbled on the way or rewritten, or whose connection may be lost in the middle."""

    def __init__(self, *ways: bytes, lost_at: int | None = None) -> None:
        super().__init__()
        self.ways, self.lost_at, self.starts, self.there = list(ways), lost_at, [], CONTENT

    def pieces(self, path: str, start: int, end: int) -> Iterator[bytes]:
        self.starts.append(start)
        content = self.ways.pop(0)
        if self.lost_at is not None:
            lost, self.lost_at = self.lost_at, None
            yield content[start:lost]
            raise UnreachableError("lost")
        yield content[start:end]

    def output(self, argv, doing, silent_s=None, stdin=b""):
        raise RemoteError(f"{doing}: there is no Python.")

    def _sh(self, words, stdin):
        assert words[3] == "describe"
        return json.dumps([len(self.there), hashlib.sha256(self.there).hexdigest()])


class Dripping(Source):
    """A machine that brings small files too slowly."""

    def output(self, argv, doing, silent_s=None, stdin=b""):
        raise TooSlowError("slow")


def fetched(source: Source, folder: Path, report: Callable[[int], None] = lambda count: None) -> bool:
    return download(source, FILE, folder, report)[1]


def test_a_growing_log_is_fetched_at_its_present_length_and_only_once(tmp_path: Path) -> None:
    growing = CONTENT + b" and more since"
    assert fetched(Source(growing), tmp_path)
    assert (tmp_path / FILE.path).read_bytes() == CONTENT
    assert fetched(Source(), tmp_path) is False


def test_a_lost_connection_is_taken_up_where_it_broke(tmp_path: Path) -> None:
    source = Source(CONTENT, CONTENT, lost_at=300)
    with pytest.raises(UnreachableError):
        fetched(source, tmp_path / "run")
    assert not (tmp_path / "run" / FILE.path).exists()
    assert fetched(source, tmp_path / "run")
    assert source.starts == [0, 300]


def test_a_file_garbled_on_the_way_is_fetched_again_and_never_kept(tmp_path):
    there, garbled = [], CONTENT[:-1] + b"X"
    with pytest.raises(RemoteError, match="3 times with a wrong hash"):
        fetched(Source(garbled, garbled, garbled), tmp_path)
    assert list((tmp_path / "logdir").iterdir()) == []
    assert fetched(Source(garbled, CONTENT), tmp_path, there.append)
    assert (tmp_path / FILE.path).read_bytes() == CONTENT
    assert sum(there) == FILE.size


def test_a_file_that_is_rewritten_meanwhile_comes_as_it_is_now(tmp_path: Path) -> None:
    source = Source(b"another" * 50, b"another" * 50)
    source.there = b"another" * 50
    arrived, is_new = download(source, FILE, tmp_path, lambda count: None)
    assert is_new and (arrived.size, (tmp_path / FILE.path).read_bytes()) == (350, source.there)


def test_small_files_that_come_too_slowly_hold_no_large_one_back(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(file_transfer, "ONE_BY_ONE_S", 0)
    monkeypatch.setattr(file_transfer, "TOGETHER_BYTES", len(CONTENT))
    more = CONTENT + b"1"
    large = replace(
        FILE, path="logdir/large", size=len(more), sha256=hashlib.sha256(more).hexdigest(), there={"gpu-0": 1}
    )
    small = [replace(FILE, path=f"logdir/{n}", there={"gpu-0": 1}, what="best model") for n in range(9)]
    done = fetch_files(
        {"gpu-0": Source(CONTENT, more)}, [*small, replace(large, what="record")], tmp_path / "here", lambda _: None
    )
    assert done.new == ["logdir/0", "logdir/large"] and len(done.failed) == 8
    assert "one by one" in done.failed["logdir/8"]


def test_a_file_that_fails_is_named_and_the_others_come(tmp_path: Path) -> None:
    other = replace(FILE, path="logdir/other", here="", there={"gpu-0": 1})
    bad = replace(FILE, path="logdir/bad", there={"gpu-0": 1}, what="newest checkpoint")
    source = Source(*[CONTENT[1:]] * 3, CONTENT)
    done = fetch_files({"gpu-0": source}, [bad, replace(other, what="kept")], tmp_path / "run", lambda count: None)
    assert (done.new, list(done.failed)) == (["logdir/other"], ["logdir/bad"])
    assert (tmp_path / "run" / "logdir" / "other").read_bytes() == CONTENT


def test_small_files_come_by_one_command_and_a_changed_one_alone(tmp_path: Path) -> None:
    class Counting(Losing):
        asked: list[str] = []

        def run(self, argv, **options):
            self.asked.append(argv[0])
            return super().run(argv, **options)

        def pieces(self, path, start, end):
            self.asked.append(path)
            yield Path(path).read_bytes()[start:end]

    write(tmp_path, *(f"there/{number}" for number in range(150)))
    wanted = []
    for path in sorted((tmp_path / "there").iterdir()):
        content = path.read_bytes()
        facts = (len(content), hashlib.sha256(content).hexdigest(), "small file", {"gpu-0": 1})
        wanted.append(RemoteFile(str(path), f"logdir/{path.name}", *facts))
    (tmp_path / "there" / "7").write_text("rewritten meanwhile")
    done = fetch_files({"gpu-0": Counting(0)}, wanted, tmp_path / "run", lambda count: None)
    assert (len(done.new), done.failed) == (150, {})
    assert (tmp_path / "run" / "logdir" / "7").read_text() == "rewritten meanwhile"
    assert Counting.asked == ["python3", "sh", str(tmp_path / "there" / "7")]


def test_empty_files_end_no_fetch_of_many_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_transfer, "TOGETHER", 2)
    write(tmp_path, "there/z")
    (tmp_path / "there" / "z").write_bytes(CONTENT)
    small = replace(FILE, source=str(tmp_path / "there" / "z"), path="logdir/z", there={"gpu-0": 1})
    empty = replace(small, size=0, sha256=hashlib.sha256().hexdigest())
    wanted = [small, *(replace(empty, path=f"logdir/{number}") for number in range(4))]
    monkeypatch.setattr(Losing, "pieces", None)
    done = fetch_files({"gpu-0": Losing(0)}, wanted, tmp_path / "run", lambda count: None)
    assert (len(done.new), done.failed) == (5, {})
    assert (tmp_path / "run" / "logdir" / "0").read_bytes() == b""
    assert (tmp_path / "run" / "logdir" / "z").read_bytes() == CONTENT


def test_what_has_no_room_is_named_and_leaves_the_disk_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("microcluster.remote.file_transfer.SPARE_BYTES", 1 << 60)
    file = replace(FILE, there={"gpu-0": 1})
    done = fetch_files({"gpu-0": Source(CONTENT)}, [file], tmp_path / "run", lambda count: None)
    assert "Make room there, then fetch again" in done.failed[FILE.path]


def test_a_link_on_this_computer_is_not_followed_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run" / "logdir").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RemoteError, match="a link leads out of the folder"):
        fetched(Source(CONTENT), tmp_path / "run")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_second_fetch_waits_for_the_first_and_says_for_whom(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    began, go_on = threading.Event(), threading.Event()

    class Slow(Source):
        def pieces(self, path, start, end):
            began.set()
            go_on.wait(20)
            return super().pieces(path, start, end)

    file, ends = replace(FILE, there={"gpu-0": 1}), []

    def fetch(source: Source) -> None:
        ends.append(fetch_files({"gpu-0": source}, [file], tmp_path / "run", lambda count: None).failed)

    first = threading.Thread(target=fetch, args=(Slow(CONTENT),))
    second = threading.Thread(target=fetch, args=(Source(),))
    first.start()
    began.wait(20)
    second.start()
    whom = f"waiting for the fetch of process {os.getpid()} since "
    wait_until("the second fetch to say for whom it waits", lambda: whom in capfd.readouterr().err, timeout_s=20)
    go_on.set()
    first.join(20)
    second.join(20)
    assert ends == [{}, {}], "the second finds the file whole and reads nothing"


NAMES = st.lists(
    st.text(st.characters(blacklist_characters="/\0", blacklist_categories=["Cs"]), min_size=1), min_size=1
)


@given(NAMES.map("/".join), st.binary(max_size=300))
def test_every_name_stays_below_its_folder_and_can_be_read_back(path: str, raw: bytes) -> None:
    for name in (path, os.fsdecode(raw.replace(b"\0", b"").replace(b"/", b"_")), f"{path}%41", path + "x" * 300):
        try:
            local = local_name(name)
        except ValueError:
            assert set(name.split("/")) & {"", ".", ".."}
            continue
        assert Path("/run", local).resolve().is_relative_to("/run") and local.isprintable()
        assert all(len(part.encode()) <= 255 for part in local.split("/"))
        assert "%~" in local or unquote_to_bytes(local) == os.fsencode(name)


@pytest.mark.parametrize(
    "name", ["manifest.json", "Report.html", ".git/hooks/x", "a/.GIT/config", "tab\there", "a\u202eb"]
)
def test_names_that_mean_something_here_are_escaped(name: str) -> None:
    assert local_name(name) != name
    assert unquote_to_bytes(local_name(name)).decode() == name


@pytest.mark.parametrize("name", ["logdir/model.ckpt-9.index", "a/report.html", "50%_done", "é/模型.pt", "a b", "..."])
def test_usual_names_stay_as_they_are(name: str) -> None:
    assert local_name(name) == name


def test_a_machine_that_is_too_slow_is_asked_once(tmp_path):
    machine = Dripping(CONTENT)
    file = replace(FILE, there={"gpu-0": 1})
    assert fetch_files({"gpu-0": machine}, [file], tmp_path / "run", lambda _: None).failed == {file.path: "slow"}
    assert machine.starts == []


def test_many_files_that_cannot_be_had_keep_no_other_from_being_tried(tmp_path):
    class Gone(Dripping):
        batches = 0

        def output(self, argv, doing, *more, **options):
            self.batches += 1
            yield bytes(FILE.size * 64)

        def pieces(self, path, start, end):
            self.starts.append(path)
            raise RemoteError(f"{path} is gone.")

    machine = Gone()
    files = [replace(FILE, path=f"logdir/{n}", source=f"/{n}", there={"gpu-0": 1}) for n in range(500)]
    fetched = fetch_files({"gpu-0": machine}, files, tmp_path / "run", lambda _: None)
    assert len(fetched.failed) == 500, "each is named"
    assert (machine.batches, len(machine.starts)) == (1, 500)
