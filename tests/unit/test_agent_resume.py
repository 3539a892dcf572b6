"""What a run goes on from, in a folder as on the launcher."""

import os
import struct
import sys
import time
import types

import pytest
from sample_spec import MODELS
from supervised_run import carry_out, events_of, hurry, let_run, write_job

from agent.formats.checkpoints import tensorflow
from agent.run import context, document
from agent.supervise import health_rules, resume, shared_folder
from agent.supervise.monitor import train
from agent.supervise.prepare import prepare
from tests.tiny_checkpoint import DATA, save


def test_every_rank_gets_pointer_and_index_of_what_was_chosen_and_what_attempts_have_left_goes(folder, run):
    """The framework forgets them: with best models, up to 8.5 GB at every resume of the larger model."""
    for step in (1, 2, 3, 4):
        save(folder / "logdir", f"model.ckpt-{step}")
    save(folder / "logdir", "model.ckpt-5", index=b"")
    pointer = folder / "logdir" / "checkpoint"
    pointer.write_text('model_checkpoint_path: "model.ckpt-5"\n')
    assert resume.latest_checkpoint(run()) == ["logdir/checkpoint", "logdir/model.ckpt-4.index"]
    assert sorted(path.stem for path in (folder / "logdir").glob("*.index")) == ["model.ckpt-3", "model.ckpt-4"]
    assert '"model.ckpt-4"' in pointer.read_text() and "model.ckpt-1" not in pointer.read_text()


def test_a_log_folder_without_a_checkpoint_is_put_aside_because_the_trainer_refuses_it(folder, run):
    (folder / "logdir" / "graph.pbtxt").touch()
    assert resume.latest_checkpoint(run()) == []
    assert list((folder / "logdir").iterdir()) == []
    assert list(folder.glob("logdir.without-checkpoint-*/graph.pbtxt"))


def test_a_fresh_launcher_takes_the_copy_of_another_machine(folder):
    kept = folder.parent / "kept"
    save(kept, "model.ckpt-3")
    bring = ["sh", "-c", f"cp {kept}/* {folder}/logdir"]
    outcome = carry_out(folder, last=6, copied=["echo", f"{resume.MARK}3"], bring=bring)
    assert (outcome.state, outcome.step) == ("finished", 6)
    assert [event["step"] for event in events_of(folder, "brought_back", "resuming", "restored")] == [3, 3, 3]


THREE = {"addresses": ["10.0.0.0", "10.0.0.1", "10.0.0.9"], "names": ["gpu-0", "gpu-1", "gpu-2"]}
REFUSED = "echo 'ssh: connect to host $1 port 4444: Connection refused' >&2; exit 255"


def on_machines(folder, copied="", bring="", **changes):
    """Let three machines answer; ``$1`` is who is asked, ``$n`` how often anybody was asked the same."""
    count = f"echo >> {folder}/$0.$1; n=$(wc -l < {folder}/$0.$1)"
    asked = f"{count}; {copied or f'echo {resume.MARK}none'}"
    brings = ["sh", "-c", f"{count}; {bring}", "bring"]
    write_job(folder, copied=["sh", "-c", asked, "copied"], bring=brings, **THREE, **changes)


def test_when_the_newest_copy_is_spoilt_the_next_one_is_brought(folder, run):
    copied = f"case $1 in 10.0.0.9) echo {resume.MARK}30 ;; *) echo {resume.MARK}20 ;; esac"
    on_machines(folder, copied, f"[ $1 = 10.0.0.9 ] && exit {resume.SPOILT}; touch {folder}/brought")
    resume.bring_back(run())
    told = events_of(folder, "not_brought_back", "brought_back")
    found = [(event["event"], event["from"], event["step"]) for event in told]
    assert found == [("not_brought_back", "gpu-2", 30), ("brought_back", "gpu-1", 20)]
    assert (folder / "brought").exists()


def test_when_the_way_to_the_newest_copy_breaks_an_older_one_does_not_take_its_place(folder, run):
    copied = f"case $1 in 10.0.0.9) echo {resume.MARK}30 ;; *) echo {resume.MARK}20 ;; esac"
    on_machines(folder, copied, f"[ $1 = 10.0.0.9 ] && {{ {REFUSED}; }}; touch {folder}/brought")
    with pytest.raises(health_rules.Failed, match="step 30 from gpu-2: ssh: .* Connection refused"):
        resume.bring_back(run())
    assert not (folder / "brought").exists()
    assert len((folder / "bring.10.0.0.9").read_text()) == context.ASK_TRIES


