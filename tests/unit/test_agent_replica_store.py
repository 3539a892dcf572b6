"""The copy of a run on another machine, with two folders for two machines; ssh is a script that goes to the other folder."""

import os
import shutil
import subprocess
import sys

import pytest
import sample_spec

from agent.formats.checkpoints import replica
from agent.run import event_summary
from microcluster.remote.job import AGENT
from tests.tiny_checkpoint import DATA, save

BEST_POINTER = "logdir/best_models/checkpoint"
CURVES, DATA_PART = "logdir/events.out.tfevents.1560000000.gpu-0", ".data-00000-of-00001"
NEWEST, OLD = "model.ckpt-20", "best_models/val_loss=2.0000-step-11"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Return the run's folder on the launcher, with a checkpoint and a best model; the other machine's is beside it."""
    here, there, tools = tmp_path / "here", tmp_path / "there", tmp_path / "bin"
    for folder in (here, there):
        folder.mkdir()
        shutil.copytree(AGENT, folder / "agent")
    tools.mkdir()
    (tools / "python").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    way(here, "")
    (here / "progress.jsonl").write_text('{"event": "first"}\n')
    save(here / "logdir", NEWEST)
    save(here / "logdir", OLD)
    (here / "samples.jsonl").write_text('{"event": "sample"}\n')
    (here / CURVES).write_bytes(DATA)
    (here / "logdir" / BEST_POINTER.removeprefix("logdir/")).write_text("the framework's list")
    return here


def way(here, *before):
    """Let ssh do something before it goes to the other machine; ``$2`` is what it shall run."""
    there = here.parent / "there"
    line = "; ".join((*filter(None, before), f'eval "$(echo "$2" | sed "s,{here},{there},g")"'))
    sample_spec.write(here, ssh=["sh", "-c", line, "ssh"])


def call(here, verb, *rest, given=""):
    argv = (sys.executable, here / "agent", "checkpoints.replica", here, verb, "node", *rest)
    return subprocess.run(argv, capture_output=True, input=given, text=True, check=False, timeout=60)


def copy(here, step, *names):
    files = [f"logdir/{name}{part}" for name in names for part in (".index", ".meta", ".data-00000-of-00001")]
    if any(name.startswith("best") for name in names):
        files.append(BEST_POINTER)
    return call(here, "copy", str(step), given="\0".join(files))


def sent(done):
    assert done.returncode == 0, done.stdout + done.stderr
    return int(done.stdout.partition(replica.MARK)[2])


def kept(here):
    """Return the names of the checkpoints that the other machine has, in all that lies there."""
    return sorted({path.stem for path in (here.parent / "there").rglob("*.index")})


def lost(here):
    """Let the launcher be a fresh machine, on which the supervisor has begun to tell."""
    shutil.rmtree(here / "logdir")
    (here / "progress.jsonl").write_text('{"event": "later"}\n')
    (here / "samples.jsonl").write_text("")
    event_summary.write(str(here))


def test_a_fresh_launcher_gets_checkpoint_best_model_its_list_and_the_whole_lines_of_the_records_back(here):
    (here / "progress.jsonl").write_text('{"event": "first"}\n{"event": "hal')
    assert sent(copy(here, 20, NEWEST, OLD)) == 10
    lost(here)
    assert replica.MARK + "20" in call(here, "copied").stdout
    assert call(here, "fetch").returncode == 0
    for name in (NEWEST, OLD):
        assert (here / "logdir" / f"{name}.data-00000-of-00001").read_bytes() == DATA
    assert (here / BEST_POINTER).read_text() == "the framework's list"
    assert (here / "progress.jsonl").read_text() == '{"event": "first"}\n{"event": "later"}\n'
    assert [event["event"] for event in event_summary.read(str(here))[1]] == ["first", "later"]
    assert (here / "samples.jsonl").read_text() == '{"event": "sample"}\n'
    assert (here / CURVES).read_bytes() == DATA
    assert not (here / "brought").exists()


def test_of_the_records_only_those_travel_again_that_have_grown(here):
    copy(here, 20, NEWEST, OLD)
    there = here.parent / "there"
    first = os.readlink(there / "copy")
    with (here / "samples.jsonl").open("a") as file:
        file.write('{"event": "sample", "t": 2}\n')
    assert sent(copy(here, 20, NEWEST, OLD)) == 1
    assert os.readlink(there / "copy") != first, "at every moment the name leads to a whole one"
    assert not (there / first).exists()
    (here / f"{CURVES}.later").write_bytes(b"a second attempt")
    assert sent(copy(here, 20, NEWEST, OLD)) == 1
    lost(here)
    assert call(here, "fetch").returncode == 0
    assert len((here / "samples.jsonl").read_text().splitlines()) == 2
    assert (here / CURVES).read_bytes() == DATA
    assert (here / f"{CURVES}.later").read_bytes() == b"a second attempt"


def test_records_that_were_never_lost_are_as_they_were(here):
    copy(here, 20, NEWEST, OLD)
    (here / "logdir" / f"{NEWEST}.index").write_bytes(b"")
    for name in ("progress.jsonl", CURVES):
        with (here / name).open("a") as file:
            file.write('{"event": "later"}\n')
    (here / BEST_POINTER).write_text("a newer list")
    assert call(here, "fetch").returncode == 0
    assert (here / BEST_POINTER).read_text() == "a newer list"
    assert (here / "progress.jsonl").read_text() == '{"event": "first"}\n{"event": "later"}\n'
    assert (here / CURVES).read_bytes() == DATA + b'{"event": "later"}\n'


@pytest.mark.parametrize(
    ("spoilt", "part", "brought"),
    [
        ("still/progress.jsonl", "", [NEWEST, OLD]),
        (f"logdir/{OLD}", DATA_PART, [NEWEST]),
        (f"logdir/{NEWEST}", DATA_PART, [OLD]),
    ],
    ids=["record", "best model", "checkpoint"],
)
def test_what_was_spoilt_there_is_left_behind_and_the_rest_is_brought_to_go_on_from(here, spoilt, part, brought):
    copy(here, 20, NEWEST, OLD)
    (here.parent / "there" / "copy" / f"{spoilt}{part}").write_bytes(b"rot")
    lost(here)
    done = call(here, "fetch")
    assert (done.returncode, done.stdout) == (0, f"left behind: {spoilt}\n")
    assert [name for name in (NEWEST, OLD) if (here / "logdir" / f"{name}.index").exists()] == brought
    assert (here / "progress.jsonl").read_text().endswith('{"event": "later"}\n')


def test_a_copy_that_does_not_arrive_leaves_the_disk_as_it_was(here):
    copy(here, 20, NEWEST, OLD)
    way(here, 'case $2 in *--null*) set -- $1 "$2 | head -c 12000";; esac')
    lost(here)
    done = call(here, "fetch")
    assert done.returncode == 1
    assert done.stderr.endswith("the copy of node did not arrive whole\n")
    assert not (here / "brought").exists()


def test_a_best_model_is_sent_again_only_with_other_bytes_and_what_the_framework_has_removed_goes_there_too(here):
    copy(here, 20, NEWEST, OLD)
    save(here / "logdir", "model.ckpt-30")
    assert sent(copy(here, 30, "model.ckpt-30", OLD)) == 3
    save(here / "logdir", OLD, data=DATA[::-1])  # Of the same name, with other bytes.
    assert sent(copy(here, 30, "model.ckpt-30", OLD)) == 1
    assert kept(here) == ["model.ckpt-30", "val_loss=2.0000-step-11"]
    lost(here)
    call(here, "fetch")
    assert (here / "logdir" / f"{OLD}.data-00000-of-00001").read_bytes() == DATA[::-1]


@pytest.mark.parametrize("harm", ["head -c 11000 | ", "LC_ALL=C sed s,gggg,GGGG, | "])
def test_what_was_cut_off_or_changed_on_the_way_leaves_the_copy_before_in_its_place(here, harm):
    copy(here, 20, NEWEST, OLD)
    save(here / "logdir", "model.ckpt-30", index=b"g" * 9000)
    way(here, f'case $2 in *receive*) set -- $1 "{harm}$2";; esac')
    done = copy(here, 30, "model.ckpt-30", OLD)
    assert done.returncode == 1
    assert "`receive` ended with exit code" in done.stderr
    way(here, "")
    assert replica.MARK + "20" in call(here, "copied").stdout
    lost(here)
    assert call(here, "fetch").returncode == 0
    assert (here / "logdir" / f"{NEWEST}.index").exists()


def test_a_copy_of_which_no_checkpoint_is_sound_is_not_brought(here):
    copy(here, 20, NEWEST)
    (here.parent / "there" / "copy" / "logdir" / f"{NEWEST}.data-00000-of-00001").write_bytes(b"rot")
    lost(here)
    done = call(here, "fetch")
    assert done.returncode == replica.SPOILT
    assert f"logdir/{NEWEST} of node has another hash" in done.stdout
    assert not (here / "logdir").exists()


def test_a_machine_without_a_copy_and_without_this_program_says_that_it_has_none(here):
    shutil.rmtree(here.parent / "there" / "agent")
    done = call(here, "copied")
    assert (done.returncode, done.stdout) == (0, f"{replica.MARK}{replica.NONE}\n")


@pytest.mark.parametrize(
    "trouble",
    [
        "echo Connection refused >&2; exit 255",
        'set -- $1 "$(echo "$2" | sed s,/copy,/agent/__init__.py/copy,)"',
        "rm there/copy/manifest.json",
    ],
    ids=["no way", "a path that cannot be read", "no manifest"],
)
def test_a_machine_that_cannot_say_what_it_has_is_not_one_without_a_copy(here, trouble, monkeypatch):
    copy(here, 20, NEWEST)
    monkeypatch.chdir(here.parent)
    way(here, trouble)
    done = call(here, "copied")
    assert done.returncode == 1
    assert replica.MARK not in done.stdout
