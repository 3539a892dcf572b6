"""Translating: which model, what goes in, and that as many sentences come out."""

import ast
import os
import re
import subprocess
from pathlib import Path

import pytest
from command_samples import CLUSTER
from fake_machine import FakeMachine
from launching import transformer

from microcluster.commands import translate
from microcluster.commands.translate import checkpoint_at, lines_of, model_for
from microcluster.jobs import openseq2seq_translation
from microcluster.remote import translation
from microcluster.remote.errors import Completed, RemoteError
from microcluster.remote.inventory import Inventory, RemoteFile
from microcluster.remote.translation import Model, model_of
from microcluster.setup.errors import UserMistake
from tests.tiny_checkpoint import DATA, save

ROOT = Path(__file__).parents[2]


def listed(*paths: tuple[str, str]) -> list[RemoteFile]:
    return [RemoteFile(f"/data/runs/x/{path}", path, 1, "00", what) for path, what in paths]


RECORDS = (("config.py", "record"), ("data/m_common.model", "vocabulary"), ("data/m_common.vocab", "vocabulary"))
BEST = ("logdir/best_models/val_loss=1.5900-step-40.index", "best model")
JOB = transformer()
NEWEST = ("logdir/model.ckpt-50.index", "newest checkpoint")


def test_the_best_model_translates_and_the_newest_checkpoint_where_there_is_none_better() -> None:
    assert model_of(listed(*RECORDS, NEWEST, BEST), JOB).checkpoint.endswith("best_models/val_loss=1.5900-step-40")
    assert model_of(listed(*RECORDS, NEWEST), JOB).checkpoint == "/data/runs/x/logdir/model.ckpt-50"


def test_a_run_without_a_checkpoint_or_a_part_of_it_translates_nothing(tmp_path: Path) -> None:
    with pytest.raises(RemoteError, match="no whole checkpoint yet"):
        model_of(listed(*RECORDS), JOB)
    with pytest.raises(RemoteError, match="data/m_common.model not found"):
        model_of(listed(RECORDS[0], RECORDS[2], BEST), JOB)
    with pytest.raises(UserMistake, match="is no fetched run"):
        model_for(FakeMachine(), CLUSTER, str(tmp_path), JOB)


class Receiver(FakeMachine):
    """Takes files, and remembers where each went."""

    def run(self, argv, **more):
        if argv[0] == "sha256sum":
            return Completed(0, f"{self.files.get(argv[1], '')}  x", "")
        return Completed(0, "", "")


@pytest.fixture
def launcher(monkeypatch: pytest.MonkeyPatch) -> Receiver:
    """Return a launcher whose run has its records and a checkpoint of its own."""
    machine = Receiver()
    monkeypatch.setattr(translation, "send", lambda host, local, file, path: host.files.update({path: file.sha256}))
    own = Inventory("x", "", files=tuple(listed(*RECORDS, NEWEST)))
    monkeypatch.setattr(translate, "inventory", lambda hosts, cluster: own)
    return machine


def model_at(launcher: Receiver, path: Path) -> Model:
    return model_for(launcher, CLUSTER, "", JOB, checkpoint_at(path, JOB))


def test_a_published_checkpoint_translates_in_place_of_the_runs_own(tmp_path: Path, launcher: Receiver) -> None:
    save(tmp_path, "val_loss=1.5-step-300000")
    for path in (tmp_path, tmp_path / "val_loss=1.5-step-300000", tmp_path / "val_loss=1.5-step-300000.index"):
        model = model_at(launcher, path)
        assert model.checkpoint.endswith("/val_loss=1.5-step-300000")
        assert model.config == "/data/runs/x/config.py", "the stack's own configuration and vocabulary"
        assert model.vocabulary == "/data/runs/x/data/m_common.vocab"
    assert sorted(Path(path).suffix for path in launcher.files if "models" in path) == [
        ".data-00000-of-00001",
        ".index",
    ]


def test_the_vocabulary_beside_a_checkpoint_is_the_one_it_was_trained_with(tmp_path: Path, launcher: Receiver) -> None:
    save(tmp_path, "model.ckpt-5")
    (tmp_path / "data").mkdir()
    (tmp_path / "data/m_common.model").touch()
    (tmp_path / "data/m_common.vocab").touch()
    model = model_at(launcher, tmp_path)
    folder = model.checkpoint.removesuffix("/model.ckpt-5")
    assert (model.pieces, model.vocabulary) == (f"{folder}/data/m_common.model", f"{folder}/data/m_common.vocab")


