"""A run under its monitor, as real processes; what goes wrong ends it with a cause and the lines that matter."""

from __future__ import annotations

import json
import time

import pytest
from test_remote_supervisor import (  # noqa: F401 - a fixture
    FACTS,
    end_run,
    folder,
    hold,
    hurry,
    once_told,
    start,
    wait_for_end,
    write_job,
)
from tiny_checkpoint import save

from agent import run_snapshot
from microcluster.analysis import run_state as judging
from microcluster.analysis.run_state import judge
from microcluster.waiting import wait_until


def trains(folder, *lines, then="sleep 60"):  # noqa: F811
    """Let the ranks be a shell that says ``lines``."""
    said = "\n".join(f"echo '{line}'" for line in lines)
    write_job(folder, train=["sh", "-c", f"{said}\n{then}"], stall_s=900)


def events_of(folder, kind):  # noqa: F811
    lines = (folder / "progress.jsonl").read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == kind]


def test_a_loss_that_is_no_number_ends_the_ranks_at_once(folder):  # noqa: F811
    trains(folder, "[1,0]<stdout>:*** Global step 10: ***     Train loss: nan ")
    start(folder)
    outcome = wait_for_end(folder)
    assert (outcome.state, outcome.cause) == ("failed", "nan")
    assert outcome.reason == "the train loss became nan at step 10"
    assert "Train loss: nan" in outcome.last_lines[-1]
    assert end_run(folder)["ended"] == 0


def test_a_rank_that_died_is_named_with_its_node_and_its_own_last_lines(folder):  # noqa: F811
    trains(
        folder,
        "[1,0]<stdout>:*** Global step 10: ***     Train loss: 4.0 ",
        *(f"[1,2]<stderr>:Traceback line {n}" for n in range(30)),
        *(f"[1,2]<stdout>:***     *****EVAL {kind}[0]:     a sentence" for kind in ("Source", "Target") * 20),
        "[1,2]<stderr>:",
        "[1,3]<stdout>:*** Building graph in Horovod rank: 3",
        "mpirun noticed that process rank 2 with PID 77 on node 10.0.0.1 exited on signal 9 (Killed).",
        then="exit 137",
    )
    start(folder)
    outcome = wait_for_end(folder)
    assert (outcome.cause, outcome.reason) == ("rank-died", "rank 2 on gpu-1 ended with signal 9")
    assert len(outcome.last_lines) == 20
    assert outcome.last_lines[-1] == "[1,2]<stderr>:Traceback line 29", "samples and blank lines are left out"


def test_no_progress_ends_the_run_as_stalled(folder):  # noqa: F811
    write_job(folder, train=["sh", "-c", "echo '*** Global step 10: ***     Train loss: 4.0 '; sleep 60"], stall_s=1)
    start(folder)
    outcome = wait_for_end(folder)
    assert outcome.cause == "stalled"
    assert "since step 10" in outcome.reason


def test_a_stall_names_the_rank_that_horovod_waits_for_and_its_machine(folder):  # noqa: F811
    lines = (
        "[1,0]<stdout>:*** Global step 10: ***     Train loss: 4.0 ",
        "[1,0]<stderr>:Missing ranks:",
        "[1,0]<stderr>:3: [HorovodAllreduce_gradients ...]",
    )
    said = "; ".join(f"echo '{line}'" for line in lines)
    write_job(folder, train=["sh", "-c", f"{said}; sleep 60"], stall_s=1)
    start(folder)
    assert wait_for_end(folder).reason.endswith("since step 10; the other ranks wait for rank 3 on gpu-1")


def test_a_rank_that_the_run_does_not_have_ends_it_without_a_crash(folder):  # noqa: F811
    line = "mpirun noticed that process rank 77 with PID 1 on node elsewhere exited on signal 9 (Killed)."
    trains(folder, line, then="exit 137")
    start(folder)
    outcome = wait_for_end(folder)
    assert (outcome.cause, outcome.reason) == ("rank-died", "rank 77 on no machine of this run ended with signal 9")


def test_a_stream_that_is_no_text_has_no_end_of_line_or_a_carriage_return_is_read_all_the_same(folder):  # noqa: F811
    before = "head -c 3000000 /dev/zero; printf '\\377\\376\\r\\n'"
    loss = "printf '[1,0]<stdout>:*** Global step 10: ***     Train loss: nan \\r\\n'"
    write_job(folder, train=["sh", "-c", f"{before}; {loss}; sleep 60"])
    start(folder)
    outcome = wait_for_end(folder)
    assert outcome.cause == "nan"
    assert outcome.last_lines == ("[1,0]<stdout>:*** Global step 10: ***     Train loss: nan ",)
    assert (folder / "job.log").stat().st_size > 3_000_000


