"""A rental that ends with its job: what is cancelled, what keeps it from that, and what a person is told."""

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command_samples import CLUSTER, RUNNING
from played_guard import charge

from microcluster.accounts.registry import AccountSettings
from microcluster.accounts.shared import rental as rented
from microcluster.accounts.shared.account import Extension
from microcluster.accounts.shared.errors import AccountError
from microcluster.command_line import parts
from microcluster.commands import up
from microcluster.config import stack as config
from microcluster.config.sections import GuardSection
from microcluster.core.catalog.billing_rules import Rate
from microcluster.core.home import Home
from microcluster.guard import actions, installed, watching
from microcluster.guard.decision import End, Limits, Verdict
from microcluster.guard.records import Record, log_of
from microcluster.guard.watching import follow_run, resume_watched
from microcluster.lifecycle import locks, pulumi, pulumi_state
from microcluster.planning.run_cost import Cost
from microcluster.rental.account import Place
from microcluster.run import fetch
from microcluster.run import job as run_job
from microcluster.run.job import stop_run
from microcluster.run.report import report_run
from microcluster.setup.errors import CommandFailed
from microcluster.setup.progress import Stages

PRICE = Decimal("8.99")
KNOWN = config.read_file("v100")
GUARDED = replace(KNOWN, guard=GuardSection(lease=30))
NAMES = {stop_run: "stop", resume_watched: "resume", follow_run: "watch", report_run: "report"}


def rented_since(minutes: float, now: datetime) -> rented.Rental:
    return rented.Rental(now, (charge(now - timedelta(minutes=minutes), now, Rate(PRICE)),))


@dataclass
class Rental:
    """A stack as the commands show it: states of its job one after the other, and what was done to it, in this order.

    Attributes:
        refused: what the account says to a cancellation by its own calls; an empty text where it carries it out.
        unread: what each reading of the account raises, one after the other; None where it answers, as it does afterwards.
    """

    states: list[str] = field(default_factory=lambda: ["finished"])
    limits: Limits = Limits(keep_failed_s=0.1)
    fetch_code: int = 0
    silent: bool = False
    is_up: bool = True
    has_run: bool = True
    refused: str = ""
    unread: list[Exception | None] = field(default_factory=list)
    cancel_code: int | None = 0
    done: list[str] = field(default_factory=list)
    busy: list[bool] = field(default_factory=list)
    began: datetime = field(default_factory=lambda: datetime.now(UTC) - timedelta(minutes=50))

    def observed(self, stack: str) -> Any:
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return replace(RUNNING, state=state)

    def unfetched(self, stack: str) -> list[dict[str, str]]:
        if self.silent:
            raise CommandFailed("connecting to gpu-0: no answer.")
        return [{}] if self.has_run else []

    def part(self, part: Any, **options: Any) -> int:
        if part is fetch.fetch_begun:
            self.busy = [locks.is_busy(name, Home.of()) for name in ("v100", "v100.guard")]
            return parts.exit_code(part, **options)
        if part is actions.tidy:
            self.done.append("down discard")
            return self.cancel_code
        self.done.append(" ".join([NAMES[part], *(name for name, is_set in options.items() if is_set is True)]))
        return 0

    def fetch(self, stack: str, *, everything: bool) -> int:
        assert everything
        self.done.append("fetch everything")
        return self.fetch_code

    def within(self, limit_s: float, part: Any, **options: Any) -> int:
        return self.part(part, **options)

    def by_account(self, account: object, owner: object, time_scale: float) -> str:
        self.done.append("by account")
        return self.refused

    def read(self) -> tuple[rented.Rental, None, Extension]:
        failure = self.unread.pop(0) if self.unread else None
        if failure:
            raise failure
        now = datetime.now(UTC)
        return rented.Rental(now, (charge(self.began, now, Rate(PRICE)),)), None, Extension()


