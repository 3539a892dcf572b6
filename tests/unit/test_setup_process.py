"""Programs that set-up runs: their logs, their limits, who gets a Ctrl-C, and what a person sees meanwhile."""

import os
import re
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from microcluster.core.polling import wait_until
from microcluster.setup import process, progress
from microcluster.setup.errors import CommandFailed
from microcluster.setup.process import STOPPED_BY_LIMIT, Step, run_beside, run_in_view, run_logged
from microcluster.setup.progress import Stages, moment, shown

COUNTING = """
import signal, sys, time
got = []
signal.signal(signal.SIGINT, lambda *_: got.append(1))
open(sys.argv[1], "w").write("ready")
end = time.monotonic() + 60
while not got and time.monotonic() < end:
    time.sleep(0.05)
time.sleep(0.5)
open(sys.argv[1], "w").write(str(len(got)))
"""


def step(folder: Path, script: str, limit_s: float = 30) -> Step:
    return Step("trying it", "1 s", ("sh", "-c", script), folder / "step.log", "Do this next.", limit_s)


def test_a_failed_program_is_a_sentence_with_log_end_and_next_step(tmp_path: Path, capfd) -> None:
    with pytest.raises(CommandFailed) as failed:
        run_logged(step(tmp_path, "seq 40; echo no space left >&2; exit 3"), os.environ)
    message = str(failed.value)
    assert "trying it: sh failed (exit code 3)" in message
    assert "| no space left" in message and "| 20\n" not in message
    assert str(tmp_path / "step.log") in message and message.endswith("Do this next.")
    assert "no space left" not in capfd.readouterr().out, "what it says goes to its log"
    missing = Step("starting it", "1 s", ("/no/such/program",), tmp_path / "log", "Install it.")
    with pytest.raises(CommandFailed, match="running /no/such/program: No such file.*make setup"):
        run_logged(missing, os.environ)


def test_a_program_past_its_time_is_stopped_with_its_children(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(process, "GRACE_S", 0.5)  # Where SIGINT is ignored here, it is in the shell too.
    pid_file = tmp_path / "pid"
    with pytest.raises(CommandFailed, match="not over after 3 s"):
        run_logged(step(tmp_path, f"sleep 600 & echo $! > {pid_file}; wait", limit_s=3), os.environ)
    child = int(pid_file.read_text())
    wait_until("the end of the child", lambda: not _lives(child), timeout_s=60, every_s=0.1)
    assert run_in_view(("sleep", "60"), os.environ, limit_s=0.2) == STOPPED_BY_LIMIT


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] != "Z"
    except FileNotFoundError:
        return False


def test_ctrl_c_reaches_the_visible_program_once_and_waits_for_it(tmp_path: Path) -> None:
    counted = tmp_path / "count"
    threading.Thread(target=_interrupt_when_ready, args=(counted,)).start()
    with pytest.raises(KeyboardInterrupt):
        run_in_view((sys.executable, "-c", COUNTING, str(counted)), os.environ)
    assert counted.read_text() == "1"


def _interrupt_when_ready(file: Path) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end and not file.exists():
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGINT)


def test_a_ctrl_c_while_the_program_is_being_started_reaches_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    start, started = process.subprocess.Popen, []

    def pressed_meanwhile(*words: object, **options: object) -> object:
        started.append(start(*words, **options))
        signal.raise_signal(signal.SIGINT)
        return started[0]

    monkeypatch.setattr(process.subprocess, "Popen", pressed_meanwhile)
    with pytest.raises(KeyboardInterrupt):
        run_in_view(("sleep", "60"), os.environ)
    try:
        assert started[0].poll() == -signal.SIGINT
    finally:
        started[0].kill()


@pytest.mark.parametrize("closed", [False, True], ids=["the reader has gone", "the terminal was closed"])
def test_a_program_whose_output_cannot_be_shown_is_interrupted_and_waited_for(tmp_path: Path, closed: bool) -> None:
    def broken(line: str) -> list[str]:
        if closed:
            signal.raise_signal(signal.SIGHUP)
            time.sleep(0.2)  # One signal at a time is counted.
        raise BrokenPipeError

    counted = tmp_path / "count"
    script = COUNTING.replace('open(sys.argv[1], "w").write("ready")', 'print("a line", flush=True)')
    with pytest.raises(BrokenPipeError):
        run_in_view((sys.executable, "-c", script, str(counted)), os.environ, lines_of=broken)
    assert counted.read_text() == "1"


