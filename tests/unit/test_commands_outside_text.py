"""What a machine, a log or an account says reaches the terminal as plain text in every verb that shows it."""

import dataclasses
import io

import pytest
from command_samples import CLUSTER, COST, RUNNING
from rich.live import Live

from microcluster.analysis.run_state import Outcome
from microcluster.command_line import parts
from microcluster.commands import logs
from microcluster.display import run_text
from microcluster.display.console import PlainConsole
from microcluster.run import cluster as run_cluster
from microcluster.run import watch

NASTY = "[/b] old [/data] \x1b[2J\x1b]0;t\x07\x9b31m\u202eend"
SHOWN = "[/b] old [/data] end"
FORBIDDEN = set("\x1b\x9b\u202e\x07")


def is_plain(text: str) -> bool:
    return SHOWN in text and not FORBIDDEN & set(text)


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome("preparing", phase="staging", phase_s=1.0, doing=NASTY),
        dataclasses.replace(RUNNING, validation_loss=NASTY),
        Outcome("failed", reason=NASTY, last_lines=(NASTY,)),
    ],
)
def test_watch_shows_a_line_of_a_machine_as_it_is_written(outcome, capsys):
    out = io.StringIO()
    with Live(console=PlainConsole(file=out, width=200), auto_refresh=False) as live:
        screen = watch.LiveScreen(live)
        screen.show(outcome, COST)
        live.refresh()
        screen.note(f"alarm: {NASTY}")
    assert is_plain(out.getvalue())
    plain = watch.PlainScreen()
    plain.show(outcome, COST)
    plain.note(f"alarm: {NASTY}")
    watch.ended(outcome, "local")
    said = capsys.readouterr()
    assert is_plain(said.out) and not FORBIDDEN & set(said.err)


def test_logs_write_no_control_sequence_through(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(run_cluster, "_outputs", lambda stack: {run_cluster.pulumi.OUTPUT: CLUSTER.to_json()})
    monkeypatch.setattr(logs.LogEnd, "read", lambda self: f"step 1\r\n{NASTY}\n".encode())
    logs.logs.code()
    assert capsys.readouterr().out == f"step 1\n{SHOWN}\n"


def test_a_question_shows_names_as_they_are_written(monkeypatch):
    asked = []
    monkeypatch.setattr("builtins.input", lambda question: asked.append(question) or "no")
    assert not parts.agrees(f"Cancel {NASTY}?")
    assert is_plain(asked[0])


def test_the_lines_of_a_failure_stay_one_each():
    told = run_text.trouble(Outcome("failed", reason="it ended", last_lines=("one\ntwo",)), "local")
    assert "  one two" in told