@pytest.fixture
def rental(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Rental:
    made = Rental()
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path))
    monkeypatch.setattr(up, "run_part", made.part)
    monkeypatch.setattr(up, "limits_of", lambda stack: made.limits)
    monkeypatch.setattr(up, "limits_in", lambda section: made.limits)
    monkeypatch.setattr(up, "cost_of_stack", lambda stack, settings: Cost(PRICE, PRICE))
    monkeypatch.setattr(up, "who_looks", lambda known, home: "A timer holds it to its limits.")
    monkeypatch.setattr(fetch, "find_cluster", lambda stack: CLUSTER if made.is_up else None)
    monkeypatch.setattr(fetch, "unfetched_runs", made.unfetched)
    monkeypatch.setattr(fetch, "fetch_runs", made.fetch)
    monkeypatch.setattr(actions, "run_part_apart", made.within)
    monkeypatch.setattr(actions, "by_account", made.by_account)
    monkeypatch.setattr(actions, "account_and_owner", lambda stack, settings: (None, None))
    monkeypatch.setattr(actions, "place_of", lambda stack, settings: Place(AccountSettings("softlayer"), None))
    monkeypatch.setattr(actions.RentalActions, "rental", lambda hands, limits: made.read())
    monkeypatch.setattr(actions.RentalActions, "enforce", lambda *limits: None)
    monkeypatch.setattr(up, "outcome_or_none", made.observed)
    monkeypatch.setattr(actions, "asked_apart", made.observed)
    return made


def ended(sleep: Callable[[float], None] = lambda seconds: time.sleep(0.11), **options: Any) -> int | None:
    return up.end_rental(Home.of(), KNOWN, sleep=sleep, **options)


ENDED = ["stop", "fetch everything", "down discard"]
KEPT = ["fetch everything", *ENDED]


@pytest.mark.parametrize("code", [0, 1], ids=["all is over", "a bill that goes on is a failure"])
def test_a_finished_job_is_fetched_whole_and_then_everything_is_cancelled(rental, code):
    rental.cancel_code, rental.refused = code, "Guest 7 is still billed." if code else ""
    assert ended() == code
    assert rental.done == (ENDED if code == 0 else [*ENDED, "by account"])
    assert rental.busy == [False, True], "no other guard ends it too"


@pytest.mark.parametrize("change", [{"fetch_code": 1}, {"silent": True}], ids=["a wrong hash", "no answer"])
@pytest.mark.parametrize("state", ["finished", "failed"])
def test_nothing_is_cancelled_when_not_everything_was_fetched(rental, capsys, change, state):
    rental.__dict__.update(change, states=[state])
    assert ended() == 1
    assert "down discard" not in rental.done
    said = capsys.readouterr().err
    assert "nothing was cancelled" in said
    assert "It goes on costing $8.99 an hour. A timer holds it to its limits." in said
    assert "`make down STACK=v100 FETCH=1` ends the bill" in said


@pytest.mark.parametrize("state", ["failed", "stopped", "stalled"])
def test_machines_of_an_unfinished_job_stay_a_while_with_their_price(rental, capsys, state):
    rental.states = [state]
    assert ended() == 1
    assert rental.done == KEPT
    said = capsys.readouterr()
    assert "everything is fetched and cancelled in" in said.err
    assert "what it has made is here" in said.out and "It goes on costing $8.99 an hour." in said.out
    assert "`make up STACK=v100 DOWN=1` continues it" in said.out
    assert "Its machines stay for 0 s, then they are cancelled" in said.out
    assert "a higher keepFailed" in said.out and "Ctrl-C here until `make down STACK=v100`" in said.out


def test_a_wait_for_the_end_obeys_a_change_of_the_stack_file(rental, monkeypatch):
    rental.states, waited = ["failed"], []

    def stack_file(stack: str) -> Limits:
        if len(waited) == 2:
            raise config.ConfigError("It is being written.")
        return Limits(keep_failed_s=3600 if len(waited) < 3 else 0)

    monkeypatch.setattr(up, "limits_of", stack_file)
    assert ended(waited.append) == 1
    assert len(waited) == 3, "two more looks, until the stack file allows none any more"
    assert rental.done == KEPT


def test_a_guards_other_finding_does_not_restart_the_wait(rental):
    def look(seconds: float) -> None:
        time.sleep(0.11)
        watching.guard_of("v100", rental.limits, "timer").watch()

    rental.states = ["stopped"]
    assert ended(look) == 1
    assert rental.done == KEPT


def test_a_job_that_runs_again_meanwhile_is_followed_and_not_cancelled(rental):
    rental.states = ["failed", "failed", "running"]
    assert ended() is None
    assert rental.done == ["fetch everything"]
    assert rental.busy == [True, False], "no other guard ends it meanwhile"