@pytest.mark.parametrize(
    ("own", "half", "fetched"),
    [(40, False, False), (20, False, True), (30, True, True)],
    ids=["newer", "older", "half"],
)
def test_a_copy_is_fetched_where_it_is_newer_or_a_fetch_was_killed(folder, run, own, half, fetched):
    refused = REFUSED.replace("$1", "10.0.0.1")
    on_machines(folder, f"[ $n -lt 3 ] && {{ {refused}; }}; echo {resume.MARK}30", f"touch {folder}/fetched")
    save(folder / "logdir", f"model.ckpt-{own}")
    if half:
        (folder / "brought").mkdir()
    resume.bring_back(run())
    assert (folder / "fetched").exists() is fetched


@pytest.mark.parametrize("own", [None, 20], ids=["fresh", "with an older checkpoint"])
def test_where_every_copy_is_spoilt_a_run_goes_on_from_its_own_checkpoint_or_not_at_all(folder, run, own):
    on_machines(folder, f"echo {resume.MARK}30", f"echo said why; exit {resume.SPOILT}")
    if own:
        save(folder / "logdir", f"model.ckpt-{own}")
        resume.bring_back(run())
        return
    with pytest.raises(health_rules.Failed, match="of step 30 on gpu-1: said why.*Remove") as failed:
        resume.bring_back(run())
    assert failed.value.args[0] == "not-brought-back"


@pytest.mark.parametrize("own", [None, 20], ids=["fresh", "with an older checkpoint"])
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (REFUSED, "Connection refused"),
        ("exec sleep 60", "no answer after 0.2 s"),
        ("true", "exit code 0"),
        ("echo 'Error: No such container: box' >&2; exit 1", "No such container"),
    ],
    ids=["refused", "too slow", "no word", "Docker"],
)
def test_a_silent_machine_is_not_taken_for_one_without_a_copy(folder, run, monkeypatch, own, answer, said):  # noqa: PLR0917
    """The one that answers may hold the older copy, so that its answer is not enough."""
    monkeypatch.setattr(resume, "ASK_TIMEOUT_S", 0.2 if "sleep" in answer else 30)
    if own:
        save(folder / "logdir", f"model.ckpt-{own}")
    on_machines(folder, f"[ $1 = 10.0.0.9 ] && {{ {answer}; exit; }}; echo {resume.MARK}30", f"touch {folder}/brought")
    with pytest.raises(health_rules.Failed, match=f"gpu-2 .* no answer in 4 tries \\(.*{said}") as failed:
        resume.bring_back(run())
    assert f"remove {folder}/copy there" in str(failed.value)
    assert not (folder / "brought").exists()


@pytest.mark.parametrize("older", [False, True], ids=["alone", "with an older one"])
def test_a_checkpoint_that_cannot_be_read_back_is_taken_from_the_copy_of_the_same_step(folder, run, older):
    kept, brought = folder.parent / "kept", folder / "brought"
    save(kept, "model.ckpt-30")
    for step in (20, 30) if older else (30,):
        save(folder / "logdir", f"model.ckpt-{step}")
    on_machines(
        folder,
        f"echo {resume.MARK}30",
        f"cp {kept}/* {folder}/logdir; touch {brought}",
        read=["sh", "-c", f"case $0 in *-30) [ -e {brought} ] || exit {resume.UNREADABLE} ;; esac"],
    )
    assert resume.latest_checkpoint(run()) == ["logdir/checkpoint", "logdir/model.ckpt-30.index"]


def test_a_checkpoint_that_cannot_be_read_back_and_whose_copy_does_not_come_does_not_begin_the_run_again(folder, run):
    save(folder / "logdir", "model.ckpt-3")
    on_machines(folder, f"echo {resume.MARK}3", "exit 255", read=["sh", "-c", f"exit {resume.UNREADABLE}"])
    with pytest.raises(health_rules.Failed, match="fetching the copy of step 3"):
        resume.latest_checkpoint(run())


