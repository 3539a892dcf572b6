"""Folders as their people have them: what of them travels, and what cannot."""

import hashlib
import json
import os
import re
import subprocess

import pytest

from microcluster.config import folder_reader
from microcluster.config.folder_reader import FolderError, read_tree
from microcluster.jobs.folder_tree import LINK, PROGRAM, list_of

IMAGE = bytes(range(256)) * 10


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def folder(tmp_path):
    """A starter program as it is cloned: a picture, ignored data, and a hidden file."""
    return written(tmp_path / "program", {"train.py": "print()\n", "assets/loss.png": IMAGE, ".gitignore": "*.bin\n"})


def written(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def git(folder, *words):
    who = ("-c", "user.name=me", "-c", "user.email=me@site.edu", "-c", "protocol.file.allow=always")
    subprocess.run(("git", *who, *words), cwd=folder, check=True, capture_output=True)


def committed(folder):
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "one")
    return folder


def names(folder, script=None):
    return {entry.name for entry in read_tree(folder, script).entries()}


@pytest.mark.parametrize("is_repository", [True, False])
def test_what_git_would_take_travels(folder, is_repository):
    if is_repository:
        committed(folder)
    written(folder, {"data/train.bin": IMAGE, "new.txt": "not added", "pkg/__pycache__/a.pyc": "compiled"})
    assert names(folder) == {"train.py", "assets/loss.png", ".gitignore", "new.txt"}
    tree = read_tree(folder)
    assert (tree.files, tree.left_files, tree.left_names[0]) == (4, 2, "data/")
    assert tree.left_bytes == len(IMAGE) + len("compiled")


def test_a_file_that_git_has_and_ignores_travels(folder):
    written(folder, {"first.bin": IMAGE})
    git(folder, "init", "-q")
    git(folder, "add", "-f", "first.bin")
    assert "first.bin" in names(folder)


@pytest.mark.parametrize("is_below", [True, False])
def test_its_own_patterns_leave_behind_and_take_back(folder, is_below):
    top = folder.parent if is_below else folder
    written(folder, {"data/a/train.bin": IMAGE, "data/b.bin": IMAGE, "other.bin": IMAGE})
    written(folder, {".microclusterignore": "# ours\n!data/**/*.bin\n/assets/\n"})
    committed(top)
    kept = {"train.py", ".gitignore", ".microclusterignore", "data/a/train.bin", "data/b.bin"}
    assert names(folder) == kept


def test_the_files_of_submodules_are_part_of_it(folder, tmp_path):
    committed(written(tmp_path / "library", {"code.py": "x = 1\n", "deep/picture.png": IMAGE}))
    committed(folder)
    git(folder, "submodule", "add", "-q", str(tmp_path / "library"), "third/library")
    written(folder, {"third/library/made.txt": "here"})
    found = names(folder)
    assert {"third/library/code.py", "third/library/deep/picture.png", "third/library/made.txt"} <= found
    assert not [name for name in found if ".git" in name.split("/")]


def test_the_settings_of_a_folder_start_no_program(folder, tmp_path):
    committed(folder)
    (folder / "watch").write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    (folder / "watch").chmod(0o755)
    for setting in ("core.fsmonitor", "core.sshCommand", "core.pager"):
        git(folder, "config", setting, str(folder / "watch"))
    (tmp_path / "started").unlink(missing_ok=True)
    read_tree(folder)
    assert not (tmp_path / "started").exists()


def test_all_that_keeps_a_folder_back_is_said_at_once(folder, monkeypatch):
    monkeypatch.setattr(folder_reader, "MOST_BYTES", 1000)
    written(folder, {"run.bin": IMAGE})
    (folder / "out").symlink_to("../elsewhere")
    (folder / "whole").symlink_to("/etc/passwd")
    (folder / "odd\nname").write_text("")
    (folder / os.fsdecode(b"latin-\xe4")).write_text("")
    with pytest.raises(FolderError) as refused:
        read_tree(folder, "run.bin")
    told = "\n".join(refused.value.args)
    assert len(refused.value.args) == 4
    for said in ("run.bin of .* stays behind, because git ignores it", "more than 1,000", r"out of it: out, whole;"):
        assert re.search(said, told), told
    assert r"odd\nname" in told and "latin-" in told


@pytest.mark.parametrize(("script", "said"), [("absent.py", "does not hold absent.py"), (None, "there is no folder")])
def test_a_folder_or_script_that_is_missing_is_named(folder, script, said):
    with pytest.raises(FolderError, match=said):
        read_tree(folder if script else folder / "absent", script)


def test_without_git_and_without_its_answer_there_is_a_sentence(folder, monkeypatch):
    monkeypatch.setattr(folder_reader, "GIT_TIMEOUT_S", 0)
    with pytest.raises(FolderError, match="does not list"):
        read_tree(folder)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(FolderError, match="Install git"):
        read_tree(folder)


def test_links_and_modes_are_part_of_the_tree(folder):
    before = read_tree(folder).id
    (folder / "same.py").symlink_to("train.py")
    (folder / "train.py").chmod(0o755)
    kinds = {entry.name: entry.kind for entry in read_tree(folder).entries()}
    assert (kinds["same.py"], kinds["train.py"]) == (LINK, PROGRAM)
    linked = read_tree(folder).id
    (folder / "train.py").chmod(0o644)
    assert len({before, linked, read_tree(folder).id}) == 3


def test_a_file_that_has_not_changed_is_not_read_again(folder):
    before = read_tree(folder)
    kept = list_of(folder, is_data=False)
    digest = hashlib.sha256(IMAGE).hexdigest()
    kept.write_text(kept.read_text().replace(digest, "0" * 64))
    assert read_tree(folder).id != before.id, "the digest is that of the list"
    (folder / "assets/loss.png").write_bytes(IMAGE)
    assert read_tree(folder).id == before.id, "a file that was written is read"


def test_a_folder_that_has_changed_since_is_no_longer_that_tree(folder):
    tree = read_tree(folder)
    (folder / "train.py").write_text("print(2)\n")
    read_tree(folder)
    with pytest.raises(LookupError, match="is not what it was"):
        tree.entries()


def test_only_a_small_folder_of_texts_lists_its_hashes(folder):
    assert not read_tree(folder).hashes, "a picture is no text"
    (folder / "assets/loss.png").write_text("a\r\nb")
    hashes = read_tree(folder).hashes
    assert json.loads(json.dumps(hashes))["assets/loss.png"] == hashlib.sha256(b"a\nb").hexdigest()
    assert ".gitignore" not in hashes
    written(folder, {f"{number}.txt": "" for number in range(199)})
    assert not read_tree(folder).hashes


def test_a_script_is_found_however_its_path_is_written(tmp_path):
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "train.py").write_text("")
    assert read_tree(tmp_path, "tools//./train.py").files == 1