def test_ctrl_c_in_the_wait_keeps_machines_and_says_their_price(rental, capsys):
    def press(seconds: float) -> None:
        raise KeyboardInterrupt

    rental.states = ["failed"]
    assert ended(press) == 130
    assert rental.done == ["fetch everything"]
    said = capsys.readouterr().out
    assert "does not cancel it any more. It goes on costing $8.99 an hour." in said
    assert "`make down STACK=v100` ends it" in said
    assert not log_of("v100", Home.of()).records(), "no guard is to finish it"


def test_a_limit_in_the_wait_cancels_even_what_cannot_be_fetched(rental):
    rental.states, rental.limits, rental.fetch_code = ["failed"], Limits(lease_h=Decimal("0.5")), 1
    assert ended() == 1
    assert rental.done == ENDED


def test_while_another_guard_ends_it_make_up_waits(rental):
    with ExitStack() as held:
        held.enter_context(locks.alone_on("v100.guard", "fab guard", Home.of()))
        assert ended(lambda seconds: held.close()) == 0
    assert rental.done == ENDED


def test_a_stack_in_another_commands_work_is_neither_stopped_nor_cancelled(rental, capsys):
    with locks.alone_on("v100", "make up", Home.of()):
        assert ended() == 1
    assert rental.done == []
    said = capsys.readouterr().err
    assert "another command works on the stack" in said and "It goes on costing $8.99 an hour." in said


def test_an_account_that_cannot_be_read_is_asked_until_it_can(rental):
    rental.unread, waited = [None, AccountError("nobody answers"), AccountError("nobody answers")], []
    assert ended(waited.append) == 0
    assert (rental.done, len(waited)) == (ENDED, 1)


def test_a_run_goes_on_only_when_its_machines_know_todays_limits(monkeypatch):
    done: list[str] = []
    record = Record("watch@here", datetime.now(UTC), Verdict("record", "within its limits"))
    looking = SimpleNamespace(watch=lambda: done.append("told") or record)
    monkeypatch.setattr(watching, "limits_of", lambda stack: Limits(lease_h=Decimal(40)))
    monkeypatch.setattr(watching, "guard_of", lambda *args: looking)
    monkeypatch.setattr(watching, "cluster_of", lambda stack: replace(CLUSTER, container=None))
    monkeypatch.setattr(run_job, "open_hosts", lambda cluster: [])
    monkeypatch.setattr(run_job, "secrets_for", lambda cluster: {})
    monkeypatch.setattr(run_job.job, "start_job", lambda *args: done.append("started"))
    assert watching.resume_watched("v100") == 0
    assert done == ["told", "started"]


def test_a_job_that_does_not_run_is_continued_and_then_watched(monkeypatch):
    done: list[str] = []
    monkeypatch.setattr(up, "outcome_or_none", lambda stack: replace(RUNNING, state="stopped"))
    monkeypatch.setattr(up, "run_part", lambda part, **options: done.append(NAMES[part]) or 0)
    assert up._follow(KNOWN, Stages(), ends=True) == 0
    assert done == ["resume", "watch", "report"]


@pytest.mark.parametrize(("codes", "looks"), [([3, 3, 0], 3), ([1], 1)])
def test_at_a_limit_the_watcher_retries_an_unreadable_account(monkeypatch, codes, looks):
    waited, left = [], list(codes)
    monkeypatch.setattr(watching, "run_part", lambda part, stack: left.pop(0))
    monkeypatch.setattr(watching, "log_of", lambda stack, home: SimpleNamespace(newest=lambda: None))
    assert watching.bring_to_its_end("v100", waited.append) == codes[-1]
    assert len(waited) == looks - 1


@pytest.mark.parametrize(("early_s", "looks"), [(rented.CLOCKS_AGREE_S, 3), (rented.CLOCKS_AGREE_S + 1, 1)])
def test_a_look_too_early_by_the_clocks_is_repeated_until_the_limit(monkeypatch, early_s, looks):
    now, waited = datetime.now(UTC), []
    due = End("lease", now + timedelta(seconds=early_s), now + timedelta(hours=3))
    found = [Verdict(step, "", due=due) for step in ("warn", "warn", "over")]
    monkeypatch.setattr(watching, "run_part", lambda part, stack: 0)
    book = SimpleNamespace(newest=lambda: SimpleNamespace(verdict=found.pop(0), at=now, unread=""))
    monkeypatch.setattr(watching, "log_of", lambda stack, home: book)
    assert watching.bring_to_its_end("v100", waited.append) == 0
    assert len(waited) == looks - 1


