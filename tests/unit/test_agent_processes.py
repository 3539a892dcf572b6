"""The processes of a run as real ones; ssh is a script that runs its words here."""

import sys
import time

import pytest
from sample_spec import process
from supervised_run import end_run, events_of, shell_wait, write_job

from agent.run import document
from agent.run.context import Run
from agent.supervise import health_rules, monitor, output_lines, processes
from microcluster.jobs.ranks import MEETING_PORT

STEP = "echo '*** Global step 3: ***     Train loss: 3.5 '"


@pytest.fixture
def trained(folder, ended):
    """Return what trains with processes."""

    def train(*processes, **job):
        write_job(folder, processes=list(processes), **job)
        return ended(lambda run: monitor.train(run, run.spec.program.processes))

    return train


def test_processes_start_by_their_order_on_their_nodes_with_their_environment(folder, trained):
    place = f'echo "$ROLE $MICROCLUSTER_RUN" >> {folder}/begun; {STEP}'
    word = {"environment": {"ROLE": "worker"}, "order": 1}
    first = process("sh", "-c", place.replace(STEP, "sleep 1"), role="scheduler", environment={"ROLE": "scheduler"})
    second = process("sh", "-c", f"sleep 0.5; {place}", role="worker", node=1, **word)
    assert trained(second, first) is None
    begun = (folder / "begun").read_text().splitlines()
    assert begun == [f"scheduler {folder.name}", f"worker {folder.name}"]
    assert "Global step 3" in (folder / "job.log").read_text()


def test_all_processes_get_one_free_port_and_a_programs_own_braces_stay(folder, trained):
    say = f'echo "$0 $1 $MEETING" >> {folder}/said'
    words = ("sh", "-c", say, "{step}-{checkpoint}", f"{document.STEP}-{document.PORT}")
    both = [process(*words, node=node, environment={"MEETING": document.PORT}) for node in (0, 1)]
    assert trained(*both, meeting_port=MEETING_PORT) is None
    (said,) = set((folder / "said").read_text().splitlines())
    own, ours, port = said.split()
    assert (own, ours) == ("{step}-{checkpoint}", f"0-{port}")
    assert MEETING_PORT <= int(port) < 32768


def test_all_processes_meet_at_the_port_that_was_free_first(folder, trained, monkeypatch):
    ports = iter((20001, 20002, 20003))
    monkeypatch.setattr(Run, "free_port", lambda run: next(ports))
    both = [process("sh", "-c", f'echo "$0" >> {folder}/said', document.PORT, node=node) for node in (0, 1)]
    assert trained(*both, meeting_port=MEETING_PORT) is None
    assert set((folder / "said").read_text().split()) == {"20001"}


def test_a_process_with_a_name_is_named_in_each_of_its_lines_and_when_it_dies(folder, trained):
    wrapper = [sys.executable, str(folder / "agent"), "launch.rank_wrapper", str(folder / "ended-10.0.0.1")]
    waits = process("sh", "-c", "echo hello; exec sleep 300", role="worker", name="worker 0")
    dies = process(*wrapper, "sh", "-c", "sleep 1; kill -9 $$", role="server", name="server 1", node=1)
    assert trained(waits, dies)[:2] == ("rank-died", "server 1 on gpu-1 ended with signal 9")
    assert "[worker 0] hello" in (folder / "job.log").read_text().splitlines()
    assert end_run(folder)["ended"] == 0


def test_a_process_that_does_not_matter_is_ended_when_those_that_matter_have_ended(folder, trained):
    waits = process("sh", "-c", "exec sleep 300", role="server", ends_run=False)
    workers = [process("sh", "-c", f"sleep {n}; echo {n} >> {folder}/over", node=n, role="worker") for n in (0, 1)]
    began = time.monotonic()
    assert trained(waits, *workers) is None
    assert time.monotonic() - began < 250
    over = (folder / "over").read_text().splitlines()
    assert sorted(over) == ["0", "1"], "the first that ends well does not end the run"
    assert end_run(folder)["ended"] == 0


