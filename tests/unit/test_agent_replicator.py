"""Checkpoints are copied to another machine while a run trains; real processes of this computer."""

import time

from sample_spec import MODELS
from supervised_run import carry_out, events_of, hold, hurry, shell_wait, start, wait_for_end, write_job

from agent.records import run_snapshot
from core.polling import wait_until
from microcluster.analysis import run_state as judging
from microcluster.analysis.run_state import judge
from tools.tiny_checkpoint import save


def files_of(name):
    return " ".join(f"logdir/{name}{part}" for part in (".index", ".meta", ".data-00000-of-00001"))


def test_every_new_checkpoint_is_announced_and_copied_to_the_next_machine(folder):
    carry_out(folder, last=3, pace=0.1)
    assert (folder / "copies").read_text() == f"10.0.0.1 3 {files_of('model.ckpt-3')}\n"
    assert [event["step"] for event in events_of(folder, "checkpoint")] == [3]
    (copied,) = events_of(folder, "copied")
    assert (copied["to"], copied["best"]) == ("gpu-1", [])
    assert 0 <= copied["lag_s"] < 240


def test_while_the_last_copy_is_made_the_supervisor_is_not_silent(folder, monkeypatch):
    monkeypatch.setattr(judging, "SUPERVISOR_SILENT_S", 3.0)
    hurry(folder, "supervise/supervisor.py", "EVERY_S = 5", "EVERY_S = 0.2")
    copy = f"touch {folder}/copying; while [ ! -e {folder}/go ]; do sleep 0.1; done"
    write_job(folder, copy=["sh", "-c", copy, "copy"])
    start(folder)
    wait_until("the copy to begin", (folder / "copying").exists, timeout_s=120, every_s=0.05)
    sampled = (folder / "samples.jsonl").stat().st_mtime
    wait_until("longer than a silence", lambda: time.time() > sampled + 4, timeout_s=60, every_s=0.1)
    assert judge(run_snapshot.observe(str(folder))).state == "running"
    (folder / "go").touch()
    assert wait_for_end(folder).state == "finished"


def test_whole_best_models_go_with_the_checkpoint_and_torn_ones_do_not(folder):
    save(folder / "logdir", "model.ckpt-2")
    save(folder / "logdir", "best_models/val_loss=2.0000-step-2")
    save(folder / "logdir", "best_models/val_loss=1.0000-step-1", data=b"")
    (folder / "logdir" / "best_models" / "checkpoint").write_text("the framework's list")
    carry_out(folder, last=3, pace=0.1)
    best = files_of("best_models/val_loss=2.0000-step-2")
    line = f"10.0.0.1 3 {files_of('model.ckpt-3')} {best} logdir/best_models/checkpoint\n"
    assert (folder / "copies").read_text().splitlines(keepends=True)[-1] == line
    assert events_of(folder, "copied")[-1]["best"] == ["val_loss=2.0000-step-2"]


def test_a_new_best_model_alone_is_copied_too(folder):
    save(folder / "logdir", "model.ckpt-1")
    best = "best_models/val_loss=2.0000-step-2"
    made = f"mkdir {folder}/logdir/best_models; for part in .meta .data-00000-of-00001 .index; do"
    made = f"{made} cp {folder}/logdir/model.ckpt-1$part {folder}/logdir/{best}$part; done"
    first, second = shell_wait(folder, '"event": "copied"'), shell_wait(folder, f'"best": ."{best.rpartition("/")[2]}')
    carry_out(folder, resume=["sh", "-c", f"{first}; {made}; {second}; exit 1"])
    assert [event["best"] for event in events_of(folder, "copied")] == [[], ["val_loss=2.0000-step-2"]]
    assert len(events_of(folder, "checkpoint")) == 1


def test_a_copy_that_fails_is_an_alarm_and_the_run_goes_on(folder):
    save(folder / "logdir", "model.ckpt-1")
    outcome = carry_out(folder, last=20, pace=0.1, copy=["sh", "-c", "echo no route to host; exit 255"])
    assert outcome.state == "finished"
    assert any("no route to host" in alarm["text"] for alarm in events_of(folder, "alarm"))


def test_a_look_that_fails_for_a_moment_does_not_end_the_copying(folder):
    save(folder / "logdir", "model.ckpt-1")
    hurry(folder, "checkpoints/checkpoint_watch.py", "RETRY_S = 60", "RETRY_S = 0")
    usual = '        """Return the names of the best models'
    training = f'not os.path.exists("{folder}/failed") and "training" in open("{folder}/phase").read()'
    fails = f'open("{folder}/failed", "x").close(); raise OSError(24, "Too many open files")'
    hurry(folder, "checkpoints/log_folder.py", usual, f"        if {training}:\n            {fails}\n{usual}")
    told = shell_wait(folder, '"event": "copied"')
    carry_out(folder, train=["sh", "-c", "exit 3"], resume=["sh", "-c", told.replace("1200", "100") + "; exit 3"])
    assert [event["step"] for event in events_of(folder, "copied")][:1] == [1]