def tensorflow_whose_reading(raises):
    """Return what verify_tensors.py needs of TensorFlow."""

    def load_checkpoint(prefix):
        raise raises

    errors = types.SimpleNamespace(ResourceExhaustedError=ConnectionAbortedError)
    return types.SimpleNamespace(errors=errors, train=types.SimpleNamespace(load_checkpoint=load_checkpoint))


@pytest.mark.parametrize("error", [MemoryError(), ConnectionAbortedError()], ids=["Python's", "TensorFlow's"])
def test_a_launcher_without_memory_calls_no_checkpoint_unreadable_and_one_with_wrong_bytes_is(monkeypatch, error):
    monkeypatch.setitem(sys.modules, "tensorflow", tensorflow_whose_reading(error))
    with pytest.raises(type(error)):
        tensorflow.main("model.ckpt-3")
    monkeypatch.setitem(sys.modules, "tensorflow", tensorflow_whose_reading(ValueError("Checksum does not match")))
    assert tensorflow.main("model.ckpt-3") == resume.UNREADABLE


def test_on_a_full_disk_what_earlier_attempts_have_left_makes_room_before_the_run_gives_up(folder):
    for step in (1, 2, 3):
        save(folder / "logdir", f"model.ckpt-{step}")
    first = folder / "logdir" / "model.ckpt-1.index"
    write = "os.posix_fallocate(file.fileno(), 0, BALLAST_BYTES)"
    full = f'os.path.exists("{first}") and os.write(os.open("/dev/full", os.O_WRONLY), b"x")'
    hurry(folder, "run/context.py", write, full)
    assert carry_out(folder, last=6).state == "finished"


def test_the_step_of_a_resume_is_the_one_in_the_checkpoint_and_not_that_of_its_name(folder):
    best = "best_models/val_loss=0.0488-step-300"
    save(folder / "logdir", best, data=DATA[:12] + struct.pack("<q", 299))
    said = f"[1,0]<stdout>:*** Restored checkpoint from {folder}/logdir/{best}. Resuming training"
    carry_out(folder, resume=["sh", "-c", f"echo '{said}'; exit 3"])
    assert [event["step"] for event in events_of(folder, "resuming", "restored")] == [299, 299]


TRIES = 'echo "$0" >> {folder}/tried; [ -e {folder}/able ] && echo \'{{"step": 9, "loss": 1.0}}\'; exit 1'


def own_program(folder, how='"exit_code": 1'):
    """Let a program of the user's own go on from a checkpoint until its rank dies; what it was given is in ``tried``."""
    for step in (1, 2, 3):
        (folder / "logdir" / f"model-{step}.pt").write_bytes(b"weights")
    resumed = ["sh", "-c", TRIES.format(folder=folder), document.CHECKPOINT]
    (folder / "ended-10.0.0.1").write_text(f'{{"rank": 0, {how}, "t": 1.0}}\n')
    write_job(folder, last=9, train=["false"], resume=resumed, reader="json_lines", **MODELS)


@pytest.fixture
def attempts(folder, run):
    """Return what goes on so many times, and gives all from which it went on so far and why the last attempt failed."""

    def made(count):
        for _ in range(count):
            opened = run()
            prepare(opened)
            with pytest.raises(health_rules.Failed) as failed:
                train(opened, opened.spec.program.resume_processes)
        tried = (folder / "tried").read_text().split()
        return [line.rpartition("/")[2] for line in tried], failed.value.args[1]

    return made


def test_a_checkpoint_from_which_a_program_goes_on_in_vain_is_put_aside_and_the_last_one_stays(folder, attempts):
    own_program(folder)
    tried, why = attempts(1)
    assert tried == ["model-3.pt"]
    assert "model-3.pt and made no step: the next attempt puts that aside and goes on from the one before" in why
    tried, why = attempts(2)
    assert tried == ["model-3.pt", "model-2.pt", "model-2.pt"]
    assert "model-2.pt and made no step: without another one the next attempt uses it again" in why
    (text,) = [event["text"] for event in events_of(folder, "passed_over")]
    assert text.startswith("model-3.pt: the program went on from it and ended before its first step; it lies in ")
    (aside,) = folder.glob("logdir.torn-*")
    assert text.endswith(str(aside)) and (aside / "model-3.pt").exists()


