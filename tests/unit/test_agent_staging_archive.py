"""Taking files out of tars that were made to do harm."""

import io
import tarfile

import pytest

from agent.data.archives import take, take_flat
from agent.data.stages import Refused


def tar_of(path, *members, mode="w"):
    """Write a tar of (name, content or TarInfo's changes)."""
    with tarfile.open(path, mode) as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
            else:
                for key, value in content.items():
                    setattr(member, key, value)
                archive.addfile(member)
    return str(path)


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
@pytest.mark.parametrize("folder", ["", "./", "wmt16_de_en/"])
def test_finished_files_are_taken_from_whatever_folder_and_packing_and_nothing_else_is(tmp_path, mode, folder):
    tar = tar_of(tmp_path / "t", (f"{folder}a", b"1"), (f"{folder}b", b"2"), (f"{folder}junk", b"3"), mode=mode)
    assert take_flat(tar, ["a"], ["b", "c"], str(tmp_path / "out")) == ["a", "b"]
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == {"a": b"1", "b": b"2"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("../a", b"x"),
        ("x/../../a", b"x"),
        ("/a", b"x"),
        ("a", {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}),
        ("a", {"type": tarfile.LNKTYPE, "linkname": "b"}),
        ("junk", {"type": tarfile.SYMTYPE, "linkname": ".."}),
        ("a", {"type": tarfile.CHRTYPE}),
        ("a", {"type": tarfile.FIFOTYPE}),
    ],
    ids=["up", "up and down", "absolute", "symbolic link", "hard link", "a link that nobody wants", "device", "fifo"],
)
def test_one_bad_member_and_nothing_of_the_tar_is_used(tmp_path, name, content):
    outside = tmp_path / "a"
    tar = tar_of(tmp_path / "t", ("b", b"fine"), (name, content))
    with pytest.raises(Refused, match="is refused, for .*Nothing of it is used"):
        take_flat(tar, ["a", "b"], [], str(tmp_path / "out"))
    assert not outside.exists()
    assert not (tmp_path / "out" / "a").exists()


def test_a_link_that_lies_where_a_file_belongs_is_not_written_through(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "out" / "a").symlink_to(tmp_path / "precious")
    take_flat(tar_of(tmp_path / "t", ("a", b"new")), ["a"], [], str(tmp_path / "out"))
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_tar_that_lacks_a_file_or_holds_it_twice_is_refused(tmp_path):
    with pytest.raises(Refused, match="it does not hold b"):
        take_flat(tar_of(tmp_path / "t", ("a", b"1")), ["a", "b"], [], str(tmp_path / "out"))
    with pytest.raises(Refused, match="it holds a twice"):
        take_flat(tar_of(tmp_path / "t", ("a", b"1"), ("x/a", b"2")), ["a"], [], str(tmp_path / "out"))


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_what_is_cut_short_or_no_tar_at_all_is_refused(tmp_path, mode):
    whole = tmp_path / "t"
    tar_of(whole, ("a", bytes(range(256)) * 1000), mode=mode)
    for content in (whole.read_bytes()[: whole.stat().st_size // 2], b"<html>moved</html>" * 100, b""):
        whole.write_bytes(content)
        with pytest.raises(Refused, match="no whole tar|does not hold"):
            take_flat(str(whole), ["a"], [], str(tmp_path / "out"))


def test_only_what_was_asked_for_is_written_and_it_has_to_be_a_plain_file(tmp_path):
    tar = tar_of(tmp_path / "t", ("x/a", b"1"), ("b", b"2"), ("c", {"type": tarfile.SYMTYPE, "linkname": "b"}))
    take(tar, {"x/a": str(tmp_path / "out" / "here")})
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["here"]
    for name, problem in (("c", "no plain file"), ("d", "does not hold d")):
        with pytest.raises(Refused, match=problem):
            take(tar, {name: str(tmp_path / "out" / name)})
