"""A run under its monitor, as real processes; what goes wrong ends it with a cause and the lines that matter."""

import json
import threading
from types import SimpleNamespace

import pytest
from supervised_run import FACTS, carry_out, end_run, events_of, hurry, shell_wait, trains, write_job

from agent.supervise import monitor


def test_a_loss_that_is_no_number_ends_the_ranks_at_once(folder):
    trains(folder, "[1,0]<stdout>:*** Global step 10: ***     Train loss: nan ")
    outcome = carry_out(folder)
    assert (outcome.state, outcome.cause) == ("failed", "nan")
    assert outcome.reason == "the train loss became nan at step 10"
    assert "Train loss: nan" in outcome.last_lines[-1]
    assert end_run(folder)["ended"] == 0


def test_a_rank_that_died_is_named_with_its_node_and_its_own_last_lines(folder):
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
    outcome = carry_out(folder)
    assert (outcome.cause, outcome.reason) == ("rank-died", "rank 2 on gpu-1 ended with signal 9")
    assert len(outcome.last_lines) == 20
    assert outcome.last_lines[-1] == "[1,2]<stderr>:Traceback line 29", "samples and blank lines are left out"


def test_a_stall_names_the_rank_that_horovod_waits_for_and_its_machine(folder):
    lines = (
        "[1,0]<stdout>:*** Global step 10: ***     Train loss: 4.0 ",
        "[1,0]<stderr>:Missing ranks:",
        "[1,0]<stderr>:3: [HorovodAllreduce_gradients ...]",
    )
    said = "; ".join(f"echo '{line}'" for line in lines)
    outcome = carry_out(folder, train=["sh", "-c", f"{said}; sleep 60"], stall_s=1)
    assert outcome.cause == "stalled"
    assert outcome.reason.endswith("since step 10; the other ranks wait for rank 3 on gpu-1")


def test_a_rank_that_the_run_does_not_have_ends_it_without_a_crash(folder):
    line = "mpirun noticed that process rank 77 with PID 1 on node elsewhere exited on signal 9 (Killed)."
    trains(folder, line, then="exit 137")
    outcome = carry_out(folder)
    assert (outcome.cause, outcome.reason) == ("rank-died", "rank 77 on no machine of this run ended with signal 9")


def test_a_stream_that_is_no_text_has_no_end_of_line_or_a_carriage_return_is_read_all_the_same(folder):
    before = "head -c 3000000 /dev/zero; printf '\\377\\376\\r\\n'"
    loss = "printf '[1,0]<stdout>:*** Global step 10: ***     Train loss: nan \\r\\n'"
    outcome = carry_out(folder, train=["sh", "-c", f"{before}; {loss}; sleep 60"])
    assert outcome.cause == "nan"
    assert outcome.last_lines == ("[1,0]<stdout>:*** Global step 10: ***     Train loss: nan ",)
    assert (folder / "job.log").stat().st_size > 3_000_000


def test_of_a_line_that_is_very_long_its_beginning_is_told(folder):
    outcome = carry_out(folder, train=["sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x; echo; exit 3"])
    assert max(map(len, outcome.last_lines)) == 1000


def test_a_machine_that_is_lost_ends_the_run_and_what_is_left_on_the_others_is_ended(folder):
    write_job(
        folder,
        train=["sh", "-c", "echo '  Remote daemon: [[3,0],1] on node 10.0.0.1'; sleep 60"],
        end=["touch", str(folder / "swept")],
    )
    outcome = carry_out(folder)
    assert (outcome.cause, outcome.reason) == ("node-lost", "gpu-1 is lost to the other machines")
    assert (folder / "swept").exists()


FULL = "[1,0]<stderr>:tensorflow.ResourceExhaustedError: /data/x; No space left on device"


@pytest.mark.parametrize(("code", "cause"), [(0, "incomplete"), (3, "disk-full")])
def test_a_rank_that_only_speaks_of_a_full_disk_goes_on_and_one_that_dies_of_it_is_explained(folder, code, cause):
    trains(folder, FULL, then=f"{once_sampled(folder)}; exit {code}")
    assert carry_out(folder).cause == cause


def test_any_output_keeps_a_run_without_steps_alive(folder):
    write_job(folder, train=["sh", "-c", "for n in $(seq 10); do echo epoch; sleep 0.5; done; exit 3"], stall_s=4)
    hurry(folder, "supervise/health_rules.py", "START_S = 1800.0", "START_S = 4.0")
    assert carry_out(folder).cause == "training"