def test_a_copy_that_takes_too_long_is_ended_before_the_next_one_begins(folder):
    save(folder / "logdir", "model.ckpt-1")
    hurry(folder, "checkpoints/checkpoint_watch.py", "COPY_TIMEOUT_S = 1800", "COPY_TIMEOUT_S = 1")
    hurry(folder, "checkpoints/checkpoint_watch.py", "RETRY_S = 60", "RETRY_S = 0")
    script = folder / "copy.sh"
    script.write_text(
        f"[ -e {folder}/pid ] || {{ sleep 600 & echo $! > {folder}/pid; wait; }}\n! grep -q sleep /proc/$(cat {folder}/pid)/cmdline"
    )
    write_job(
        folder,
        train=["sh", "-c", "exit 3"],
        resume=["sh", "-c", shell_wait(folder, '"event": "copied"').replace("1200", "400") + "; exit 3"],
        copy=["sh", str(script)],
    )
    carry_out(folder)
    assert [event["step"] for event in events_of(folder, "copied")][:1] == [1]


def test_when_the_next_machine_takes_no_copy_the_one_after_it_does_and_goes_on_doing_it(folder):
    save(folder / "logdir", "model.ckpt-1")
    tried = f'echo "$1 $2" >> {folder}/copies; [ $1 != 10.0.0.1 ] && rm -f {hold(folder)}'
    address = f"case $1 in 10.0.0.9) sed s/10.0.0.0/10.0.0.9/ ;; *) sed s/10.0.0.0/$1/ ;; esac < {folder}/facts.json"
    changes = {
        "addresses": ["10.0.0.0", "10.0.0.1", "10.0.0.9"],
        "names": ["gpu-0", "gpu-1", "gpu-2"],
        "preflight_skipped": "three machines are two here",
        "ssh": ["sh", "-c", f'case $2 in *facts*) {address} ;; *) eval "$2" ;; esac', "ssh"],
    }
    assert carry_out(folder, last=20, copy=["sh", "-c", tried, "copy"], **changes).state == "finished"
    assert (folder / "copies").read_text() == "10.0.0.1 1\n10.0.0.9 1\n10.0.0.9 20\n"
    assert [event["to"] for event in events_of(folder, "copied")] == ["gpu-2", "gpu-2"]


def test_the_parts_that_another_machine_has_written_are_gathered_and_copied_with_the_others(folder):
    step = folder / "logdir" / "step-3"

    def save_part(name):
        return f"[ -e {step}/{name} ] || {{ mkdir -p {step}; echo w > {folder}/new; mv {folder}/new {step}/{name}; }}"

    copied = shell_wait(folder, '"event": "copied"')
    write_job(
        folder,
        train=["sh", "-c", f"{save_part('rank0.pt')}; {copied}"],
        gather=[
            "sh",
            "-c",
            f"echo $1 >> {folder}/gathered; [ ! -e {step} ] || {{ {save_part('rank1.pt')}; }}",
            "gather",
        ],
        checkpoints="file_formats",
        checkpoint_options={"pattern": r"step-(?P<step>\d+)"},
    )
    carry_out(folder)
    copies = (folder / "copies").read_text().splitlines()
    assert copies[-1] == "10.0.0.1 3 logdir/step-3/rank0.pt logdir/step-3/rank1.pt", (
        "a part saved after a look is in the next copy"
    )
    asked = (folder / "gathered").read_text().split()
    assert asked[-1] == "over", "after the end nothing is left to the program"


def test_when_a_machine_does_not_hand_over_its_parts_what_is_here_is_copied_and_an_alarm_names_the_reason(folder):
    alarm = shell_wait(folder, "no route to host")
    (folder / "logdir" / "model-3.pt").write_bytes(b"weights")
    write_job(
        folder,
        resume=["sh", "-c", alarm],
        gather=["sh", "-c", f"[ $(cat {folder}/phase) = preparing ] || {{ echo no route to host; exit 1; }}"],
        **MODELS,
    )
    carry_out(folder)
    assert (folder / "copies").read_text().startswith("10.0.0.1 3 logdir/model-3.pt\n")
    assert any("no route to host" in event["text"] for event in events_of(folder, "alarm"))
