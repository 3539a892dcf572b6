"""What a person is told of the guard that looks every minute: `fab guard --install`, `--status`, Ctrl-C and `make up`."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from microcluster.config import stack as config
from microcluster.config.sections import GuardSection
from microcluster.core import stack_keys
from microcluster.core.home import Home
from microcluster.guard import installed
from microcluster.guard.decision import End, Verdict
from microcluster.guard.records import Record, called, log_of
from microcluster.setup.errors import CommandFailed

CRONS = "a line of cron, marked `# microcluster-guard-v100-1a2b3c4d`"
GONE = f"{CRONS}, which can no longer run: /left/.venv/bin/fab is gone"


GUARDED = dataclasses.replace(config.read_file("v100"), guard=GuardSection(lease=30))


@dataclass
class Timer:
    """The timer of this computer, as it answers."""

    home: Home
    standing: tuple[str, bool] = ("", False)
    unread: CommandFailed | None = None
    at_proof: Callable[[], int] = lambda: 0
    done: list[str] = field(default_factory=list)

    def where(self) -> tuple[str, bool]:
        if self.unread:
            raise self.unread
        return self.standing

    def install(self) -> str:
        self.standing = (CRONS, True)
        return f"{CRONS}; /home/cache/logs/x.log has what it said"

    def prove(self) -> int:
        return self.at_proof()

    def looked(self, ago_s: float = 0, code: int = 0, due: End | None = None) -> None:
        """Write what a guard that a timer starts writes."""
        at = datetime.now(UTC) - timedelta(seconds=ago_s)
        verdict = Verdict("record", "within its limits", code=code, due=due)
        log_of("v100", self.home).write(Record(called("timer"), at, verdict))


@pytest.fixture
def timer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Timer:
    made = Timer(Home(tmp_path, tmp_path))
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path))
    stack_keys.ensure(tmp_path / "keys" / "v100", "v100")
    monkeypatch.setattr(installed.timer, "timer", lambda job: made)
    monkeypatch.setattr(installed.account_opening, "why_no_key", lambda *names, exported: None)
    return made


def test_a_timer_that_was_seen_to_look_is_believed(timer):
    timer.standing = (CRONS, True)
    timer.looked(ago_s=26)
    said = installed.who_looks(GUARDED, timer.home)
    assert said.startswith(f"{CRONS}, last seen to look 26 s ago, holds it to its limits")
    assert "--install" not in said


@pytest.mark.parametrize(
    ("standing", "ago_s", "says"),
    [
        ((CRONS, True), None, f"{CRONS}, not seen to look yet. Until it looks, nobody holds"),
        ((CRONS, True), 7200, f"{CRONS}, last seen to look 2 h ago. Until it looks, nobody holds"),
        ((GONE, False), 10, f"{GONE}. Until it looks, nobody holds"),
        (("", False), 10, "Nobody holds"),
    ],
)
def test_a_timer_that_does_not_look_holds_nothing(timer, capsys, standing, ago_s, says):
    timer.standing = standing
    if ago_s:
        timer.looked(ago_s)
    said = installed.who_looks(GUARDED, timer.home)
    assert said.startswith(says) and said.endswith("`fab guard --install --stack v100` does.")
    is_there = bool(standing[0])
    assert installed.show("v100", timer.home, as_json=False) == is_there  # Where there should be none, none is late.
    assert ("IT HAS NOT LOOKED LATELY" in capsys.readouterr().out) == is_there


def test_the_status_says_when_the_timer_was_seen(timer, capsys):
    timer.standing = (CRONS, True)
    timer.looked(ago_s=26)
    assert installed.show("v100", timer.home, as_json=False) == 0
    shown = capsys.readouterr().out
    assert f"every minute: {CRONS}, last seen to look 26 s ago" in shown
    assert f"{called('timer')} looked 26 s ago: within its limits" in shown


def test_the_status_says_that_no_guard_has_looked(timer, capsys):
    installed.show("v100", timer.home, as_json=False)
    assert "no guard of stack v100 has looked yet" in capsys.readouterr().out


def test_a_crontab_that_cannot_be_read_is_said_and_holds_nothing(timer, capsys):
    timer.unread = CommandFailed("reading the crontab: permission denied.")
    assert installed.who_looks(GUARDED, timer.home).startswith("Nobody holds")
    assert "permission denied" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("standing", "says"),
    [
        ((CRONS, True), f"without them, every minute: {CRONS}, not seen to look yet."),
        (("", False), "nobody until `fab guard --install --stack v100`."),
    ],
)
def test_before_an_order_it_is_said_whether_a_timer_was_seen(timer, monkeypatch, capsys, standing, says):
    monkeypatch.setenv("MICROCLUSTER_HOME", str(timer.home.root))
    timer.standing = standing
    values = config.read_values(config.path_of("v100"))
    installed.say_limits(config.parse("v100", values | {"microcluster:guard": {"lease": 30}}))
    assert says in capsys.readouterr().out


@pytest.mark.parametrize(("verdict_code", "line_code", "code"), [(0, 0, 0), (2, 1, 2), (0, 1, 1)])
def test_an_installed_timer_is_proved_by_what_it_saw(timer, capsys, verdict_code, line_code, code):
    timer.looked(ago_s=60)
    timer.at_proof = lambda: timer.looked(code=verdict_code) or line_code
    assert installed.install("v100", timer.home) == code
    assert "guard of stack v100: within its limits" in capsys.readouterr().out


@pytest.mark.parametrize("ago_s", [None, 30])
def test_a_timer_that_ran_and_saw_nothing_is_not_proved(timer, ago_s):
    if ago_s:
        timer.looked(ago_s)
    with pytest.raises(CommandFailed, match="was not seen to look"):
        installed.install("v100", timer.home)
