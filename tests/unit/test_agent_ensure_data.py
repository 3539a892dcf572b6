"""How the supervisor has a run's data: its own, those of another machine, or made anew; where nothing moves it ends."""

import pytest
import sample_spec
from supervised_run import carry_out, end_run, events_of, hurry, start, wait_for_end, write_job

from agent.records import run_snapshot
from agent.supervise import ensure_data
from microcluster.analysis.run_state import judge
from microcluster.core.polling import wait_until

DATA = """
here={folder}/here; there={folder}/there
case $1 in
whole) {own}; [ "$(cat $here 2>/dev/null)" = good ] ;;
has) echo asked >> {folder}/asked; {trouble}; [ -f $there ] ;;
bring) {way} && cat $there > $here; [ ! -f {folder}/mend ] || echo good > $there ;;
esac
"""


def with_data(folder, stage="exit 9", own=":", trouble=":", way=":", **changes):
    """Give the run hosts of which files tell what they have; ``stage`` is a script that makes them.

    ``own`` comes before this machine's answer, ``trouble`` before another one's, ``way`` before its data.
    """
    script = folder / "data-of-test.sh"
    script.write_text(DATA.format(folder=folder, own=own, trouble=trouble, way=way))
    docker = folder.parents[1] / "bin" / "docker"
    removed = f"[ $1 != ps ] || {{ echo removed >> {folder}/stagings; exit; }}"
    docker.write_text(docker.read_text().replace("#!/bin/sh\n", f"#!/bin/sh\n{removed}\n"))
    write_job(folder, data=["sh", str(script)], stage=["sh", "-c", f"cd {folder}; {stage}"], **changes)


def staging_texts(folder):
    return [event["text"] for event in events_of(folder, "staging")]


def test_data_that_are_whole_are_used_as_they_are_and_nobody_is_asked(folder, run):
    with_data(folder)
    (folder / "here").write_text("good")
    ensure_data.ensure(run())
    assert not (folder / "asked").exists()


def test_a_launcher_takes_the_data_of_a_machine_that_has_them_though_it_refuses_once_and_bytes_change(folder, run):
    with_data(folder, trouble=f"[ $(wc -l < {folder}/asked) -gt 2 ] || exit 255")
    (folder / "there").write_text("bad")
    (folder / "mend").touch()
    ensure_data.ensure(run())
    begun = "bringing the data from gpu-1, which has them whole"
    over = ["the data of gpu-1 arrived with other bytes", "the data of gpu-1 are here"]
    assert staging_texts(folder) == [begun, over[0], begun, over[1]]
    assert f"staging: {over[1]}\n" in (folder / "job.log").read_text()


def test_data_that_never_arrive_whole_are_made_anew(folder, run):
    with_data(folder, stage="echo 'staging: cleaning: 5 pairs in 0 s'; echo good > here")
    (folder / "there").write_text("bad")
    ensure_data.ensure(run())
    assert staging_texts(folder)[-2:] == ["no machine has the data; making them", "cleaning: 5 pairs in 0 s"]
    assert (folder / "stagings").read_text().split() == ["removed", "removed"]


def test_in_a_folder_that_all_nodes_see_no_other_node_is_asked(folder, run):
    with_data(folder, stage="echo good > here", shared=str(folder / "logdir"))
    ensure_data.ensure(run())
    assert not (folder / "asked").exists()


DOING = {"own": "comparing the data of gpu-0 with their sums", "trouble": "asking gpu-1 for the data"}
DOING["way"] = "bringing the data from gpu-1"


@pytest.mark.parametrize(
    ("where", "does", "said"),
    [
        ("own", "echo OCI runtime exec failed; exit 126", "126: OCI runtime exec failed"),
        ("trouble", "echo ssh: Connection refused >&2; exit 255", "255: ssh: Connection refused"),
        ("way", "{ echo ssh: Broken pipe; exit 255; }", "255: ssh: Broken pipe"),
    ],
)
def test_data_of_which_nobody_can_say_whether_they_are_there_are_not_made_anew(folder, ended, where, does, said):
    with_data(folder, **{where: does})
    (folder / "there").write_text("good")
    assert ended(ensure_data.ensure)[:2] == ("preparing", f"{DOING[where]} ended with exit code {said}")
    assert not (folder / "stagings").exists()