def spoil(folder: Path, how: str) -> Path:
    """Leave a checkpoint that must not be sent."""
    save(folder, "model.ckpt-5")
    data = folder / "model.ckpt-5.data-00000-of-00001"
    if how == "two":
        save(folder, "model.ckpt-6")
    elif how == "torn":
        data.write_bytes(DATA[:-1])
    elif how == "no weights":
        data.unlink()
    elif how == "quoted":
        save(folder / "odd", 'model"ckpt-7')
        return folder / "odd"
    elif how == "link":
        (folder.parent / "secret").write_bytes(DATA)
        data.unlink()
        data.symlink_to(folder.parent / "secret")
    return folder / "gone" if how == "missing" else folder


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("two", "it has model.ckpt-5, model.ckpt-6, and one is wanted"),
        ("missing", "it has none"),
        ("torn", "instead of 20 bytes"),
        ("no weights", "is missing instead of"),
        ("quoted", "no framework reads the characters of its name"),
        ("link", "data-00000-of-00001: a link leads out of the folder"),
    ],
)
def test_a_checkpoint_that_is_not_whole_or_not_there_is_refused(tmp_path: Path, how: str, reason: str) -> None:
    (tmp_path / "given").mkdir()
    with pytest.raises(UserMistake, match=re.escape(reason)):
        checkpoint_at(spoil(tmp_path / "given", how), JOB)


def test_two_models_at_once_are_refused(tmp_path: Path, monkeypatch, capsys) -> None:
    (tmp_path / "text").write_text("Open.\n")
    monkeypatch.setattr(translate, "cluster_of", lambda stack: CLUSTER)
    given = {"file": str(tmp_path / "text"), "model": "artifacts/x", "checkpoint": str(tmp_path)}
    assert translate.translate.code(stack="local", **given) == 2
    assert "Give one of them" in capsys.readouterr().err


def test_the_configuration_for_a_translation_is_the_runs_own_with_the_texts_added() -> None:
    job = transformer()
    added = openseq2seq_translation.infer_params("/m/v", "/t/source")
    text = job.configuration("/data/wmt16_en_de", "/x", {}) + added
    tree = ast.parse(text, feature_version=(3, 5))
    assert [node.targets[0].id for node in tree.body if isinstance(node, ast.Assign)][-1] == "infer_params"
    argv = openseq2seq_translation.inference("/t/config.py", "/t/model", "/t/translated")
    assert "--use_horovod=False" in argv and "--mode=infer" in argv


def test_blanks_around_and_inside_a_sentence_are_made_one(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("Open  the file.\r\n Print it.\u2028Now.\n")
    assert lines_of(str(text)) == ["Open the file.", "Print it. Now."]


@pytest.mark.parametrize(
    ("content", "reason"), [(b"", "0 lines"), (b"a\n\nb\n", "line 2 is empty"), (b"\xff", "UTF-8")]
)
def test_a_text_that_cannot_be_translated_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "text").write_bytes(content)
    with pytest.raises(UserMistake, match=reason):
        lines_of(str(tmp_path / "text"))


def jetson(tmp_path: Path, *, model: Path | None) -> subprocess.CompletedProcess[str]:
    """Run the board's command with stand-ins for what the image holds; paths of the container lie below ``tmp_path``."""
    tools = tmp_path / "bin"
    tools.mkdir()
    script = (ROOT / "images/jetson/translate").read_text()
    for place, here in (
        ("/model", model or tmp_path / "nothing"),
        ("/OpenSeq2Seq", tmp_path),
        ("/tmp/source", tmp_path / "source"),
    ):
        script = re.sub(rf"(?<!work){place}", str(here), script)
    stand_ins = {
        "spm_encode": "sed 's/^/_/'",
        "spm_decode": "sed 's/^_//'",
        "python3": f'for word; do case $word in --infer_output_file=*) tr a-z A-Z < {tmp_path}/source > "${{word#*=}}";; esac; done',
    }
    for name, body in stand_ins.items():
        (tools / name).write_text(f"#!/bin/sh\n{body}\n")
        (tools / name).chmod(0o755)
    given = {"input": "open\nclose\n", "env": {"PATH": f"{tools}:{os.environ['PATH']}"}}
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False, **given)


def test_the_board_translates_line_by_line_with_the_best_model(tmp_path: Path) -> None:
    model = tmp_path / "run"
    (model / "logdir/best_models").mkdir(parents=True)
    (model / "logdir/best_models/val_loss=1.5900-step-40.index").touch()
    (model / "translate.py").touch()
    assert jetson(tmp_path, model=model).stdout == "OPEN\nCLOSE\n"


def test_the_board_says_what_to_mount(tmp_path: Path) -> None:
    done = jetson(tmp_path, model=None)
    assert done.returncode == 2
    assert "Mount the folder that 'fab fetch' made" in done.stderr
