"""Dependencies of an image's hash and build context."""

import io
import tarfile

import pytest

from microcluster.core.home import Home
from microcluster.setup import image_build
from microcluster.setup.errors import UserMistake
from microcluster.setup.image_build import Image, input_hash, mmdebstrap_command, write_context
from microcluster.setup.images import PARENTS, ancestry, ensure


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "Dockerfile").write_text("ARG BASE\nFROM $BASE\n")
    (tmp_path / "opt").mkdir()
    (tmp_path / "opt" / "run.py").write_text("print(1)\n")
    return tmp_path


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "opt" / "run.py").write_text("print(2)\n"),
        lambda folder: (folder / "opt" / "run.py").rename(folder / "opt" / "go.py"),
        lambda folder: (folder / "opt" / "run.py").chmod(0o755),
        lambda folder: (folder / "new").write_text(""),
    ],
    ids=["content", "name", "mode", "new file"],
)
def test_the_hash_changes_with_any_input(folder, change):
    before = input_hash(folder, "parent", {})
    (folder / "opt" / "__pycache__").mkdir()
    (folder / "opt" / "__pycache__" / "run.cpython-311.pyc").write_bytes(b"x")
    assert input_hash(folder, "parent", {}) == before, "compiled Python is no input"
    change(folder)
    assert input_hash(folder, "parent", {}) != before


def test_the_hash_changes_with_the_parent_image_and_with_added_files(folder):
    added = {".source/TRAINER": b"none\n"}
    others = (("parent", {}), ("another", {}), ("parent", added), ("parent", {".source/TRAINER": b"OpenSeq2Seq\n"}))
    assert len({input_hash(folder, *each) for each in others}) == 4


def test_the_context_holds_the_files_and_the_hosts_settings_apart(folder):
    context = io.BytesIO()
    write_context(folder, {".host/pip.conf": b"[global]\n"}, context)
    context.seek(0)
    with tarfile.open(fileobj=context) as archive:
        assert archive.getnames() == ["Dockerfile", "opt/run.py", ".host/pip.conf"]


def test_an_image_is_built_after_everything_that_it_takes_from():
    order = list(ancestry(tuple(PARENTS)))
    for name, parents in ancestry(tuple(PARENTS)).items():
        assert all(order.index(parent) < order.index(name) for parent in parents)
    assert set(ancestry(("torch",))) == {"base", "training", "torch-base", "torch"}


def test_another_release_of_debian_comes_from_the_hosts_own_mirrors(tmp_path, monkeypatch):
    def lines(suite: str) -> tuple[str, ...]:
        return tuple(f"deb http://mirror.test/debian {part} main" for part in (suite, f"{suite}-updates"))

    monkeypatch.setattr(image_build, "apt_sources", lambda suite: lines(suite) if suite == "bookworm" else ())
    mmdebstrap_command(Image("torch-base").folder, tmp_path / "base.tar", tmp_path / "sources")
    assert (tmp_path / "sources").read_text().split("\n")[:2] == [*lines("trixie")]


def test_an_image_that_does_not_exist_is_the_users_mistake(tmp_path):
    with pytest.raises(UserMistake, match="No such image: jetson; there are machine, training"):
        ensure(("jetson",), Home(tmp_path, tmp_path))