def on_drive(folder, tmp_path, **job):
    """Let the log folder be the run's folder on a drive that all nodes mount; return it."""
    drive = tmp_path / "drive" / folder.name
    drive.mkdir(parents=True)
    (folder / "logdir").rmdir()
    (folder / "logdir").symlink_to(drive)
    write_job(folder, shared=str(drive), **{**MODELS, **job})
    return drive


def test_on_a_shared_drive_what_is_passed_over_is_put_aside_on_the_drive(folder, run, tmp_path, monkeypatch):
    drive = on_drive(folder, tmp_path)
    (drive / "model-1.pt").write_bytes(b"weights")
    (drive / "model-2.pt").write_bytes(b"")
    assert resume.latest_checkpoint(run()) == ["logdir/model-1.pt"]
    (text,) = [event["text"] for event in events_of(folder, "passed_over")]
    (aside,) = drive.parent.glob(f"{folder.name}.torn-*")
    assert (aside / "model-2.pt").exists() and text.endswith(f"it lies in {aside}")


def test_before_the_first_checkpoint_a_shared_drive_keeps_the_launchers_word(folder, run, tmp_path):
    drive = on_drive(folder, tmp_path)
    opened = run()
    shared_folder.use(opened)
    (drive / "events.out").write_text("curves")
    assert resume.latest_checkpoint(opened) == []
    shared_folder.compare(opened, [])
    assert [path.name for path in drive.iterdir()] == [shared_folder.WORD]
    assert list(drive.parent.glob("*.without-checkpoint-*/events.out"))


def test_1200_names_on_a_shared_drive_are_compared(folder, run, tmp_path):
    pattern = {"checkpoint_options": {"pattern": r"step-(?P<step>\d+)"}}
    drive = on_drive(folder, tmp_path, **pattern)
    (drive / "step-9" / ("x" * 150)).mkdir(parents=True)
    for number in range(1200):
        (drive / "step-9" / ("x" * 150) / f"{number}.pt").write_bytes(b"w")
    opened = run()
    shared_folder.use(opened)
    needed = resume.latest_checkpoint(opened)
    assert len(needed) == 1200
    shared_folder.compare(opened, needed)
    assert shared_folder.lengths_elsewhere(opened, [str(folder / name) for name in needed]) == [1] * 1200


def test_a_suspected_checkpoint_is_gone_on_from_where_there_is_no_other_and_the_run_says_so(folder, run):
    write_job(folder, **MODELS)
    for step in (1, 2):
        (folder / "logdir" / f"model-{step}.pt").write_bytes(b"")
    assert resume.latest_checkpoint(run()) == ["logdir/model-2.pt"]
    (told,) = events_of(folder, "suspected")
    assert (told["step"], told["text"]) == (2, "model-2.pt is empty")
    assert (folder / "logdir" / "model-1.pt").exists()


MEGATRON = {"checkpoints": "file_formats", "checkpoint_options": {"pattern": r"iter_(?P<step>\d+)"}}


def test_pointers_are_set_to_what_was_chosen_and_go_to_every_node(folder, run):
    options = {**MEGATRON["checkpoint_options"], "pointers": ["newest.txt"]}
    write_job(folder, **{**MEGATRON, "checkpoint_options": options})
    logdir = folder / "logdir"
    for step in (1000, 2000, 3000, 4000):
        (logdir / f"iter_000{step}").mkdir()
        (logdir / f"iter_000{step}" / "model.pt").write_bytes(b"weights" if step < 4000 else b"")
    (logdir / "latest_checkpointed_iteration.txt").write_text("4000\n")
    (logdir / "latest").write_text("/data/x/iter_0004000")
    (logdir / "last").symlink_to("iter_0004000")
    (logdir / "counter").write_text("7")
    (logdir / "newest.txt").write_text("iter_0004000")
    needed = resume.latest_checkpoint(run())
    pointers = ["counter", "last", "latest", "latest_checkpointed_iteration.txt", "newest.txt"]
    assert needed == [f"logdir/{name}" for name in ("iter_0003000/model.pt", *pointers)]
    assert (logdir / "latest_checkpointed_iteration.txt").read_text() == "3000\n"
    assert (logdir / "latest").read_text() == "/data/x/iter_0003000"
    assert os.readlink(logdir / "last") == "iter_0003000"
    assert (logdir / "counter").read_text() == "7", "no step of a checkpoint"
    assert (logdir / "newest.txt").read_text() == "iter_0003000", "the stack file names it"


