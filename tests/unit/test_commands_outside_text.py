"""What a machine, a log or an account says reaches the terminal as plain text in every verb that shows it."""

import dataclasses
import io
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from command_samples import CLUSTER, COST, RUNNING
from rich.live import Live

from microcluster.analysis.run_state import Outcome
from microcluster.commands import command, holdings, logs, receipt, run_text, stack_outputs, status, watch
from microcluster.commands.holdings import Compared
from microcluster.commands.money import Bill
from microcluster.commands.screen import PlainConsole
from providers.rental.account import Resource
from providers.rental.owner_mark import Owner
from providers.rental.receipt import Charge
from providers.softlayer.guest_view import GUEST

NASTY = "[/b] old [/data] \x1b[2J\x1b]0;t\x07\x9b31m\u202eend"
SHOWN = "[/b] old [/data] end"
FORBIDDEN = set("\x1b\x9b\u202e\x07")
NOW = datetime(2026, 11, 22, tzinfo=UTC)


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
    monkeypatch.setattr(stack_outputs, "_outputs", lambda stack: {stack_outputs.pulumi.OUTPUT: CLUSTER.to_json()})
    monkeypatch.setattr(logs.LogEnd, "read", lambda self: f"step 1\r\n{NASTY}\n".encode())
    with pytest.raises(SystemExit):
        logs.logs(command.invoke.Context())
    assert capsys.readouterr().out == f"step 1\n{SHOWN}\n"


def test_status_shows_what_a_machine_said_as_it_is_written(monkeypatch, capsys):
    failed = Outcome("failed", "abcdef012345", reason=NASTY, last_lines=(NASTY,), cause="unknown")
    monkeypatch.setattr(status, "find_cluster", lambda stack: CLUSTER)
    monkeypatch.setattr(status.job, "observe", lambda launcher, cluster: failed)
    monkeypatch.setattr(status, "cost_of", lambda cluster: COST)
    with pytest.raises(SystemExit):
        status.status(command.invoke.Context())
    assert is_plain(capsys.readouterr().out)


def test_a_list_of_what_an_account_holds_shows_names_as_they_are_written(capsys):
    thing = Resource(GUEST, "101", NASTY, Owner("local", "1f3a9c42"), since=NOW, per_hour=Decimal(9), is_billed=True)
    holdings.show([thing], f"In the account of {NASTY}", {})
    said = capsys.readouterr().out
    assert said.count(SHOWN) == 2 and is_plain(said)


def test_a_receipt_shows_descriptions_as_they_are_written(capsys):
    class Somebody:
        account_id, username = "1", NASTY

    class Account:
        is_emulated = True

        def identity(self):
            return Somebody

    row = Charge("1", NASTY, NASTY, "", NOW, None, None, True, Decimal(4), Decimal(0), Decimal(8), "USD")
    receipt._print(Bill((row,), ()), Compared(), "1f3a9c42", Account(), "local")
    assert is_plain(capsys.readouterr().out)


def test_errors_that_quote_others_are_plain(capsys):
    def fails():
        raise command.CommandFailed(f"cancelling {NASTY}")

    with pytest.raises(SystemExit):
        command.command(fails)(command.invoke.Context())
    assert is_plain(capsys.readouterr().err)


def test_a_question_shows_names_as_they_are_written(monkeypatch):
    asked = []
    monkeypatch.setattr("builtins.input", lambda question: asked.append(question) or "no")
    assert not command.agrees(f"Cancel {NASTY}?")
    assert is_plain(asked[0])


def test_the_lines_of_a_failure_stay_one_each():
    told = run_text.trouble(Outcome("failed", reason="it ended", last_lines=("one\ntwo",)), "local")
    assert "  one two" in told