def test_of_a_line_that_is_very_long_its_beginning_is_told(folder):  # noqa: F811
    write_job(folder, train=["sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x; echo; exit 3"])
    start(folder)
    assert max(len(line) for line in wait_for_end(folder).last_lines) == 1000


def test_a_machine_that_is_lost_ends_the_run_and_what_is_left_on_the_others_is_ended(folder):  # noqa: F811
    write_job(
        folder,
        train=["sh", "-c", "echo '  Remote daemon: [[3,0],1] on node 10.0.0.1'; sleep 60"],
        end=["touch", str(folder / "swept")],
    )
    start(folder)
    outcome = wait_for_end(folder)
    assert (outcome.cause, outcome.reason) == ("node-lost", "gpu-1 is lost to the other machines")
    assert (folder / "swept").exists()


def test_a_disk_without_room_ends_the_run(folder):  # noqa: F811
    trains(folder, "[1,0]<stderr>:tensorflow.ResourceExhaustedError: /data/x; No space left on device")
    start(folder)
    assert wait_for_end(folder).cause == "disk-full"


def files_of(name):
    return " ".join(f"logdir/{name}{part}" for part in (".index", ".meta", ".data-00000-of-00001"))


def test_every_new_checkpoint_is_announced_and_copied_to_the_next_machine(folder):  # noqa: F811
    write_job(folder, last=3, pace=0.1)
    start(folder)
    wait_for_end(folder)
    assert (folder / "copies").read_text() == f"10.0.0.1 3 {files_of('model.ckpt-3')}\n"
    assert [event["step"] for event in events_of(folder, "checkpoint")] == [3]
    (copied,) = events_of(folder, "copied")
    assert (copied["to"], copied["best"], copied["bytes"]) == ("gpu-1", [], 7)
    assert copied["lag_s"] >= copied["seconds"]


def test_while_the_last_copy_is_made_the_supervisor_is_not_silent(folder, monkeypatch):  # noqa: F811
    monkeypatch.setattr(judging, "SUPERVISOR_SILENT_S", 3.0)
    hurry(folder, "liveness.py", "EVERY_S = 5", "EVERY_S = 0.2")
    copy = f"touch {folder}/copying; while [ ! -e {folder}/go ]; do sleep 0.1; done"
    write_job(folder, copy=["sh", "-c", copy, "copy"])
    start(folder)
    wait_until("the copy to begin", (folder / "copying").exists, timeout_s=120, every_s=0.05)
    sampled = (folder / "samples.jsonl").stat().st_mtime
    wait_until("longer than a silence", lambda: time.time() > sampled + 4, timeout_s=60, every_s=0.1)
    assert judge(run_snapshot.observe(str(folder))).state == "running"
    (folder / "go").touch()
    assert wait_for_end(folder).state == "finished"


def test_whole_best_models_go_with_the_checkpoint_and_torn_ones_do_not(folder):  # noqa: F811
    save(folder / "logdir", "model.ckpt-2")
    save(folder / "logdir", "best_models/val_loss=2.0000-step-2")
    save(folder / "logdir", "best_models/val_loss=1.0000-step-1", data=b"")
    (folder / "logdir" / "best_models" / "checkpoint").write_text("the framework's list")
    write_job(folder, last=3, pace=0.1)
    start(folder)
    wait_for_end(folder)
    best = files_of("best_models/val_loss=2.0000-step-2")
    line = f"10.0.0.1 3 {files_of('model.ckpt-3')} {best} logdir/best_models/checkpoint\n"
    assert (folder / "copies").read_text().splitlines(keepends=True)[-1] == line
    assert events_of(folder, "copied")[-1]["best"] == ["val_loss=2.0000-step-2"]


def test_a_new_best_model_alone_is_copied_too(folder):  # noqa: F811
    save(folder / "logdir", "model.ckpt-1")
    best = "best_models/val_loss=2.0000-step-2"
    made = f"mkdir {folder}/logdir/best_models; for part in .meta .data-00000-of-00001 .index; do"
    made = f"{made} cp {folder}/logdir/model.ckpt-1$part {folder}/logdir/{best}$part; done"
    first, second = once_told(folder, '"event": "copied"'), once_told(folder, f'"best": ."{best.rpartition("/")[2]}')
    write_job(folder, resume=["sh", "-c", f"{first}; {made}; {second}; exit 1"])
    start(folder)
    wait_for_end(folder)
    assert [event["best"] for event in events_of(folder, "copied")] == [[], ["val_loss=2.0000-step-2"]]
    assert len(events_of(folder, "checkpoint")) == 1