def test_what_pulumi_does_not_cancel_the_account_itself_is_asked_for(rental):
    """Findings A8 and A15: an engine or a stack file that was missing kept everything from being cancelled."""
    rental.cancel_code = None
    assert ended() == 0
    assert rental.done == [*ENDED, "by account"]


def test_a_cancellation_that_the_account_refuses_says_what_goes_on_costing(rental, capsys):
    rental.cancel_code, rental.refused = 1, "Guest 7 is still billed."
    assert ended() == 1
    said = capsys.readouterr().err
    assert "not everything was cancelled: Guest 7 is still billed" in said
    assert "It goes on costing $8.99 an hour." in said


def test_a_failed_up_ends_as_a_failed_job_despite_an_earlier_finish(rental):
    assert ended(is_up=False) == 1
    assert rental.done == KEPT


@pytest.mark.parametrize("change", [{"is_up": False}, {"has_run": False}])
def test_where_no_run_has_begun_there_is_nothing_to_fetch(rental, change):
    rental.__dict__.update(change)
    assert ended(is_up=False) == 1
    assert rental.done == ["stop", "down discard"]


@pytest.mark.parametrize(
    ("section", "down", "ends"),
    [
        (None, False, False),
        (None, True, True),
        ({"whenDone": "cancel"}, False, True),
        ({"whenDone": "keep"}, False, False),
        ({"whenDone": "keep", "keepFailed": 0}, True, True),
    ],
)
def test_a_rental_ends_with_its_job_by_option_or_guard(section, down, ends):
    values = config.read_values(config.path_of("horovod-local"))
    known = config.parse("horovod-local", values | ({"microcluster:guard": section} if section else {}))
    assert up.ends_with_job(known, down=down) == ends


def updated(monkeypatch: pytest.MonkeyPatch, place: Home, *, ends: bool) -> int:
    monkeypatch.setattr(pulumi, "run", lambda home, *words: 255)
    state = pulumi_state.path_of("v100", place)
    state.parent.mkdir(parents=True)
    guest = {"urn": "urn:a::b::softlayer:index:VirtualGuest::gpu-0", "type": "softlayer:index:VirtualGuest", "id": "7"}
    resources = [{**guest, "custom": True}]
    state.write_text(json.dumps({"version": 3, "checkpoint": {"latest": {"resources": resources}}}))
    return up._update(place, KNOWN, ends=ends)


def test_a_failed_update_waits_for_a_person_unless_the_rental_ends_itself(monkeypatch, tmp_path):
    assert updated(monkeypatch, Home(tmp_path / "1", tmp_path), ends=True) == 1
    with pytest.raises(CommandFailed, match="What was ordered is kept and costs money"):
        updated(monkeypatch, Home(tmp_path / "2", tmp_path), ends=False)


def test_ctrl_c_while_renting_names_the_command_that_ends_the_rental_too(monkeypatch, tmp_path, capsys):
    def press(home: Home, *words: str) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(pulumi, "run", press)
    assert up._update(Home(tmp_path, tmp_path), KNOWN, ends=True) == 130
    assert "`make up STACK=v100 DOWN=1` continues from there" in capsys.readouterr().out


def test_an_ended_watch_says_who_ends_the_rental_when_and_its_cost(tmp_path, monkeypatch):
    now = datetime.now(UTC)
    due = End("lease", now + timedelta(hours=2), now + timedelta(hours=2, minutes=12))
    book = log_of("v100", Home(tmp_path, tmp_path))
    book.write(Record("watch@here", now, Verdict("record", "within its limits", due=due), rented_since(30, now)))
    monkeypatch.setattr(
        installed, "every_minute", lambda stack, home: installed.TimerLooks("a timer, last seen to look 9 s ago", True)
    )
    said = installed.who_looks(GUARDED, Home(tmp_path, tmp_path))
    assert f"{due.begin:%H:%M} UTC (lease), until when it costs at most $17.98 more" in said
