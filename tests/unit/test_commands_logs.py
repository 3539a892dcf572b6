"""Following a log: nothing is lost and nothing comes twice, whatever happens to the connection."""

import subprocess
import sys

import pytest
from command_samples import CLUSTER

from microcluster.commands import logs
from microcluster.remote.errors import Completed, UnreachableError
from microcluster.setup.errors import CommandFailed


class Launcher:
    """Runs what is sent to it here; at the given looks the connection is lost."""

    def __init__(self, lost=()):
        self.looks, self.lost = 0, lost

    def run(self, argv, *, stdin="", **options):
        self.looks += 1
        if self.looks in self.lost:
            raise UnreachableError("connecting to gpu-0: lost.")
        done = subprocess.run([sys.executable, *argv[1:]], input=stdin, capture_output=True, text=True, check=True)
        return Completed(0, done.stdout, "")


@pytest.fixture
def log(tmp_path):
    return tmp_path / "job.log"


def end_of(log, lines=3, lost=()):
    return logs.LogEnd(Launcher(lost), str(log), lines)


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("".join(f"line {n}\n" for n in range(20000)), b"line 19997\nline 19998\nline 19999\n"),
        ("one\ntwo\n", b"one\ntwo\n"),
        ("", b""),
        (None, b""),
    ],
    ids=["long", "shorter", "empty", "none yet"],
)
def test_the_first_look_begins_with_the_last_lines_that_there_are(log, content, shown):
    if content is not None:
        log.write_text(content)
    assert end_of(log).read() == shown


def test_each_later_look_goes_on_at_its_byte(log):
    end = end_of(log)
    log.write_bytes(b"one\n")
    assert end.read() == b"one\n"
    with log.open("ab") as file:
        file.write("zw\N{LATIN SMALL LETTER O WITH DIAERESIS}lf".encode()[:3])
    assert end.read() == b"zw\xc3"


def test_a_log_that_is_another_one_is_read_from_its_beginning(log):
    end = end_of(log)
    log.write_text("a long line of the machine that is gone\n")
    end.read()
    log.write_text("new\n")
    assert end.read() == b"new\n"


def test_a_run_that_is_not_there_ends_the_following(log, monkeypatch):
    monkeypatch.setattr(logs.remote_job, "observe", lambda launcher, cluster: logs.remote_job.Outcome("absent"))
    with pytest.raises(CommandFailed, match="stack local has no run abcdef012345 on its launcher"):
        logs.print_until_ended(end_of(log), CLUSTER, sleep=lambda seconds: pytest.fail("it waits on"))


def test_lost_connections_lose_and_repeat_nothing(log, monkeypatch):
    wanted, states = [f"line {n}\n" for n in range(6)], iter(["running"] * 5 + ["finished"] * 9)
    waiting, written = list(wanted), []
    log.write_text(waiting.pop(0))

    def sleep(seconds):
        if waiting:
            with log.open("a") as file:
                file.write(waiting.pop(0))

    def state(launcher, cluster):
        return logs.remote_job.Outcome("running" if waiting else next(states))

    monkeypatch.setattr(logs.remote_job, "observe", state)
    logs.print_until_ended(end_of(log, lost=(2, 3, 6)), None, written.append, sleep)
    assert "".join(written) == "".join(wanted)


def test_of_a_line_that_was_drawn_again_only_what_it_showed_last_is_printed(capsys):
    logs._write("start\n\r1%\r2%\r3%\nnext\r\n\r10%\r11%\r")
    assert capsys.readouterr().out == "start\n3%\nnext\n11%\n"


def test_of_a_long_log_without_line_ends_the_end_is_shown(log):
    log.write_bytes(b"".join(b"%07d\r" % n for n in range(400_000)))
    text = end_of(log).read()
    assert len(text) == logs.CHUNK_BYTES
    assert text.endswith(b"0399999\r")
