"""Taking files out of tars that were made to do harm."""

import io
import tarfile

import pytest

from agent.data.archives import take
from agent.data.progress import Refused

LINK = {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}


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


def take_from_any_folder(tar, out, names, needed):
    targets = {name: str(out / name) for name in names}
    take(str(tar), lambda path: targets.get(path.rpartition("/")[2]), [targets[name] for name in needed])


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
@pytest.mark.parametrize("folder", ["", "./", "wmt16_de_en/"])
def test_files_are_taken_from_whatever_folder_and_packing_and_nothing_else_is(tmp_path, mode, folder):
    named = (f"{folder}a/b", {"type": tarfile.DIRTYPE})  # This computer looks at files only, before anything is rented.
    members = (named, (f"{folder}a", b"1"), (f"{folder}b", b"2"), (f"{folder}junk", b"3"), (f"{folder}l", LINK))
    take_from_any_folder(tar_of(tmp_path / "t", *members, mode=mode), tmp_path / "out", "abc", "a")
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == {"a": b"1", "b": b"2"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("../a", b"x"),
        ("x/../../a", b"x"),
        ("/a", b"x"),
        ("../junk", b"x"),
        ("a", LINK),
        ("a", {"type": tarfile.LNKTYPE, "linkname": "b"}),
        ("a", {"type": tarfile.CHRTYPE}),
        ("a", {"type": tarfile.FIFOTYPE}),
    ],
    ids=["up", "up and down", "absolute", "one that nobody wants", "symbolic link", "hard link", "device", "fifo"],
)
def test_one_bad_member_and_nothing_of_the_tar_is_used(tmp_path, name, content):
    outside = tmp_path / "a"
    tar = tar_of(tmp_path / "t", ("b", b"fine"), (name, content))
    with pytest.raises(Refused, match="is refused, for .*Nothing of it is used"):
        take_from_any_folder(tar, tmp_path / "out", "ab", "ab")
    assert not outside.exists()
    assert not (tmp_path / "out" / "a").exists()


def test_a_link_that_lies_where_a_file_belongs_is_not_written_through(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "out" / "a").symlink_to(tmp_path / "precious")
    take_from_any_folder(tar_of(tmp_path / "t", ("a", b"new")), tmp_path / "out", "a", "a")
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_tar_that_lacks_a_file_or_holds_it_twice_is_refused(tmp_path):
    with pytest.raises(Refused, match="it does not hold b"):
        take_from_any_folder(tar_of(tmp_path / "t", ("a", b"1")), tmp_path / "out", "ab", "ab")
    with pytest.raises(Refused, match="it holds a twice"):
        take_from_any_folder(tar_of(tmp_path / "t", ("a", b"1"), ("x/a", b"2")), tmp_path / "out", "a", "a")


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_what_is_cut_short_or_no_tar_at_all_is_refused(tmp_path, mode):
    whole = tmp_path / "t"
    tar_of(whole, ("a", bytes(range(256)) * 1000), mode=mode)
    for content in (whole.read_bytes()[: whole.stat().st_size // 2], b"<html>moved</html>" * 100, b""):
        whole.write_bytes(content)
        with pytest.raises(Refused, match="no whole tar|does not hold"):
            take_from_any_folder(whole, tmp_path / "out", "a", "a")