def test_a_copy_that_fails_is_an_alarm_and_the_run_goes_on(folder):  # noqa: F811
    save(folder / "logdir", "model.ckpt-1")
    write_job(folder, last=20, pace=0.1, copy=["sh", "-c", "echo no route to host; exit 255"])
    start(folder)
    assert wait_for_end(folder).state == "finished"
    assert any("no route to host" in alarm["text"] for alarm in events_of(folder, "alarm"))


def test_a_look_that_fails_for_a_moment_does_not_end_the_copying(folder):  # noqa: F811
    save(folder / "logdir", "model.ckpt-1")
    hurry(folder, "replicator.py", "RETRY_S = 60", "RETRY_S = 0")
    usual = '        """Return the names of the best models'
    training = f'not os.path.exists("{folder}/failed") and "training" in open("{folder}/phase").read()'
    fails = f'open("{folder}/failed", "x").close(); raise OSError(24, "Too many open files")'
    hurry(folder, "checkpoints/__init__.py", usual, f"        if {training}:\n            {fails}\n{usual}")
    told = once_told(folder, '"event": "copied"')
    write_job(folder, train=["sh", "-c", "exit 3"], resume=["sh", "-c", told.replace("1200", "100") + "; exit 3"])
    start(folder)
    wait_for_end(folder)
    assert [event["step"] for event in events_of(folder, "copied")][:1] == [1]


def test_a_copy_that_takes_too_long_is_ended_before_the_next_one_begins(folder):  # noqa: F811
    save(folder / "logdir", "model.ckpt-1")
    hurry(folder, "replicator.py", "COPY_TIMEOUT_S = 1800", "COPY_TIMEOUT_S = 1")
    hurry(folder, "replicator.py", "RETRY_S = 60", "RETRY_S = 0")
    script = folder / "copy.sh"
    script.write_text(
        f"[ -e {folder}/pid ] || {{ sleep 600 & echo $! > {folder}/pid; wait; }}\n! grep -q sleep /proc/$(cat {folder}/pid)/cmdline"
    )
    write_job(
        folder,
        train=["sh", "-c", "exit 3"],
        resume=["sh", "-c", once_told(folder, '"event": "copied"').replace("1200", "400") + "; exit 3"],
        copy=["sh", str(script)],
    )
    start(folder)
    wait_for_end(folder)
    assert [event["step"] for event in events_of(folder, "copied")][:1] == [1]


def test_when_the_next_machine_takes_no_copy_the_one_after_it_does_and_goes_on_doing_it(folder):  # noqa: F811
    save(folder / "logdir", "model.ckpt-1")
    tried = f'echo "$1 $2" >> {folder}/copies; [ $1 != 10.0.0.1 ] && rm -f {hold(folder)}'
    address = f"case $1 in 10.0.0.9) sed s/10.0.0.0/10.0.0.9/ ;; *) sed s/10.0.0.0/$1/ ;; esac < {folder}/facts.json"
    changes = {
        "addresses": ["10.0.0.0", "10.0.0.1", "10.0.0.9"],
        "names": ["gpu-0", "gpu-1", "gpu-2"],
        "preflight_skipped": "three machines are two here",
        "ssh": ["sh", "-c", f'case $2 in *facts*) {address} ;; *) eval "$2" ;; esac', "ssh"],
    }
    write_job(folder, last=20, copy=["sh", "-c", tried, "copy"], **changes)
    start(folder)
    assert wait_for_end(folder).state == "finished"
    assert (folder / "copies").read_text() == "10.0.0.1 1\n10.0.0.9 1\n10.0.0.9 20\n"
    assert [event["to"] for event in events_of(folder, "copied")] == ["gpu-2", "gpu-2"]


def test_ranks_that_ended_because_a_machine_does_not_answer_any_more_name_the_machine(folder):  # noqa: F811
    facts = f"sed s/10.0.0.0/$1/ {folder}/facts.json"
    way = f'[ -e {folder}/cut ] && exit 255; case $2 in *facts*) {facts} ;; *) eval "$2" ;; esac'
    ended = f"echo connection reset; touch {folder}/cut; exit 1"
    write_job(folder, train=["sh", "-c", ended], ssh=["sh", "-c", way, "ssh"], sample_every_s=900)
    start(folder)
    outcome = wait_for_end(folder)
    assert (outcome.cause, outcome.reason) == ("node-lost", "gpu-1 does not answer, and the ranks have ended")
    assert outcome.last_lines[-1] == "connection reset"