def test_the_reason_of_a_refused_staging_is_the_reason_of_the_failed_run(folder):
    with_data(folder, stage="echo 'staging: checking the data: 5 and 4 lines, which do not pair'; exit 1")
    outcome = carry_out(folder)
    assert (outcome.state, outcome.cause) == ("failed", "preparing")
    assert outcome.reason.endswith("exit code 1: checking the data: 5 and 4 lines, which do not pair")
    assert "checking the data" in (folder / "job.log").read_text()


def test_data_that_were_made_and_are_not_whole_fail_the_run(folder, ended):
    with_data(folder, stage="true")
    assert "comparing the data that were made with their sums" in ended(ensure_data.ensure)[1]


def test_how_large_the_data_are_is_recorded_once(folder, run):
    data = folder / "data"
    data.mkdir()
    (data / "train.en").write_text("one\ntwo\n")
    (data / "archive").write_bytes(bytes(3 << 20))
    (data / "SHA256SUMS").write_text(f"{'0' * 64}  train.en\n")
    write_job(folder, data=["true"])
    sample_spec.change(folder, data=str(data))
    ensure_data.measure(run())
    ensure_data.measure(run())
    [event] = events_of(folder, "data")
    size, row = event["text"].split("\n")
    assert (size, row.split()) == ("4\t.", ["2", "8", "train.en"]), "the whole folder, and the lines of the data set"


def test_data_that_cannot_be_measured_keep_no_run_from_training(folder, run):
    sample_spec.change(folder, data=str(folder / "gone"))
    ensure_data.measure(run())
    assert events_of(folder, "data") == []


def test_what_is_being_done_shows_while_the_data_are_prepared(folder):
    text = "fetching a.tgz: 12 of 658 MB, 20 s so far"
    with_data(folder, stage=f"echo 'staging: {text}'; while [ ! -f go ]; do sleep 0.05; done; echo good > here")
    start(folder)
    wait_until("the staging", lambda: text in (folder / "progress.jsonl").read_text(), timeout_s=120, every_s=0.05)
    seen = judge(run_snapshot.observe(str(folder)))
    assert (seen.state, seen.doing) == ("preparing", text)
    (folder / "go").touch()
    ended_as = wait_for_end(folder)
    assert (ended_as.state, ended_as.doing) == ("finished", None)


SLEEPS = ["sh", "-c", "exec sleep 60"]


def impatient(folder, idle_s=2):
    hurry(folder, "supervise/prepare.py", "IDLE_S = 900", f"IDLE_S = {idle_s}")
    hurry(folder, "supervise/prepare.py", "LOOK_EVERY_S = 15", "LOOK_EVERY_S = 0.2")
    hurry(folder, "supervise/prepare.py", "PROBE_TIMEOUT_S = 30", "PROBE_TIMEOUT_S = 2")


@pytest.mark.parametrize(
    ("step", "doing"),
    [
        ({"spread": SLEEPS}, "bringing the data to gpu-1"),
        ({"data": ["sh", "-c", "[ $0 = has ] && exec sleep 60; false"]}, "asking gpu-1 for the data"),
    ],
)
def test_a_preparation_in_which_nothing_moves_ends_with_the_step_and_the_node(folder, step, doing):
    impatient(folder)
    # It is this machine, where the supervisor itself reads: gpu-1 says nothing of its processes.
    way = 'case $2 in *conv=fsync*) exec sleep 60 ;; *run_usage*) exit 255 ;; *) eval "$2" ;; esac'
    outcome = carry_out(folder, ssh=["sh", "-c", way, "ssh"], **step)
    assert (outcome.state, outcome.cause) == ("failed", "preparing-stalled")
    assert outcome.reason == f"{doing}: nothing was read, written or computed for 2 s; no write ends on gpu-1"
    assert end_run(folder)["ended"] == 0


def test_a_preparation_that_is_slow_but_moves_is_left_alone(folder):
    impatient(folder, idle_s=4)
    moves = "for n in 1 2 3 4 5 6; do head -c 2000000 /dev/zero > /dev/null; sleep 1; done"
    assert carry_out(folder, spread=["sh", "-c", moves]).state == "finished"
