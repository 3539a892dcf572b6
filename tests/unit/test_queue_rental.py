"""A rental before a queue: one over several submissions, whose name and limits stand on the login host, by its clock."""

import json
import os
import pwd
import subprocess
import time
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from frozen import compare, with_names
from played_queue import REQUEST, PlayedQueue

import agent
from microcluster.accounts.queue.account import Queue
from microcluster.accounts.shared.account import Extension, Terms
from microcluster.accounts.shared.errors import AccountError
from microcluster.core.home import Owner
from microcluster.jobs.cluster_facts import ClusterFacts, HostFacts
from microcluster.jobs.cluster_facts import Queue as Asked
from microcluster.jobs.run_spec import RunFolder
from microcluster.remote import queue, steps
from microcluster.remote.errors import CommandError, Completed

OWNER, HOUR_S = Owner("dev", "1f3a9c42"), 3600.0
SLURM = "Configuration data as of 2026-11-23T12:00:00\nClusterName             = seawulf\nSlurmctldHost[0] = sn-mgmt\n"
TORQUE = "Server: sn-mgmt.cm.cluster\n    server_state = Active\n"


class Login:
    """The login host, as this computer plays it: another name, this home, and a clock that may differ."""

    def __init__(self, played: PlayedQueue, address: str = "192.0.2.9", ahead_s: float = 0.0) -> None:
        self.played, self.address, self.ahead_s = played, address, ahead_s
        self.user, self.facts = pwd.getpwuid(os.getuid()).pw_name, HostFacts("login", "login", address, address, "")

    def run(self, argv, *, stdin="", timeout_s=0.0, accept=(0,), answer_bytes=0) -> Completed:
        if argv[0] == "date":
            return Completed(0, str(int(time.time() - self.ahead_s)), "")
        # Without -l, which would set the path anew.
        words = [word for word in argv if word != "-l"]
        done = subprocess.run(words, input=stdin, cwd=self.played.home, capture_output=True, text=True, check=False)
        completed = Completed(done.returncode, done.stdout, done.stderr)
        if done.returncode not in accept:
            raise CommandError("login", words, completed)
        return completed

    def put(self, path: str, text: str, mode: str) -> None:
        (self.played.home / path).write_text(text)


class Site:
    """A played queue whose runs are submitted from this computer."""

    def __init__(self, played: PlayedQueue) -> None:
        self.played, self.login = played, Login(played)
        asked = Asked("gpu", REQUEST["nodes"], REQUEST["processors"], REQUEST["walltime"])
        self.facts = ClusterFacts("dev", OWNER.mark, queue=asked, run="00e11aabbccd", mount_point=str(played.folder))
        self.records = played.home / ".microcluster" / "jobs"

    @property
    def account(self) -> Queue:
        """The account as a command opens it."""
        return Queue(self.login)

    def submit(self, *, lease_minutes: int | None = 1800, at: float | None = None, **changes: object) -> dict:
        """Submit a run; return its record, which may be dated back."""
        facts = replace(self.facts, lease_minutes=lease_minutes, **changes)
        folder = Path(RunFolder(facts).path)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "agent").exists():
            (folder / "agent").symlink_to(Path(agent.__file__).parent)
        queue.submit(self.login, facts)
        file = self.records / f"{queue.request_of(facts)['name']}.json"
        if at is not None:
            file.write_text(json.dumps({**json.loads(file.read_text()), "submitted": at}) + "\n")
        return json.loads(file.read_text())

    def submit_by_older_version(self, at: float, number: int, **life: float) -> None:
        """Leave what a version without rentals leaves; with ``started`` its job has begun."""
        record = {**queue.request_of(self.facts), "submitted": at}
        del record["interface"]
        self.records.mkdir(parents=True, exist_ok=True)
        (self.records / f"{record['name']}.json").write_text(json.dumps(record) + "\n")
        if life:
            start = {"id": str(number), **record, **life}
            (self.records / f"{number}.{int(life['started'])}-1.json").write_text(json.dumps(start) + "\n")

    def ends(self, record: dict, began: float, until: float) -> None:
        """Let the job of a record have run and leave the queue."""
        start = {**record, "id": "7", "started": began, "ended": until}
        (self.records / f"7.{int(began)}-1.json").write_text(json.dumps(start) + "\n")
        self.played.has()


