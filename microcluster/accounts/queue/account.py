"""Queue as an account for the commands that list, delete and count; a remote step submits its jobs."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

from agent.batch import commands
from agent.batch.records import SEEN_EVERY_S, owner_of, path_of
from microcluster.accounts.shared.account import Account, Extension, Identity, Resource, Terms
from microcluster.accounts.shared.errors import AccountError
from microcluster.accounts.shared.receipt import Charge
from microcluster.core.home import Home, Owner
from microcluster.remote import queue
from microcluster.remote.errors import RemoteError
from microcluster.remote.host import Host
from microcluster.remote.openssh import login_host

JOB = "job"


@contextmanager
def _doing(what: str) -> Iterator[None]:
    """Raise a failure of the login host or of the queue as a sentence for the person."""
    try:
        yield
    except RemoteError as error:
        raise AccountError(f"{what}: {error}") from error


class Queue(Account):
    """A person's jobs on one site."""

    machine = JOB

    def __init__(self, login: Host, is_emulated: bool = False) -> None:
        self.login, self._is_emulated = login, is_emulated
        self._ahead_s: float | None = None

    def whoami(self) -> Identity:
        """Say whose jobs they are, after a login: those of a user of the cluster, whichever of its login hosts answers."""
        return self._identity

    @cached_property
    @_doing("reading the login host")
    def _identity(self) -> Identity:
        user, address = self.login.user, self.login.address
        account_id = f"{user}@{queue.cluster_name(self.login) or address}"
        return Identity(account_id, self.login.facts.name, user, f"{user}@{address}", self._is_emulated)

    @property
    def clock_ahead_s(self) -> float:
        """Seconds by which this computer is ahead of the login host; 0 until the bill was read."""
        return self._ahead_s or 0.0

    @_doing("reading the queue")
    def resources(self, owner: Owner | None = None, kind: str | None = None, max_age_s: float = 0.0) -> list[Resource]:
        """List the living jobs of a stack, or of every stack of this person's."""
        jobs = []
        for job, record in queue.jobs_of(self.login, str(owner or "")):
            whose, is_billed = Owner(record["stack"], record["mark"]), job.state not in commands.WAITING
            since = datetime.fromtimestamp(record["submitted"], UTC)
            jobs.append(Resource(JOB, job.number, job.name, whose, is_billed=is_billed, since=since, row=record))
        return jobs

    @_doing("reading the bill")
    def charges(self, owner: Owner, known: Iterable[str] = (), *, exact: bool = True) -> list[Charge]:
        """List the node hours of every start of every job, by what the jobs themselves wrote down."""
        running = {job.number for job, _ in queue.jobs_of(self.login, str(owner)) if job.state not in commands.WAITING}
        written = [each for each in queue.records(self.login) if owner_of(each) == str(owner)]
        starts = sorted((each for each in written if "started" in each), key=lambda start: start["started"])
        if self._ahead_s is None:
            self._ahead_s = time.time() - queue.clock(self.login)
        last, now = {start["id"]: start for start in starts}, datetime.now(UTC) - timedelta(seconds=self._ahead_s)
        return [charge(one, now, is_running=one["id"] in running and one is last[one["id"]]) for one in starts]

    @_doing("reading or writing how far the lease was extended")
    def extension(self, owner: Owner, new: Extension | None = None) -> Extension:
        """Read or write the extension, beside the stack's rental; older versions keep it in the records of its jobs."""
        rental = queue.rental_of(self.login, str(owner))
        records = [record for _, record in queue.jobs_of(self.login, str(owner))]
        if new is None:
            said = [Extension.read(each.get("extended", "")) for each in (rental or {}, *records)]
            return max(said, key=lambda each: each.hours)
        self._keep(owner, rental, extended=new.word)
        for record in records:
            file = path_of(record).removeprefix("~/")  # A login begins in the home.
            self.login.put(file, json.dumps({**record, "extended": new.word}) + "\n", "0600")
        return new

    @_doing("reading or writing when the rental began")
    def terms(self, owner: Owner, new: Terms | None = None) -> Terms | None:
        """Read or write the rental's terms, beside the records of the stack's jobs; nobody pays in dollars."""
        rental = queue.rental_of(self.login, str(owner))
        if new is not None:
            self._keep(owner, rental, first_order=new.first_order, lease_minutes=new.lease_minutes)
            return new
        return Terms(rental["first_order"], rental.get("lease_minutes")) if rental else None

    def _keep(self, owner: Owner, rental: queue.Rental | None, **changed: Any) -> None:
        if rental is None:
            raise AccountError(f"recording the limits of stack {owner.stack}: nothing of it is rented.")
        queue.keep_rental(self.login, str(owner), {**rental, **changed})

    @_doing("ending a job")
    def end(self, resource: Resource) -> None:
        """End the job with its processes, and see it leave the queue; with the last of its stack the rental ends."""
        owner = str(resource.owner)
        queue.leave(self.login, [resource.row])
        if not queue.jobs_of(self.login, owner):
            queue.end_rental(self.login, owner)


@_doing("opening the site")
def account_of(config_file: str | None, exported: Mapping[str, str]) -> Queue:
    """Return the account on the login host that the file names; nobody is called yet."""
    file = Path(config_file or "queue:sshConfig of the stack file")
    # As the emulator names the folder of this account, and did before.
    is_emulated = file.parent.parent == Home.of().root and file.parent.name.startswith("emulator-")
    return Queue(login_host(str(file)), is_emulated)


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
