"""Ranks under their monitor, as real processes; what goes wrong ends them with a cause and the lines that matter."""

import errno
import json
import threading
from types import SimpleNamespace

import pytest
import sample_spec
from supervised_run import FACTS, carry_out, end_run, events_of, shell_wait, write_job

from agent.supervise import health_rules
from agent.supervise import monitor as watching


@pytest.fixture
def clock(monkeypatch):
    """Return the monitor's clock as a list of one moment."""
    now = [0.0]
    monkeypatch.setattr(watching, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


@pytest.fixture
def monitor(run, clock):
    """Return a monitor that hears only what a test says."""
    return watching.Monitor(run())


def judged(monitor, *lines):
    for line in lines:
        monitor.observe(line)
    return monitor.judgement(ended=True)


@pytest.fixture
def trained(folder, ended):
    """Return what trains with a shell that prints lines."""

    def train(*lines, then="sleep 60", **job):
        printed = "\n".join(f"echo '{line}'" for line in lines)
        write_job(folder, train=["sh", "-c", f"{printed}\n{then}"], **job)
        return ended(lambda run: watching.train(run, run.spec.program.processes))

    return train


def test_a_loss_that_stays_nan_ends_ranks_in_any_output_stream(folder, trained):
    before = "head -c 3000000 /dev/zero; printf '\\377\\376\\r\\n'"
    lines = [f"[1,0]<stdout>:*** Global step {step}: ***     Train loss: nan " for step in (10, 11, 12)]
    found = trained(then=f"{before}; printf '%s\\r\\n' '{lines[0]}' '{lines[1]}' '{lines[2]}'; sleep 60")
    assert found == ("nan", "the train loss stays nan, at step 12", lines)
    assert (folder / "job.log").stat().st_size > 3_000_000
    assert end_run(folder)["ended"] == 0


def test_a_dead_rank_is_named_with_its_node_and_last_lines(monitor):
    cause, why, shown = judged(
        monitor,
        "[1,0]<stdout>:*** Global step 10: ***     Train loss: 4.0 ",
        *(f"[1,2]<stderr>:Traceback line {n}" for n in range(30)),
        *(f"[1,2]<stdout>:***     *****EVAL {kind}[0]:     a sentence" for kind in ("Source", "Target") * 20),
        "[1,2]<stderr>:",
        "[1,3]<stdout>:*** Building graph in Horovod rank: 3",
        "mpirun noticed that process rank 2 with PID 77 on node 10.0.0.1 exited on signal 9 (Killed).",
    )
    assert (cause, why) == ("rank-died", "rank 2 on gpu-1 ended with signal 9")
    assert len(shown) == 20
    assert shown[-1] == "[1,2]<stderr>:Traceback line 29", "samples and blank lines are left out"


def test_a_rank_number_outside_the_run_ends_it_without_a_crash(monitor):
    line = "mpirun noticed that process rank 77 with PID 1 on node elsewhere exited on signal 9 (Killed)."
    assert judged(monitor, line)[:2] == ("rank-died", "rank 77 on no machine of this run ended with signal 9")


def test_a_stall_names_the_rank_that_horovod_waits_for_and_its_machine(monitor, clock):
    step = "[1,0]<stdout>:*** Global step 10: ***     Train loss: 4.0 "
    assert judged(monitor, step, "[1,0]<stderr>:Missing ranks:", "[1,0]<stderr>:3: [HorovodAllreduce_x ...]") is None
    clock[0] += 901
    cause, why, _ = monitor.judgement()
    assert cause == "stalled"
    assert why.endswith("since step 10; the other ranks wait for rank 3 on gpu-1")


def test_a_silent_machine_lives_while_its_ranks_print_lines(monitor, clock):
    for second in range(200):
        clock[0] = float(second)
        monitor.rules.observe_sample("gpu-1", None, clock[0])
        monitor.observe("[1,2]<stdout>:batch of rank 2")
    assert monitor.judgement() is None
    for second in range(200, 300):
        clock[0] = float(second)
        monitor.observe("[1,0]<stdout>:batch of rank 0")
    assert monitor.judgement()[0] == "node-lost"


def test_a_resumed_run_counts_an_epochs_batches_from_where_it_was(run, clock, folder):
    events = [{"event": "metric", "name": "epoch", "step": step, "value": step // 10 * 1.0} for step in range(30)]
    (folder / "progress.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    options = {"reader": "pattern", "reader_options": {"pattern": r"epoch (?P<epoch>\d+) batch (?P<step>\d+)"}}
    write_job(folder, **options)
    monitor = watching.Monitor(run())
    monitor.observe("epoch 2 batch 3")
    assert monitor.rules.step == 22


def test_any_output_keeps_a_run_without_steps_alive(monitor, clock):
    for _ in range(2):
        clock[0] += 1700
        assert judged(monitor, "epoch") is None
    clock[0] += 1801
    assert monitor.judgement()[0] == "stalled"


def test_of_a_line_that_is_very_long_its_beginning_is_told(monitor):
    monitor.observe("x" * 1_000_000)
    assert monitor.lines() == ["x" * 1000]


def test_a_lost_machine_ends_the_run_and_the_other_machines_processes(folder, trained):
    found = trained("  Remote daemon: [[3,0],1] on node 10.0.0.1", end=["sh", "-c", f"touch {folder}/swept"])
    assert found[:2] == ("node-lost", "gpu-1 is lost to the other machines")
    assert (folder / "swept").exists()


@pytest.mark.parametrize("told", [True, False])
def test_ranks_that_others_told_to_end_have_not_finished(folder, trained, told):
    note = {"rank": 2, "t": 1.0, **({"told": 15} if told else {"signal": 9})}
    (folder / "ended-10.0.0.1").write_text(json.dumps(note) + "\n")
    why = "rank 2 on gpu-1 was told to end (signal 15), not by this run, and ended with exit code 0"
    assert trained(then="exit 0") == (("told-to-end", why, []) if told else None)


def test_what_the_run_itself_has_ended_is_not_blamed_on_somebody_else(folder, trained):
    (folder / "ended-10.0.0.1").write_text(json.dumps({"rank": 2, "t": 1.0, "told": 15}) + "\n")
    assert trained("what is this", then="exit 3")[:2] == ("training", "training ended with exit code 3")


def test_ranks_that_ended_over_a_silent_machine_name_the_machine(folder, trained):
    facts = f"sed s/10.0.0.0/$1/ {folder}/facts.json"
    way = f'[ -e {folder}/cut ] && exit 255; case $2 in *facts*) {facts} ;; *) eval "$2" ;; esac'
    then = f"touch {folder}/cut; exit 1"
    cause, why, shown = trained("connection reset", then=then, ssh=["sh", "-c", way, "ssh"], sample_every_s=900)
    assert (cause, why) == ("node-lost", "gpu-1 does not answer, and the ranks have ended")
    assert shown[-1] == "connection reset"


NOTES = {
    "ranks_ended.jsonl": [{"rank": 0, "exit_code": 1, "t": 20.5}],
    "ended-10.0.0.1": [{"rank": 2, "exit_code": 1, "t": 21}, {"rank": 3, "signal": 9, "t": 20.1}],
}
FIRST = "rank 3 on gpu-1 ended with signal 9"
SECOND = "rank 0 on gpu-0 ended with exit code 1"


@pytest.fixture
def crashed(folder, trained):
    """Return what trains until mpirun crashes over a dead rank, on machines whose clocks are off by so much."""

    def crash(**off):
        for name, words in NOTES.items():
            lines = ["what ssh says", *map(json.dumps, words), '{"rank": 1, "t']  # The last one was cut off.
            (folder / name).write_text("\n".join(lines))
        clocks = {name: {"clock_off_s": seconds, "clock_error_s": 0.1} for name, seconds in off.items()}
        (folder / "preflight.json").write_text(json.dumps({"nodes": clocks}))
        survivor = "sleep 60 >/dev/null 2>&1 &"
        return trained("[1,3]<stdout>:last words", "[1,0]<stdout>:more", then=f"{survivor} kill -SEGV $$")

    return crash


def test_a_crash_of_mpirun_names_the_first_dead_ranks_machine(folder, crashed):
    assert crashed(**{"gpu-0": 0.0, "gpu-1": 0.0}) == ("rank-died", FIRST, ["[1,3]<stdout>:last words"])
    assert end_run(folder)["ended"] == 0


def test_a_dead_rank_explains_the_lost_store_of_another_nodes_launcher(folder, trained):
    (folder / "ended-10.0.0.1").write_text(json.dumps({"rank": 2, "signal": 9, "t": 1.0}) + "\n")
    lost = "RendezvousConnectionError: The connection to the C10d store has failed."
    assert trained(lost, then="exit 1")[:2] == ("rank-died", "rank 2 on gpu-1 ended with signal 9")


def test_a_launcher_without_its_process_is_the_cause_without_dead_ranks(trained):
    assert trained("ORTE was unable to reliably start one or more daemons.", then="exit 1")[0] == "launcher-lost"


def test_the_first_dead_rank_is_found_by_the_preflights_clock_offsets(crashed):
    assert crashed(**{"gpu-0": 5.0, "gpu-1": 0.0}) == ("rank-died", SECOND, ["[1,0]<stdout>:more"])


@pytest.mark.parametrize("off", [{}, {"gpu-0": 0.0}, {"gpu-0": 0.0, "gpu-1": -0.35}])
def test_where_the_clocks_do_not_say_who_died_first_both_are_named(folder, crashed, off):
    cause, why, _ = crashed(**off)
    assert (cause, set(why.split("; at about the same time "))) == ("rank-died", {FIRST, SECOND})
    assert [event["text"] for event in events_of(folder, "rank-died")] == [why]


V100 = {"predicted_s": 1.75, "compute_s": 0.5927, "wire_bytes": 365285376, "per_hour": 13.0}


def paces(seconds):
    lines = (f"*** Global step {step}: ***     Train loss: 4.0 \ntime per step = 0:00:{seconds}" for step in range(7))
    return "\n".join(lines).splitlines()


def test_slower_steps_than_predicted_raise_a_priced_alarm_and_end_nothing(folder):
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


def test_a_full_disk_raises_an_alarm_until_there_is_room(folder, trained):
    low, room = ({**FACTS, "time": 0.0, "free_bytes": free} for free in (1 << 20, 1 << 40))
    (folder / "low.json").write_text(json.dumps(low))
    (folder / "room.json").write_text(json.dumps(room))
    alarmed, cleared = (shell_wait(folder, f'"event": "{kind}"') for kind in ("alarm", "cleared"))
    now_low, now_room = (f"mv {folder}/{state}.json {folder}/facts.json" for state in ("low", "room"))
    trained(then=f"{now_low}; {alarmed}; {now_room}; {cleared}; exit 3")
    told = [(one["event"], one["cause"]) for one in events_of(folder, "alarm", "cleared")]
    assert told == [("alarm", "disk-low"), ("cleared", "disk-low")]


def test_a_watch_that_breaks_ends_the_run_instead_of_leaving_it_unwatched(folder, trained, monkeypatch):
    def breaks(rules, now):
        raise KeyError("free_bytes")

    monkeypatch.setattr(health_rules.HealthRules, "_lost", breaks)
    found = trained("*** Global step 10: ***     Train loss: 4.0 ")
    assert found[:2] == ("supervisor-failed", "the supervisor failed: KeyError('free_bytes')")
    assert end_run(folder)["ended"] == 0


@pytest.fixture
def short_of(folder, monkeypatch):
    """Return what lets asking the machines raise an error of the launcher itself, for as long as a file is there."""

    def fails(error):
        def sampled(run, usual=watching.sampled):
            if (folder / "short").exists():
                raise error
            return usual(run)

        (folder / "short").touch()
        monkeypatch.setattr(watching, "sampled", sampled)

    return fails


NO_MEMORY = OSError(errno.ENOMEM, "Cannot allocate memory")


@pytest.mark.parametrize("error", [NO_MEMORY, RuntimeError("can't start new thread")])
def test_a_launcher_briefly_out_of_memory_goes_on_with_the_run(folder, trained, short_of, error):
    short_of(error)
    sampled = shell_wait(folder, "sample").replace("progress.jsonl", "samples.jsonl")
    assert trained(then=f"sleep 0.5; rm {folder}/short; {sampled}; exit 3")[0] == "training"
    assert events_of(folder, "alarm") == []


def test_a_launcher_out_of_memory_says_so_and_blames_no_disk(folder, trained, short_of, monkeypatch):
    short_of(NO_MEMORY)
    monkeypatch.setattr(watching, "PASSES_S", 0.5)
    cause, why, _ = trained()
    assert (cause, "Cannot allocate memory" in why) == ("supervisor-failed", True)
    assert end_run(folder)["ended"] == 0


@pytest.mark.parametrize(("code", "cause"), [(errno.ENOSPC, "disk-full"), (errno.EDQUOT, "quota-exceeded")])
def test_a_disk_that_takes_no_sample_ends_the_run_by_its_error(trained, short_of, code, cause):
    short_of(OSError(code, "no room"))
    assert trained()[0] == cause


def test_a_full_shared_memory_is_not_called_a_full_disk(monitor):
    said = "[1,2]<stderr>:gpu-1:9:9 [0] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device"
    cause, why, shown = judged(monitor, said, "  Process name: [[3,1],2]", "  Exit code:    1")
    assert (cause, why) == ("shared-memory-full", "no space is left in shared memory (/dev/shm)")
    assert shown == [said], "the lines of the rank that died"


NO_NAME = "socket.gaierror: [Errno -3] Temporary failure in name resolution"
TAKEN = "OSError: [Errno 98] Address already in use"


@pytest.mark.parametrize("caught", [NO_NAME, TAKEN, "CUDA out of memory: a smaller batch is tried"])
def test_a_signal_from_outside_is_no_error_that_was_caught(monitor, caught):
    killed = "mpirun noticed that process rank 2 with PID 77 on node 10.0.0.1 exited on signal 9 (Killed)."
    assert judged(monitor, f"[1,2]<stderr>:{caught}", killed)[0] == "rank-died"


def test_a_signal_that_only_the_machine_noted_is_no_caught_error(folder, trained):
    (folder / "ended-10.0.0.1").write_text(json.dumps({"rank": 2, "signal": 9, "t": 1.0}) + "\n")
    assert trained(NO_NAME, then="exit 1")[:2] == ("rank-died", "rank 2 on gpu-1 ended with signal 9")


def test_a_port_that_another_rank_retried_explains_no_death(monitor):
    died = ("  Process name: [[3,1],2]", "  Exit code:    1")
    assert judged(monitor, f"[1,0]<stderr>:{TAKEN}", *died)[0] == "rank-died"


@pytest.mark.parametrize(
    ("between", "cause"),
    [
        ("", "rank-died"),
        ("During handling of the above exception, another exception occurred:", "host-unknown"),
    ],
)
def test_an_error_that_was_caught_explains_only_the_one_that_it_causes(monitor, between, cause):
    words = (NO_NAME, between, "Traceback (most recent call last):", "ValueError: no such model")
    died = ("  Process name: [[3,1],2]", "  Exit code:    1")
    assert judged(monitor, *(f"[1,2]<stderr>:{word}" for word in words), *died)[0] == cause


def test_what_other_ranks_lose_does_not_hide_a_port_that_is_taken(trained):
    others = ("torch.distributed.DistNetworkError: failed to connect", "errors.ChildFailedError: ")
    assert trained(TAKEN, *others, then="exit 1")[0] == "port-taken"


def test_the_wait_for_a_hung_drive_after_the_ranks_has_an_end(monkeypatch):
    monkeypatch.setattr(watching, "DRIVE_ANSWERS_S", 0.1)
    watched = object.__new__(watching.Monitor)
    watched.run, watched.rules = (
        SimpleNamespace(spec=sample_spec.parsed(shared="/drive")),
        SimpleNamespace(not_copied=""),
    )
    watched.copying = threading.Thread(target=threading.Event().wait, daemon=True)
    watched.copying.start()
    watched.finish_copies()
    assert watched.rules.not_copied.startswith("the drive did not answer for 0.1 s after the end")