@pytest.fixture
def site(tmp_path, monkeypatch) -> Site:
    return Site(PlayedQueue(tmp_path, monkeypatch))


def test_the_script_and_the_words_of_a_submission_are_frozen(site):
    folder = Path(site.submit()["folder"])
    text = f"qsub {site.played.submissions[0]}\n\n{(folder / 'job.sh').read_text()}"
    text = text.replace(str(site.played.folder), "FOLDER").replace(str(site.played.home), "HOME")
    compare(
        "requests/queue.txt", with_names(text, [("NAME", "mc1f3a9c42[0-9a-f]{5}"), ("TIME", r"\b1[78]\d{8}(\.\d+)?")])
    )


def test_a_rental_goes_on_with_the_next_submission_and_its_limits(site):
    before = int(time.time())
    record = site.submit()
    terms = site.account.terms(OWNER)
    assert terms == Terms(terms.first_order, 1800)
    assert before <= terms.first_order <= time.time()
    site.account.terms(OWNER, replace(terms, first_order=before - 500_000))  # As if it was days ago.
    site.ends(record, before - 400_000, before - 390_000)
    assert site.account.terms(OWNER) == Terms(before - 500_000, 1800), "nothing runs, and it is not over"
    site.submit(lease_minutes=3600)
    assert site.account.terms(OWNER) == Terms(before - 500_000, 3600)


def test_the_end_of_everything_ends_the_rental_and_another_may_begin(site):
    site.submit(lease_minutes=60)
    first = site.account.terms(OWNER)
    site.account.terms(OWNER, replace(first, first_order=first.first_order - 100))
    site.played.has()
    steps.leave_queue(site.login, site.facts)
    assert site.account.terms(OWNER) is None
    with pytest.raises(AccountError, match="nothing of it is rented"):
        site.account.extension(OWNER, Extension(Decimal(6)))
    time.sleep(1)
    site.submit(lease_minutes=None)
    second = site.account.terms(OWNER)
    assert (second.first_order >= first.first_order, second.lease_minutes) == (True, None)
    assert second.rental_id("me@seawulf", OWNER) == f"me@seawulf-1f3a9c42-{second.first_order}"


def test_the_last_job_ended_without_its_stack_ends_the_rental(site):
    site.submit()
    site.submit(run="ffee11aabbcc")
    ours = site.account.resources(OWNER)
    site.account.end(ours[0])
    assert site.account.terms(OWNER) is not None
    site.account.end(ours[1])
    assert site.account.terms(OWNER) is None


def test_an_older_rental_began_with_the_oldest_start_without_a_days_gap(site):
    now = time.time()
    site.submit_by_older_version(now - 200 * HOUR_S, 5, started=now - 199 * HOUR_S, ended=now - 190 * HOUR_S)
    site.submit_by_older_version(now - 60 * HOUR_S, 6, started=now - 50 * HOUR_S, ended=now - 42 * HOUR_S)
    site.submit_by_older_version(now - 41 * HOUR_S, 7, started=now - 30 * HOUR_S, ended=now - 22 * HOUR_S)
    assert site.account.terms(OWNER) == Terms(int(now - 50 * HOUR_S))
    assert site.account.terms(Owner("copy", OWNER.mark)) is None
    site.submit()
    assert site.account.terms(OWNER) == Terms(int(now - 50 * HOUR_S), 1800)
    site.played.has()
    steps.leave_queue(site.login, site.facts)
    site.submit(lease_minutes=60)
    assert site.account.terms(OWNER).first_order >= int(now), "what was closed is not taken up again"


def test_an_older_version_that_submits_after_the_end_has_begun_a_rental(site):
    site.submit()
    site.played.has()
    steps.leave_queue(site.login, site.facts)
    later = time.time() + 100
    site.submit_by_older_version(later, 9)
    site.played.has(f"9 {queue.request_of(site.facts)['name']} Q gpu")
    assert site.account.terms(OWNER) == Terms(int(later))