BAR = r"Epoch (?P<step>\d+) on rank 0:.*loss=(?P<loss>nan|[\d.]+)"
DRAW = """
import sys, time
def draw(text): sys.stdout.write("\\r" + text); sys.stdout.flush(); time.sleep(0.01)
"""
EPOCHS = """
for epoch, end in ((0, 6.0), (1, 3.0)):
    for n in range(1, 51):
        draw("Epoch {} on rank 1: {}/50, loss=0.5".format(epoch, n))
        draw("Epoch {} on rank 0: {}/50, loss={:.3f}".format(epoch, n, end + (50 - n) / 10))
    print()
"""


@pytest.fixture
def draws(folder, trained):
    """Return what lets one process draw a progress bar."""

    def drawn(program):
        (folder / "draw.py").write_text(DRAW + program)
        reader = {"reader": "pattern", "reader_options": {"pattern": BAR}}
        return trained(process(sys.executable, str(folder / "draw.py")), **reader)

    return drawn


def test_of_a_progress_bar_the_end_of_each_epoch_is_known_and_only_a_state_a_second_is_kept(folder, draws):
    draws(EPOCHS)
    losses = [(event["step"], event["loss"]) for event in events_of(folder, "train")]
    assert {(0, 6.0), (1, 3.0)} < set(losses)
    assert losses[-1] == (1, 3.0)
    log = (folder / "job.log").read_bytes()
    # A hundred were drawn in each of two epochs, and the machine may be slow.
    assert len(losses) < 50
    assert log.count(b"\r") < 50
    assert log.count(b"50/50, loss=6.000\n") == 1


def test_a_progress_bar_whose_loss_stays_nan_ends_the_run_though_it_goes_on_drawing(draws, monkeypatch):
    monkeypatch.setattr(health_rules, "NAN_S", 0.5)
    found = draws("for _ in range(10000): draw('Epoch 2 on rank 0: 1/100, loss=nan')\n")
    assert found[:2] == ("nan", "the train loss stays nan, at step 2")


def test_what_a_progress_bar_shows_while_nothing_moves_is_seen(folder, draws):
    waits = shell_wait(folder, '"step": 7') + f"; cp {folder}/progress.jsonl {folder}/seen"
    draws(f"draw('Epoch 7 on rank 0: 1/2, loss=1.5')\nimport os; os.system({waits!r})\n")
    assert '"step": 7' in (folder / "seen").read_text()


def pieces(*given):
    lines = output_lines.Lines()
    return [line for one in given for line in (lines.take(one) if one else lines.waiting())]


def test_output_is_split_where_a_line_ends_or_is_drawn_again_wherever_it_is_cut():
    assert pieces(b"one\ntw", b"o\r", b"\nthree\r\n") == [b"one\n", b"two\r\n", b"three\r\n"]
    assert pieces(b"\r10%\r2", b"0%\r30%\n") == [b"10%\r", b"20%\r", b"30%\n"]
    assert pieces(b"1%\r", b"", b"2%\r", b"", b"") == [b"1%\r", b"1%\r", b"2%\r"]
    assert pieces(b"no line yet", b"", b".\n") == [b"no line yet.\n"]


def test_a_process_that_leaves_a_helper_behind_with_its_output_ends_when_it_ends_itself(folder, trained, monkeypatch):
    monkeypatch.setattr(output_lines, "LEFT_OPEN_S", 0.5)
    began = time.monotonic()
    assert trained(process("sh", "-c", f"{STEP}; sleep 300 & exit 0")) is None
    assert time.monotonic() - began < 120
    assert end_run(folder)["ended"] == 0


@pytest.mark.parametrize("shared", [True, False])
def test_a_node_that_ends_its_processes_does_not_mark_the_one_folder_of_the_run_as_stopped(folder, run, shared):
    write_job(folder, shared=f"{folder}/logdir" if shared else None)
    opened, asked = run(), []
    opened.ask = lambda argv, *rest, **options: asked.append(argv) or (0, '{"left": []}')
    assert processes.end_on(opened, "10.0.0.1") == ""
    assert asked[0][3:] == ["-" if shared else str(folder.parent), "only", folder.name, "", ""]