def test_ranks_that_ended_while_every_machine_answers_blame_none(folder):  # noqa: F811
    trains(folder, "what is this", then="exit 3")
    start(folder)
    outcome = wait_for_end(folder)
    assert (outcome.cause, outcome.reason) == ("training", "training ended with exit code 3")


def test_when_mpirun_crashes_over_a_dead_rank_the_machine_of_the_first_one_names_it(folder):  # noqa: F811
    words = (
        {"rank": 1, "exit_code": 1, "t": 20.5},
        {"rank": 3, "signal": 9, "t": 20.1},
        {"rank": 0, "exit_code": 1, "t": 21},
    )
    said = "\n".join(map(json.dumps, words))
    survivor = "sleep 60 >/dev/null 2>&1 &"
    trains(
        folder,
        "[1,3]<stdout>:last words",
        then=f"echo '{said}' > {folder}/ranks_ended.jsonl; {survivor} kill -SEGV $$",
    )
    start(folder)
    outcome = wait_for_end(folder)
    assert (outcome.cause, outcome.reason) == ("rank-died", "rank 3 on gpu-1 ended with signal 9")
    assert outcome.last_lines == ("[1,3]<stdout>:last words",)
    assert end_run(folder)["ended"] == 0


def test_a_word_that_was_cut_off_and_what_ssh_says_hide_neither_the_rank_nor_leave_the_others(folder):  # noqa: F811
    word = {"rank": 3, "signal": 9, "t": 20.1}
    said = f"echo Warning: something; echo '{json.dumps(word)}'; printf '{{\"rank\": 1, \"t'"
    trains(folder, then="sleep 60 >/dev/null 2>&1 & kill -SEGV $$")
    job = json.loads((folder / "job.json").read_text())
    (folder / "job.json").write_text(json.dumps({**job, "ended": ["sh", "-c", said]}))
    start(folder)
    outcome = wait_for_end(folder)
    assert (outcome.cause, outcome.reason) == ("rank-died", "rank 3 on gpu-1 ended with signal 9")
    assert end_run(folder)["ended"] == 0


V100 = {"predicted_s": 1.75, "compute_s": 0.5927, "wire_bytes": 365285376, "per_hour": 13.0}


def paces(seconds):
    return "\n".join(
        f"*** Global step {step}: ***     Train loss: 4.0 \ntime per step = 0:00:{seconds}" for step in range(7)
    ).splitlines()


def test_steps_that_are_slower_than_predicted_are_an_alarm_with_what_they_cost_and_the_run_goes_on(folder):  # noqa: F811
    said = "\n".join(f"echo '{line}'" for line in paces(4.5))
    alarmed = once_told(folder, '"event": "alarm"')
    train = ["sh", "-c", f"{said}\n{alarmed}; exit 3"]
    write_job(folder, last=50_000, train=train, **V100)
    start(folder)
    assert wait_for_end(folder).cause == "training"
    (prediction,) = events_of(folder, "prediction")
    assert (prediction["seconds"], prediction["mbps"]) == (3.303, 941)
    (alarm,) = events_of(folder, "alarm")
    assert alarm["cause"] == "slow"
    assert alarm["text"].startswith("4.500 s per step instead of 3.303 predicted at 941 Mb/s")
    assert "$3.46 of every hour's $13.00 buy no steps" in alarm["text"]


def test_a_true_gigabit_is_not_called_slow_though_such_ports_have_carried_two(folder):  # noqa: F811
    said = "\n".join(f"echo '{line}'" for line in paces(3.4))
    write_job(folder, last=50_000, train=["sh", "-c", f"{said}\nsleep 2; exit 3"], **V100)
    start(folder)
    wait_for_end(folder)
    assert events_of(folder, "alarm") == []


def alarms_of(folder):  # noqa: F811
    """Return what was raised and cleared, in its order."""
    lines = (folder / "progress.jsonl").read_text().splitlines()
    return [(one["event"], one["cause"]) for one in map(json.loads, lines) if one["event"] in ("alarm", "cleared")]