MEETING = """cd {folder}; touch {name}
for try in $(seq 600); do [ -e engine ] && [ -e images ] && break; sleep 0.1; done
[ -e engine ] && [ -e images ] && echo "    it has met the other"
"""
"""Script of a command that succeeds only while the other one runs."""
LASTING = "cd {folder}; trap 'sleep 0.2; touch {name}.ended; exit' TERM; touch {name}; sleep 60 & wait"
"""Script of a command that takes some time to end when it has to."""


def beside(folder: Path, engine: str, images: str) -> None:
    """Run two scripts beside each other."""
    scripts = {"engine": engine, "images": images}
    argvs = {name: ("sh", "-c", text.format(folder=folder, name=name)) for name, text in scripts.items()}
    run_beside(argvs, os.environ, "Do this next.")


def test_commands_beside_each_other_show_their_lines_by_name(tmp_path: Path, capsys) -> None:
    beside(tmp_path, MEETING, MEETING)
    said = capsys.readouterr().out.splitlines()
    assert sorted(said) == ["engine |     it has met the other", "images |     it has met the other"]


@pytest.mark.parametrize(("fails", "other"), [("engine", "images"), ("images", "engine")])
def test_a_command_that_fails_ends_the_one_beside_it(tmp_path: Path, capsys, fails: str, other: str) -> None:
    scripts = {other: LASTING, fails: f"{MEETING} echo no space left >&2; exit 3"}
    with pytest.raises(CommandFailed) as failed:
        beside(tmp_path, **scripts)
    assert f"{fails} | no space left\n" in capsys.readouterr().out
    said = f"Preparing the {fails} failed (exit code 3), for the reason above; preparing the {other} was stopped."
    assert str(failed.value) == f"{said} Do this next."
    assert (tmp_path / f"{other}.ended").exists()


def test_a_failure_after_the_other_has_succeeded_stops_nothing(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="Preparing the images failed .exit code 1., for the reason above. Do this"):
        beside(
            tmp_path, "echo $$ > {folder}/pid", "sleep 0.1; cd {folder}; while kill -0 $(cat pid); do :; done; exit 1"
        )


def test_ctrl_c_ends_all_commands_beside_each_other(tmp_path: Path) -> None:
    def press() -> None:
        wait_until("both", lambda: (tmp_path / "images").exists() and (tmp_path / "engine").exists(), timeout_s=60)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()
    with pytest.raises(KeyboardInterrupt):
        beside(tmp_path, LASTING, LASTING)
    assert (tmp_path / "engine.ended").exists() and (tmp_path / "images.ended").exists()


def test_a_long_step_shows_its_usual_time_and_the_time_so_far(monkeypatch, capsys):
    with shown("creating stack local", "2 s"):
        pass
    assert capsys.readouterr().out == "", "of a quick one nothing"
    monkeypatch.setattr(progress, "QUICK_S", 0.01)
    monkeypatch.setattr(progress, "REPEAT_S", 0.2)
    with shown("building pulumi", "4 min"):
        time.sleep(0.5)
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "    building pulumi (usually 4 min)"
    assert re.fullmatch(r"    building pulumi: \d+ s so far \(usually 4 min\)", said[1])
    assert re.fullmatch(r"    building pulumi: done after \d+ s", said[-1])


@pytest.mark.parametrize(("error", "how"), [(ValueError, "failed"), (KeyboardInterrupt, "interrupted")])
def test_a_step_that_did_not_end_well_says_so_at_once(error, how, capsys):
    with pytest.raises(error), shown("creating stack local", "2 s"):
        raise error
    assert capsys.readouterr().out.startswith(f"    creating stack local: {how} after ")


def test_the_summary_names_a_stage_that_failed_too() -> None:
    stages = Stages()
    with stages.stage("engine", "first"):
        pass
    with pytest.raises(RuntimeError), stages.stage("images", "second"):
        raise RuntimeError
    assert re.fullmatch(r"engine \d+ s, images \d+ s", stages.summary())


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("2026-11-21T14:40:08.123456789+01:00", "2026-11-21 13:40:08 UTC"),
        ("2026-11-21T13:40:08Z", "2026-11-21 13:40:08 UTC"),
        ("2026-11-21T13:40:08", "2026-11-21T13:40:08"),
        ("an unknown time", "an unknown time"),
    ],
)
def test_a_time_that_a_program_wrote_is_shown_in_utc(written: str, shown: str) -> None:
    assert moment(written) == shown