def test_new_checkpoints_keep_a_run_alive_that_prints_nothing(folder):
    hurry(folder, "supervise/health_rules.py", "START_S = 1800.0", "START_S = 5.0")
    saves = f"for n in $(seq 12); do echo x > {folder}/new; mv {folder}/new {folder}/logdir/m-$n.npy; sleep 0.5; done"
    pattern = {"checkpoints": "file_formats", "checkpoint_options": {"pattern": r"m-(?P<step>\d+)\.npy"}}
    assert carry_out(folder, train=["sh", "-c", f"{saves}; exit 3"], stall_s=5, **pattern).cause == "training"


@pytest.mark.parametrize("told", [True, False])
def test_ranks_that_ended_well_because_somebody_else_told_them_to_have_not_finished(folder, told):
    note = {"rank": 2, "t": 1.0, **({"told": 15} if told else {"signal": 9})}
    (folder / "ended-10.0.0.1").write_text(json.dumps(note) + "\n")
    trains(folder, then="exit 0")
    outcome = carry_out(folder)
    why = "rank 2 on gpu-1 was told to end (signal 15), not by this run, and ended with exit code 0"
    assert ((outcome.cause, outcome.reason) == ("told-to-end", why)) is told


def test_what_the_run_itself_has_ended_is_not_blamed_on_somebody_else(folder):
    (folder / "ended-10.0.0.1").write_text(json.dumps({"rank": 2, "t": 1.0, "told": 15}) + "\n")
    trains(folder, "what is this", then="exit 3")
    outcome = carry_out(folder)
    assert (outcome.cause, outcome.reason) == ("training", "training ended with exit code 3")


def test_ranks_that_ended_because_a_machine_does_not_answer_any_more_name_the_machine(folder):
    facts = f"sed s/10.0.0.0/$1/ {folder}/facts.json"
    way = f'[ -e {folder}/cut ] && exit 255; case $2 in *facts*) {facts} ;; *) eval "$2" ;; esac'
    ended = f"echo connection reset; touch {folder}/cut; exit 1"
    outcome = carry_out(folder, train=["sh", "-c", ended], ssh=["sh", "-c", way, "ssh"], sample_every_s=900)
    assert (outcome.cause, outcome.reason) == ("node-lost", "gpu-1 does not answer, and the ranks have ended")
    assert outcome.last_lines[-1] == "connection reset"


@pytest.mark.parametrize("dead", [1, 3])
def test_when_mpirun_crashes_over_a_dead_rank_the_machine_of_the_first_one_names_it_whatever_its_number(folder, dead):
    notes = {
        "10.0.0.0": [{"rank": 0, "exit_code": 1, "t": 20.5}],
        "10.0.0.1": [{"rank": 2, "exit_code": 1, "t": 21}, {"rank": dead, "signal": 9, "t": 20.1}],
    }
    for address, words in notes.items():
        lines = ["what ssh says", *map(json.dumps, words), '{"rank": 1, "t']  # The last one was cut off.
        (folder / f"ended-{address}").write_text("\n".join(lines))
    survivor = "sleep 60 >/dev/null 2>&1 &"
    trains(folder, f"[1,{dead}]<stdout>:last words", then=f"{survivor} kill -SEGV $$")
    outcome = carry_out(folder)
    assert (outcome.cause, outcome.reason) == ("rank-died", f"rank {dead} on gpu-1 ended with signal 9")
    assert outcome.last_lines == (f"[1,{dead}]<stdout>:last words",)
    assert end_run(folder)["ended"] == 0


V100 = {"predicted_s": 1.75, "compute_s": 0.5927, "wire_bytes": 365285376, "per_hour": 13.0}


def paces(seconds):
    return "\n".join(
        f"*** Global step {step}: ***     Train loss: 4.0 \ntime per step = 0:00:{seconds}" for step in range(7)
    ).splitlines()


def test_steps_that_are_slower_than_predicted_are_an_alarm_with_what_they_cost_and_the_run_goes_on(folder):
    said = "\n".join(f"echo '{line}'" for line in paces(4.5))
    alarmed = shell_wait(folder, '"event": "alarm"')
    train = ["sh", "-c", f"{said}\n{alarmed}; exit 3"]
    assert carry_out(folder, last=50_000, train=train, **V100).cause == "training"
    (prediction,) = events_of(folder, "prediction")
    assert (prediction["seconds"], prediction["mbps"]) == (3.303, 941)
    (alarm,) = events_of(folder, "alarm")
    assert alarm["cause"] == "slow"
    assert alarm["text"].startswith("4.500 s per step instead of 3.303 predicted at 941 Mb/s")
    assert "$3.46 of every hour's $13.00 buy no steps" in alarm["text"]