def test_a_link_is_set_to_what_was_chosen_after_a_resume_that_was_killed(folder, run):
    write_job(folder, **MODELS)
    logdir = folder / "logdir"
    (logdir / "model-3.pt").write_bytes(b"weights")
    for name in ("last", "last.new"):
        (logdir / name).symlink_to("model-4.pt")
    resume.latest_checkpoint(run())
    assert os.readlink(logdir / "last") == "model-3.pt"


def test_while_a_pointer_names_another_checkpoint_no_sound_one_is_blamed(folder, attempts):
    own_program(folder)
    (folder / "logdir" / "latest").write_text("best")
    tried, why = attempts(2)
    assert tried == ["model-3.pt", "model-3.pt"]
    assert "logdir/model-3.pt, but latest names another checkpoint" in why


def test_a_program_that_says_why_it_ended_and_nothing_of_loading_has_loaded(folder, attempts):
    own_program(folder)
    why = "Traceback (most recent call last):\\n  for x, y in zip(a, b):\\nRuntimeError: out of memory"
    write_job(
        folder,
        train=["false"],
        resume=["sh", "-c", f"{TRIES.format(folder=folder)[:-6]} printf '{why}'; exit 1", document.CHECKPOINT],
        reader="json_lines",
        **MODELS,
    )
    assert attempts(2)[0] == ["model-3.pt"] * 2


def test_an_attempt_that_lasted_has_loaded_its_checkpoint(folder, attempts, monkeypatch):
    monkeypatch.setattr(resume, "LOADS_S", 0)
    own_program(folder)
    assert attempts(2)[0] == ["model-3.pt"] * 2


def test_a_drive_whose_clock_is_ahead_saves_no_checkpoint_from_blame(folder, attempts):
    own_program(folder)
    moment = time.time() + 300
    os.utime(folder / "logdir" / "model-3.pt", (moment, moment))
    assert attempts(2)[0] == ["model-3.pt", "model-2.pt"]


def test_what_is_kept_or_called_best_stays(folder, run):
    write_job(folder, keep=["model-2.pt"], **MODELS)
    logdir = folder / "logdir"
    for step in range(1, 8):
        (logdir / f"model-{step}.pt").write_bytes(b"weights")
    (logdir / "best.pt").symlink_to("last.pt")
    (logdir / "last.pt").symlink_to("model-3.pt")
    (logdir / "trainer_state.json").write_text('{"best_model_checkpoint": "out/model-4.pt"}')
    (logdir / "best.txt").write_text("/data/out/model-1.pt\n")
    resume.latest_checkpoint(run())
    assert sorted(path.name for path in logdir.glob("model-*")) == [f"model-{step}.pt" for step in (1, 2, 3, 4, 6, 7)]


def test_what_only_another_machine_has_written_is_gone_on_from_and_brought_to_all(folder, attempts):
    own_program(folder)
    let_run(folder, "gather", ["sh", "-c", f"echo w > {folder}/logdir/model-4.pt"])
    assert attempts(1)[0] == ["model-4.pt"]
    assert (folder / "placed").read_text().startswith('10.0.0.1 [["model-4.pt"], ["model-1.pt",')


def test_an_attempt_that_has_made_a_step_or_was_killed_does_not_speak_against_its_checkpoint(folder, attempts):
    own_program(folder)
    (folder / "able").touch()
    assert attempts(2)[0] == ["model-3.pt"] * 2
    (folder / "able").unlink()
    own_program(folder, how='"signal": 9')
    assert attempts(2)[0] == ["model-3.pt"] * 4


def test_a_checkpoint_that_was_written_again_since_is_another_one(folder, attempts):
    own_program(folder)
    attempts(1)
    moment = time.time() + 5
    os.utime(folder / "logdir" / "model-3.pt", (moment, moment))
    assert attempts(1)[0] == ["model-3.pt"] * 2


def test_without_the_parts_of_a_silent_machine_a_run_does_not_go_on(folder, run):
    own_program(folder)
    let_run(folder, "gather", ["sh", "-c", "echo no route to host; exit 1"])
    with pytest.raises(health_rules.Failed, match="their parts of the checkpoints: no route to host"):
        resume.gather(run())
