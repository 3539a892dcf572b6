"""Text from outside reaches a screen, a log or a page without control characters, and is never taken for markup."""

import ast
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

from microcluster.accounts.shared.errors import ProviderError
from microcluster.accounts.shared.plugin_servicer import EngineLog
from microcluster.accounts.shared.redaction import redacted
from microcluster.accounts.softlayer.errors import ApiError
from microcluster.command_line import parts
from microcluster.core.plain_text import count, duration, lines, one_line, say
from microcluster.display.console import PlainConsole, show_table
from microcluster.jobs import rendering

ROOT = Path(__file__).parents[2]
NASTY = "old [/data] of run 7 \x1b[2J\x1b]0;title\x07\x9b31m\u202e\u2066\u200f\x7f\x00 :skull: \udc80end"
CLEAN = "old [/data] of run 7  :skull: \ufffdend"
PRINTERS = {"print", "Console", "Table"}
MAY_PRINT = {
    "microcluster/core/plain_text.py",
    "microcluster/display/console.py",
    "microcluster/command_line/parts.py",
}
"""``microcluster/command_line/parts.py`` prints JSON, whose own escapes stand for every control character."""


@pytest.mark.parametrize(
    "character",
    [*map(chr, {*range(0x20), *range(0x7F, 0xA0)} - {0x9, 0xA, 0xD}), *"\u061c\u200e\u200f\u2028\u2029\ud800\udfff"]
    + [*map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A)))],
)
def test_no_control_character_is_left(character: str) -> None:
    assert character not in lines(f"before{character}after")


@pytest.mark.parametrize(
    "sequence",
    ["\x1b[31m", "\x1b[2J", "\x1b]0;title\x07", "\x1b]8;;https://a.test\x1b\\", "\x1bPq\x1b\\", "\x1bc", "\x9b1;1H"],
)
def test_a_control_sequence_of_a_terminal_goes_whole(sequence: str) -> None:
    assert lines(f"a{sequence}b") == "ab"


def test_lines_tabs_and_letters_of_any_language_stay_in_text_of_lines() -> None:
    assert lines("a\tb\r\nc\rd\n") == "a\tb\nc\nd\n"
    assert one_line("a\tb\r\nc\rd") == "a b c d"
    assert "the error" in lines("\x1b]0;the error\nand more"), "a sequence that never ends hides no text"
    text = "Zürich, Ελλάδα, 東京, עברית, 👩\u200d🔬"
    assert lines(text) == text


def test_say_prints_plain_text_and_flushes_for_those_who_read_a_pipe() -> None:
    class Pipe(io.StringIO):
        flushed = False

        def flush(self) -> None:
            self.flushed = True

    pipe = Pipe()
    say(NASTY, pipe)
    assert pipe.getvalue() == CLEAN + "\n"
    assert pipe.flushed


@pytest.mark.parametrize("piece", [NASTY, Text(NASTY)])
def test_the_console_takes_nothing_for_markup_wherever_it_stands(piece: str | Text) -> None:
    out = io.StringIO()
    table = Table(title=NASTY)
    table.add_column(NASTY)
    table.add_row(piece)
    console = PlainConsole(file=out, width=120)
    console.print(table)
    console.print(piece)
    assert out.getvalue().count("old [/data] of run 7") == 4
    assert "\x1b" not in out.getvalue() and "\u202e" not in out.getvalue()


def test_a_cell_is_one_line_and_json_shows_no_control_character(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_table(["name"], [["one\ntwo [/b]"]], "[/t]")
    shown = capsys.readouterr().out
    assert "one two [/b]" in shown and "[/t]" in shown
    parts.print_json({NASTY: NASTY})
    assert capsys.readouterr().out.rstrip("\n").replace("\n", "").isprintable()


def test_a_page_shows_what_others_wrote_as_text(tmp_path: Path) -> None:
    page = rendering.environment(escaped=True).from_string("{{ a }}{{ b | safe }}")
    assert page.render(a=f"<b>{NASTY}", b="<svg>\x1b[2J</svg>") == f"&lt;b&gt;{CLEAN}<svg></svg>"


def test_errors_of_the_account_are_plain_before_the_engine_prints_them() -> None:
    assert str(ProviderError(NASTY)) == CLEAN
    assert str(ApiError("calling it", NASTY, NASTY)) == f"calling it: {CLEAN} ({CLEAN})"
    assert redacted(f"{NASTY} 0123456789\x99abcdef", "0123456789abcdef") == f"{CLEAN} (secret)"


def test_the_engines_log_gets_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = []

    class Stub:
        def __init__(self, channel: object) -> None:
            pass

        def Log(self, request: object, timeout: float) -> None:
            sent.append(request.message)

    monkeypatch.setattr("microcluster.accounts.shared.plugin_servicer.engine_pb2_grpc.EngineStub", Stub)
    EngineLog("127.0.0.1:1").say("urn", NASTY)
    assert sent == [CLEAN]


@pytest.mark.parametrize("folder", ["", "commands", "display", "setup", "lifecycle"])
def test_nothing_prints_but_through_the_functions_that_clean(folder: str) -> None:
    for file in (ROOT / "microcluster" / folder).glob("*.py"):
        if str(file.relative_to(ROOT)) in MAY_PRINT:
            continue
        tree = ast.parse(file.read_text())
        called = {
            node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        streams = {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Attribute)
            and node.attr.startswith("write")
            if node.value.attr in ("stdout", "stderr")
        }
        assert not called & PRINTERS, (
            f"{file} calls {called & PRINTERS}; say() and microcluster/display/console.py clean what they print"
        )
        assert not streams, f"{file} writes to a standard stream by itself"


def test_the_frame_prints_nothing_but_json() -> None:
    tree = ast.parse((ROOT / "microcluster" / "command_line" / "parts.py").read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"]
    assert [ast.unparse(call) for call in calls] == ["print()", r"print(piece.replace('\x7f', '\\u007f'), end='')"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min"), (200, "3 min 20 s"), (3600, "1 h"), (85680, "23 h 48 min")),
        *((90000, "25 h"), (172800, "2 days"), (356400, "4 days 3 h")),
    ],
)
def test_a_length_of_time_is_written_as_people_write_it(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_one_thing_is_counted_in_the_singular() -> None:
    assert [count(number, "line") for number in (0, 1, 2)] == ["0 lines", "1 line", "2 lines"]
    assert [count(number, "process", "processes") for number in (1, 2)] == ["1 process", "2 processes"]


@pytest.mark.parametrize(("by_timer", "code"), [(True, 0), (False, 1)])
def test_a_full_disk_fails_a_persons_command_and_never_a_timers_guard(by_timer: bool, code: int) -> None:
    """A guard that cron had started ended at its first note, before the cancellation."""
    said = "from microcluster.core.plain_text import note, say; note('a'); say('b'); say('c'); print('d', flush=True)"
    environment = {**os.environ, "MICROCLUSTER_GUARD": "timer" if by_timer else ""}
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", said], env=environment, cwd=ROOT, stdout=full, stderr=full, check=False
        )
    assert done.returncode == code
