"""MXNet's checkpoints on a disk: whole ones, torn ones, and those of several workers."""

import struct
from pathlib import Path

import pytest

from agent.formats.checkpoints.mxnet import Format


def arrays(*shapes: tuple[int, ...]) -> bytes:
    """Return a file of float32 arrays as MXNet writes it."""
    text = struct.pack("<QQQ", 0x112, 0, len(shapes))
    for shape in shapes:
        count = 1
        for one in shape:
            count *= one
        text += struct.pack("<Iii", 0xF993FAC9, 0, len(shape)) + struct.pack(f"<{len(shape)}q", *shape)
        text += struct.pack("<iii", 1, 0, 0) + bytes(4 * count)
    names = [f"arg:w{n}".encode() for n in range(len(shapes))]
    return text + struct.pack("<Q", len(names)) + b"".join(struct.pack("<Q", len(name)) + name for name in names)


WHOLE = arrays((3, 4), (4,))


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    for epochs in (1, 2, 3):
        (tmp_path / f"model-{epochs:04}.params").write_bytes(WHOLE)
    (tmp_path / "model-symbol.json").write_text("{}")
    return tmp_path


def checkpoints(logdir: Path) -> Format:
    return Format(str(logdir))


def test_the_newest_epoch_comes_first_and_other_files_are_none(logdir: Path) -> None:
    (logdir / "other-0009.params").write_bytes(WHOLE)
    assert checkpoints(logdir).found()[0] == (3, "model-0003.params")
    assert checkpoints(logdir).newest_whole() == (3, "model-0003.params")


@pytest.mark.parametrize("left", [0, 10, 60, len(WHOLE) - 1])
def test_a_file_that_was_cut_off_is_torn_and_the_one_before_is_taken(logdir: Path, left: int) -> None:
    (logdir / "model-0003.params").write_bytes(WHOLE[:left])
    found = checkpoints(logdir)
    assert found.flaw_of("model-0003.params")
    assert found.newest_whole() == (2, "model-0002.params")


def test_a_checkpoint_without_its_network_cannot_be_used(logdir: Path) -> None:
    (logdir / "model-symbol.json").unlink()
    assert checkpoints(logdir).flaw_of("model-0003.params") == "model-0003.params lacks model-symbol.json"


def test_removing_old_ones_leaves_the_network_and_what_is_suspected(logdir: Path) -> None:
    for epoch in (4, 5):
        (logdir / f"model-000{epoch}.params").write_bytes(WHOLE)
    (logdir / "model-0001.params").write_bytes(b"")
    checkpoints(logdir).prune("model-0005.params")
    left = sorted(file.name for file in logdir.glob("model*"))
    assert left == ["model-0001.params", "model-0004.params", "model-0005.params", "model-symbol.json"]


def test_another_workers_file_is_gone_on_from_under_the_name_that_every_worker_loads(tmp_path: Path) -> None:
    (tmp_path / "model-1-0003.params").write_bytes(WHOLE)
    (tmp_path / "model-1-symbol.json").write_text("network")
    found = checkpoints(tmp_path)
    assert found.newest_whole() == (3, "model-1-0003.params")
    assert found.shared_files("model-1-0003.params") == ["model-1-symbol.json"]
    assert found.prepare("model-1-0003.params") == ["model-0003.params", "model-symbol.json"]
    assert (tmp_path / "model-0003.params").read_bytes() == WHOLE
    assert (tmp_path / "model-symbol.json").read_text() == "network"
    assert not (tmp_path / "model-1-symbol.json").exists(), "a worker of rank 1 would load its own file"