def test_an_extension_stays_with_the_rental_and_older_versions_read_it(site):
    site.submit()
    assert site.account.extension(OWNER) == Extension()
    site.account.extension(OWNER, Extension(Decimal(6)))
    record = next(record for _, record in queue.jobs_of(site.login, str(OWNER)))
    assert record["extended"] == "360m-0c"
    site.ends(record, time.time() - 50, time.time())
    assert site.submit()["extended"] == "360m-0c"
    assert site.account.extension(OWNER) == Extension(Decimal(6))
    file = site.records / f"{record['name']}.json"
    file.write_text(json.dumps({**record, "extended": "720m-0c"}) + "\n")  # By an older version.
    assert site.account.extension(OWNER) == Extension(Decimal(12))


@pytest.mark.parametrize("ahead_h", [3, -3])
def test_node_hours_count_by_the_login_hosts_clock_whatever_this_computers_shows(site, ahead_h):
    site.login.ahead_s = ahead_h * HOUR_S
    record = site.submit(at=time.time() - site.login.ahead_s - 2 * HOUR_S)
    began = time.time() - site.login.ahead_s - HOUR_S
    (site.records / "100.1-1.json").write_text(json.dumps({**record, "id": "100", "started": began}) + "\n")
    site.played.has(f"100 {record['name']} R gpu")
    account = site.account
    [charge] = account.charges(OWNER)
    assert round(charge.so_far, 2) == 2
    assert abs(account.clock_ahead_s - ahead_h * HOUR_S) < 5


@pytest.mark.parametrize(("says", "name"), [(SLURM, "seawulf"), (TORQUE, "sn-mgmt.cm.cluster"), ("", None)])
def test_all_login_hosts_of_a_cluster_are_one_account_of_its_user(site, says, name):
    command = "scontrol" if says is SLURM else "qstat"
    if says:
        program = site.played.here / command
        program.write_text(f"#!/bin/sh\ncat <<'END'\n{says}END\n")
        program.chmod(0o755)
    ids = [Queue(Login(site.played, address)).whoami().account_id for address in ("192.0.2.9", "192.0.2.10")]
    user = site.login.user
    assert ids == ([f"{user}@{name}"] * 2 if name else [f"{user}@192.0.2.9", f"{user}@192.0.2.10"])


def test_an_account_whose_queue_does_not_answer_has_no_name_by_chance(site):
    (site.played.here / "qstat").write_text("#!/bin/sh\nexit 8\n")
    with pytest.raises(AccountError, match="reading the login host"):
        site.account.whoami()


@pytest.mark.parametrize(
    "torn",
    [
        '{"name": "mc1f3a9c42aaaaa", "stack": "dev", "mar',
        '{"id": "7", "started": 5.0}',
        '{"id": "7", "started": 5.0, "stack": "dev", "mark": "1f3a9c42"}',
        "7",
        "",
        "\x00\x00",
    ],
)
def test_a_torn_record_spoils_no_other_and_stops_neither_receipt_nor_end(site, torn):
    record = site.submit(at=time.time() - 100)
    for name in ("mc1f3a9c4200000", "7.5-1"):  # Before and after the whole one.
        (site.records / f"{name}.json").write_text(torn)
    start = {**record, "id": "100", "started": time.time() - 50}
    (site.records / "100.1-1.json").write_text(json.dumps(start) + "\n")
    site.played.has(f"100 {record['name']} Q gpu")
    assert [each.id for each in site.account.resources(OWNER)] == ["100"]
    assert [each.id for each in site.account.charges(OWNER)] == ["100"]
    (site.records / f"{OWNER}.rental").write_text(torn)
    assert site.account.terms(OWNER).first_order == int(json.loads(json.dumps(record))["submitted"])
    assert steps.leave_queue(site.login, site.facts) == "deleted job 100"
    assert site.account.resources(OWNER) == []


@pytest.fixture(autouse=True)
def _no_wait(monkeypatch) -> None:
    monkeypatch.setattr(steps, "wait_for_ssh", lambda host: None)
