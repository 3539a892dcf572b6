"""The ssh keys of a stack."""

import stat
import subprocess
from pathlib import Path

import pytest

from microcluster.core import stack_keys as keys
from microcluster.core.home import KeysError, Owner, mark_of, owner_mark


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """The key folder of a stack whose first key was made by set-up."""
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path))
    keys.ensure(tmp_path / "keys" / "local", "local")
    return tmp_path / "keys" / "local"


def texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_stack_gets_two_pairs_that_only_their_owner_can_read(tmp_path: Path) -> None:
    assert keys.ensure(tmp_path / "local", "local") == ("id_ed25519", "rank_ed25519")
    pairs = {name: 0o600 for name in ("id_ed25519", "rank_ed25519")}
    modes = {path.name: mode(path) for path in (tmp_path / "local").iterdir()}
    assert modes == pairs | {f"{name}.pub": 0o644 for name in pairs} | {"mark": 0o600}
    assert mode(tmp_path / "local") == 0o700


def test_openssh_reads_the_private_key_as_the_owner_of_the_public_one(tmp_path: Path) -> None:
    keys.ensure(tmp_path, "local")
    derived = subprocess.run(
        ["ssh-keygen", "-y", "-f", tmp_path / "id_ed25519"], capture_output=True, text=True, check=True
    )
    public = (tmp_path / "id_ed25519.pub").read_text()
    assert derived.stdout.split()[:2] == public.split()[:2]
    assert public.endswith(" microcluster-local\n")


def test_existing_keys_stay_and_a_lost_public_one_comes_from_the_private(tmp_path):
    keys.ensure(tmp_path, "local")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    (tmp_path / "id_ed25519.pub").unlink()
    assert keys.ensure(tmp_path, "local") == ()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_broken_key_is_named_and_not_replaced(tmp_path: Path) -> None:
    private = tmp_path / "id_ed25519"
    private.write_text("not a key")
    with pytest.raises(KeysError, match=f"Reading the key {private}"):
        keys.ensure(tmp_path, "local")
    assert private.read_text() == "not a key"


def test_the_mark_is_written_from_the_first_public_key(folder):
    assert (folder / "mark").read_text() == owner_mark((folder / "id_ed25519.pub").read_text()) + "\n"


def test_a_folder_without_a_mark_file_has_the_mark_of_its_key(folder):
    (folder / "mark").unlink()
    assert mark_of(folder) == owner_mark((folder / "id_ed25519.pub").read_text())


@pytest.mark.parametrize("content", [b"", b"1f3a9c4", b"1F3A9C42", b"\xff\xfe\x00\x01", b"1f3a9c42 5"])
def test_a_damaged_mark_is_a_sentence_and_never_a_new_mark(folder, content):
    (folder / "mark").write_bytes(content)
    with pytest.raises(KeysError, match=r"Reading the mark of stack local in .*: it is not eight hex digits"):
        keys.ensure(folder, "local")
    assert (folder / "mark").read_bytes() == content


def test_between_two_rentals_every_key_changes_and_the_mark_stays(folder):
    (folder / "mark").unlink()  # As an older version left it.
    before, mark = texts(folder), mark_of(folder)
    keys.prepare(folder, "local")
    assert {name: text for name, text in texts(folder).items() if name in before} == before
    waiting = (folder / keys.WAITING).read_text()
    assert keys.renew(Owner("local", mark))
    after = texts(folder)
    assert (mark_of(folder), after["id_ed25519"]) == (mark, waiting)
    assert sorted(after) == sorted([*before, "mark"])
    assert not set(after.values()) & set(before.values())
    assert {mode(path) for path in folder.iterdir() if path.suffix != ".pub"} == {0o600}


def test_without_a_waiting_key_the_next_rental_renews_only_the_rank_key(folder):
    before = texts(folder)
    assert not keys.renew(Owner("local", mark_of(folder)))
    changed = {name for name, text in texts(folder).items() if text != before[name]}
    assert changed == {"rank_ed25519", "rank_ed25519.pub"}


@pytest.mark.parametrize("owner", [Owner("local", "00000000"), Owner("other", "1f3a9c42")])
def test_keys_of_another_mark_or_on_no_disk_here_stay(folder, owner):
    keys.prepare(folder, "local")
    before = texts(folder)
    assert not keys.renew(owner)
    assert (texts(folder), (folder.parent / "other").exists()) == (before, False)


def test_a_crash_between_a_keys_files_leaves_no_pair_that_mismatches(folder, monkeypatch):
    keys.prepare(folder, "local")
    mark = mark_of(folder)
    monkeypatch.setattr(keys, "_ensure_pair", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        keys.renew(Owner("local", mark))
    monkeypatch.undo()
    monkeypatch.setenv("MICROCLUSTER_HOME", str(folder.parents[1]))
    assert not (folder / "rank_ed25519.pub").exists()
    keys.ensure(folder, "local")
    keys.renew(Owner("local", mark))
    for name in ("id_ed25519", "rank_ed25519"):
        derived = subprocess.run(["ssh-keygen", "-y", "-f", folder / name], capture_output=True, text=True, check=True)
        assert derived.stdout.split()[:2] == (folder / f"{name}.pub").read_text().split()[:2]
