"""What a queue says to the commands that list, delete and count: nothing is ordered here, a step submits."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from agent.batch import commands
from agent.batch.records import SEEN_EVERY_S, owner_of, path_of
from core.home import Home, Owner
from microcluster.remote import queue
from microcluster.remote.errors import RemoteError
from microcluster.remote.host import Host
from microcluster.remote.openssh import login_host
from providers.rental.account import Account, Extension, Identity, Resource, Terms
from providers.rental.errors import AccountError
from providers.rental.receipt import Charge

JOB = "job"


@contextmanager
def _doing(what: str) -> Iterator[None]:
    """Turn a failure of the login host or of the queue into a sentence for the person."""
    try:
        yield
    except RemoteError as error:
        raise AccountError(f"{what}: {error}") from error


class Queue(Account):
    """A person's jobs on one site."""

    machine = JOB

    def __init__(self, login: Host, is_emulated: bool = False) -> None:
        self.login, self._is_emulated = login, is_emulated

    @_doing("reading the login host")
    def whoami(self) -> Identity:
        """Say whose jobs they are, after a login."""
        self.login.connect()
        where = f"{self.login.user}@{self.login.address}"
        return Identity(where, self.login.facts.name, self.login.user, where, self._is_emulated)

    @_doing("reading the queue")
    def resources(self, owner: Owner | None = None, kind: str | None = None, max_age_s: float = 0.0) -> list[Resource]:
        """List the living jobs of a stack, or of every stack of this person's."""
        found = []
        for job, record in queue.jobs_of(self.login, str(owner or "")):
            whose, is_billed = Owner(record["stack"], record["mark"]), job.state not in commands.WAITING
            since = datetime.fromtimestamp(record["submitted"], UTC)
            found.append(Resource(JOB, job.number, job.name, whose, is_billed=is_billed, since=since, row=record))
        return found

    @_doing("reading the bill")
    def charges(self, owner: Owner, known: Iterable[str] = (), *, exact: bool = True) -> list[Charge]:
        """List the node hours of every start of every job, by what the jobs themselves wrote down."""
        running = {job.number for job, _ in queue.jobs_of(self.login, str(owner)) if job.state not in commands.WAITING}
        written = [each for each in queue.records(self.login) if owner_of(each) == str(owner)]
        starts = sorted((each for each in written if "started" in each), key=lambda start: start["started"])
        last, now = {start["id"]: start for start in starts}, datetime.now(UTC)
        return [charge(one, now, is_running=one["id"] in running and one is last[one["id"]]) for one in starts]

    @_doing("reading or writing how far the lease was extended")
    def extension(self, owner: Owner, new: Extension | None = None) -> Extension:
        """Read it in the records of the stack's jobs, or write it there; the next submission begins a record of its own."""
        records = [record for _, record in queue.jobs_of(self.login, str(owner))]
        if new is None:
            return Extension.read(next((record.get("extended", "") for record in records), ""))
        if not records:
            raise AccountError(f"extending stack {owner.stack}: it has no job in the queue.")
        for record in records:
            file = path_of(record).removeprefix("~/")  # A login begins in the home.
            self.login.put(file, json.dumps({**record, "extended": new.word}) + "\n", "0600")
        return new

    @_doing("reading or writing when the rental began")
    def terms(self, owner: Owner, new: Terms | None = None) -> Terms | None:
        """Read it in the records of the stack's jobs, or write it there."""
        records = [record for _, record in queue.jobs_of(self.login, str(owner))]
        if new is None:
            return next(filter(None, (Terms.read(record.get("terms", "")) for record in records)), None)
        for record in records:
            file = path_of(record).removeprefix("~/")
            self.login.put(file, json.dumps({**record, "terms": new.word}) + "\n", "0600")
        return new

    @_doing("ending a job")
    def end(self, resource: Resource) -> None:
        """End the job with its processes, and see it leave the queue."""
        queue.leave(self.login, [resource.row])


@_doing("opening the site")
def account_of(config_file: str | None, exported: Mapping[str, str]) -> Queue:
    """Return the account on the login host that the file names; nobody is called yet."""
    file = Path(config_file or "pbs:sshConfig of the stack file")
    is_emulated = file.parent == Home.of().root / "emulator-pbs"  # As the emulator names the folder of this account.
    return Queue(login_host(str(file), None), is_emulated)


def charge(start: Mapping[str, Any], now: datetime, *, is_running: bool) -> Charge:
    """Return the node hours of one start of a job; one that was killed counts until shortly after it was last seen."""
    began, nodes, ended = start["started"], start["nodes"], start.get("ended")
    if ended is None and not is_running:
        ended = min(began + start["walltime"], start.get("seen", began) + SEEN_EVERY_S)
    used_s = max(0.0, (now.timestamp() if ended is None else ended) - began)
    return Charge(
        id=start["id"],
        description=f"job {start['id']}: {nodes} nodes of queue {start['queue']}, run {start['run']}",
        host=start["name"],
        category=JOB,
        opened=datetime.fromtimestamp(began, UTC),
        closed=None if ended is None else datetime.fromtimestamp(began + used_s, UTC),
        ends=None,
        hourly=True,
        per_hour=Decimal(nodes),
        per_month=Decimal(0),
        so_far=Decimal(round(used_s)) / 3600 * nodes,
        currency="node hours",
    )