def test_a_disk_that_fills_up_raises_an_alarm_until_there_is_room_again(folder):  # noqa: F811
    low, room = ({**FACTS, "time": 0.0, "free_bytes": free} for free in (1 << 20, 1 << 40))
    (folder / "low.json").write_text(json.dumps(low))
    (folder / "room.json").write_text(json.dumps(room))
    alarmed, cleared = (once_told(folder, f'"event": "{kind}"') for kind in ("alarm", "cleared"))
    now_low, now_room = (f"mv {folder}/{state}.json {folder}/facts.json" for state in ("low", "room"))
    trains(folder, then=f"{now_low}; {alarmed}; {now_room}; {cleared}; exit 3")
    start(folder)
    wait_for_end(folder)
    assert alarms_of(folder) == [("alarm", "disk-low"), ("cleared", "disk-low")]


def test_a_watch_that_breaks_ends_the_run_instead_of_leaving_it_unwatched(folder):  # noqa: F811
    alarms = folder / "agent" / "health_rules.py"
    alarms.write_text(
        alarms.read_text().replace(
            "        lost = sorted(", "        raise KeyError('free_bytes')\n        lost = sorted("
        )
    )
    trains(folder, "*** Global step 10: ***     Train loss: 4.0 ")
    start(folder)
    outcome = wait_for_end(folder)
    assert (outcome.cause, outcome.reason) == (
        "supervisor-failed",
        "watching the run failed: KeyError('free_bytes')",
    )
    assert end_run(folder)["ended"] == 0


def fails_to_sample(folder, error, while_there):  # noqa: F811
    """Let asking the machines raise an error of the launcher itself for as long as a file is there."""
    raised = f"        if os.path.exists({str(while_there)!r}):\n            raise {error}\n"
    hurry(folder, "monitor.py", "    def _sample(self):\n", "    def _sample(self):\n" + raised)
    hurry(folder, "monitor.py", "import errno\n", "import errno\nimport os\n")


NO_MEMORY = "OSError(errno.ENOMEM, 'Cannot allocate memory')"


@pytest.mark.parametrize("error", [NO_MEMORY, 'RuntimeError("can\'t start new thread")'])
def test_a_launcher_that_has_no_memory_for_a_moment_goes_on_with_the_run(folder, error):  # noqa: F811
    (folder / "short").touch()
    fails_to_sample(folder, error, folder / "short")
    write_job(folder, train=["sh", "-c", f"sleep 1; rm {folder}/short; {once_sampled(folder)}; exit 3"])
    start(folder)
    assert wait_for_end(folder).cause == "training"
    assert events_of(folder, "alarm") == []


def once_sampled(folder):  # noqa: F811
    return once_told(folder, "").replace("progress.jsonl", "samples.jsonl").replace("grep -q ''", "grep -q sample")


def test_a_launcher_that_stays_without_memory_says_so_and_its_disk_is_not_blamed(folder):  # noqa: F811
    (folder / "short").touch()
    fails_to_sample(folder, NO_MEMORY, folder / "short")
    hurry(folder, "monitor.py", "PASSES_S = 120", "PASSES_S = 1")
    trains(folder)
    start(folder)
    outcome = wait_for_end(folder)
    assert outcome.cause == "supervisor-failed"
    assert "Cannot allocate memory" in outcome.reason
    assert end_run(folder)["ended"] == 0


@pytest.mark.parametrize("code", ["ENOSPC", "EDQUOT"])
def test_a_disk_that_takes_no_sample_ends_the_run_as_full(folder, code):  # noqa: F811
    (folder / "full").touch()
    fails_to_sample(folder, f"OSError(errno.{code}, 'no room')", folder / "full")
    trains(folder)
    start(folder)
    assert wait_for_end(folder).cause == "disk-full"


def test_gpus_at_rest_raise_an_alarm_and_the_run_goes_on(folder):  # noqa: F811
    alarms = folder / "agent" / "health_rules.py"
    alarms.write_text(alarms.read_text().replace("REST_S = 600.0", "REST_S = 1.0"))
    gpu = {"name": "P100", "memory_mib": 16280, "driver": "440.1", "utilisation": 0}
    trains(folder, "*** Global step 10: ***     Train loss: 4.0 ", then=f"{once_told(folder, 'gpus-at-rest')}; exit 3")
    (folder / "facts.json").write_text(json.dumps({**FACTS, "time": time.time(), "gpus": [gpu]}))
    start(folder)
    assert wait_for_end(folder).cause == "training"
    assert alarms_of(folder) == [("alarm", "gpus-at-rest")]
    assert events_of(folder, "alarm")[0]["text"] == "the GPUs of gpu-0 and gpu-1 did nothing for 1 s"