def alarms_of(folder):
    """Return what was raised and cleared, in its order."""
    return [(one["event"], one["cause"]) for one in events_of(folder, "alarm", "cleared")]


def test_a_disk_that_fills_up_raises_an_alarm_until_there_is_room_again(folder):
    low, room = ({**FACTS, "time": 0.0, "free_bytes": free} for free in (1 << 20, 1 << 40))
    (folder / "low.json").write_text(json.dumps(low))
    (folder / "room.json").write_text(json.dumps(room))
    alarmed, cleared = (shell_wait(folder, f'"event": "{kind}"') for kind in ("alarm", "cleared"))
    now_low, now_room = (f"mv {folder}/{state}.json {folder}/facts.json" for state in ("low", "room"))
    trains(folder, then=f"{now_low}; {alarmed}; {now_room}; {cleared}; exit 3")
    carry_out(folder)
    assert alarms_of(folder) == [("alarm", "disk-low"), ("cleared", "disk-low")]


def test_a_watch_that_breaks_ends_the_run_instead_of_leaving_it_unwatched(folder):
    usual = "        lost = sorted("
    hurry(folder, "supervise/health_rules.py", usual, "        raise KeyError('free_bytes')\n" + usual)
    trains(folder, "*** Global step 10: ***     Train loss: 4.0 ")
    outcome = carry_out(folder)
    assert outcome.cause == "supervisor-failed"
    assert outcome.reason == "watching the run failed: KeyError('free_bytes')"
    assert end_run(folder)["ended"] == 0


def fails_to_sample(folder, error, while_there):
    """Let asking the machines raise an error of the launcher itself for as long as a file is there."""
    raised = f"        if os.path.exists({str(while_there)!r}):\n            raise {error}\n"
    hurry(folder, "supervise/monitor.py", "    def _sample(self):\n", "    def _sample(self):\n" + raised)
    hurry(folder, "supervise/monitor.py", "import errno\n", "import errno\nimport os\n")


NO_MEMORY = "OSError(errno.ENOMEM, 'Cannot allocate memory')"


@pytest.mark.parametrize("error", [NO_MEMORY, 'RuntimeError("can\'t start new thread")'])
def test_a_launcher_that_has_no_memory_for_a_moment_goes_on_with_the_run(folder, error):
    (folder / "short").touch()
    fails_to_sample(folder, error, folder / "short")
    outcome = carry_out(folder, train=["sh", "-c", f"sleep 1; rm {folder}/short; {once_sampled(folder)}; exit 3"])
    assert outcome.cause == "training"
    assert events_of(folder, "alarm") == []


def once_sampled(folder):
    return shell_wait(folder, "").replace("progress.jsonl", "samples.jsonl").replace("grep -q ''", "grep -q sample")


def test_a_launcher_that_stays_without_memory_says_so_and_its_disk_is_not_blamed(folder):
    (folder / "short").touch()
    fails_to_sample(folder, NO_MEMORY, folder / "short")
    hurry(folder, "supervise/monitor.py", "PASSES_S = 120", "PASSES_S = 1")
    trains(folder)
    outcome = carry_out(folder)
    assert outcome.cause == "supervisor-failed"
    assert "Cannot allocate memory" in outcome.reason
    assert end_run(folder)["ended"] == 0


@pytest.mark.parametrize("code", ["ENOSPC", "EDQUOT"])
def test_a_disk_that_takes_no_sample_ends_the_run_as_full(folder, code):
    (folder / "full").touch()
    fails_to_sample(folder, f"OSError(errno.{code}, 'no room')", folder / "full")
    trains(folder)
    assert carry_out(folder).cause == "disk-full"


def test_a_drive_that_hangs_when_the_ranks_have_ended_well_is_not_waited_for_without_end(monkeypatch):
    monkeypatch.setattr(monitor, "DRIVE_ANSWERS_S", 0.1)
    watched = object.__new__(monitor.Monitor)
    watched.run, watched.rules = SimpleNamespace(spec=SimpleNamespace(shared="/drive")), SimpleNamespace(not_copied="")
    watched.copying = threading.Thread(target=threading.Event().wait, daemon=True)
    watched.copying.start()
    watched.finish_copies()
    assert watched.rules.not_copied.startswith("the drive did not answer for 0.1 s after the end")
