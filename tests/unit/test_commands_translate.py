"""Translating: which model, what goes in, and that as many sentences come out."""

import ast
import os
import re
import subprocess
from pathlib import Path

import pytest
from fake_machine import FakeMachine
from launching import HERE, transformer

from microcluster.commands.command_line import UserMistake
from microcluster.commands.translate import lines_of, model_for
from microcluster.jobs import openseq2seq_translation
from microcluster.remote.errors import RemoteError
from microcluster.remote.inventory import RemoteFile
from microcluster.remote.translation import model_of

ROOT = Path(__file__).parents[2]


def listed(*paths: tuple[str, str]) -> list[RemoteFile]:
    return [RemoteFile(f"/data/runs/x/{path}", path, 1, "00", what) for path, what in paths]


RECORDS = (("config.py", "record"), ("data/m_common.model", "vocabulary"), ("data/m_common.vocab", "vocabulary"))
BEST = ("logdir/best_models/val_loss=1.5900-step-40.index", "best model")
PLAN = transformer().plan(HERE)
NEWEST = ("logdir/model.ckpt-50.index", "newest checkpoint")


def test_the_best_model_translates_and_the_newest_checkpoint_where_there_is_none_better() -> None:
    assert model_of(listed(*RECORDS, NEWEST, BEST), PLAN).checkpoint.endswith("best_models/val_loss=1.5900-step-40")
    assert model_of(listed(*RECORDS, NEWEST), PLAN).checkpoint == "/data/runs/x/logdir/model.ckpt-50"


def test_a_run_without_a_checkpoint_or_a_part_of_it_translates_nothing(tmp_path: Path) -> None:
    with pytest.raises(RemoteError, match="no whole checkpoint yet"):
        model_of(listed(*RECORDS), PLAN)
    with pytest.raises(RemoteError, match="data/m_common.model not found"):
        model_of(listed(RECORDS[0], RECORDS[2], BEST), PLAN)
    with pytest.raises(UserMistake, match="is no fetched run"):
        model_for(FakeMachine(), HERE, str(tmp_path), PLAN)


def test_the_configuration_for_a_translation_is_the_runs_own_with_the_texts_added() -> None:
    job = transformer()
    added = openseq2seq_translation.infer_params("/m/v", "/t/source")
    text = job.configuration("/data/wmt16_en_de", "/x") + added
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
