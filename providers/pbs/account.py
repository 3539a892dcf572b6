"""What a queue says to the commands that list, delete and count: nothing is ordered here, a step submits."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from agent.batch import commands
from agent.batch.records import SEEN_EVERY_S, owner_of
from core.home import Home, Owner
from core.waiting import NotReadyError
from microcluster.remote import queue
from microcluster.remote.errors import RemoteError
from microcluster.remote.host import Host
from microcluster.remote.openssh import login_host
from providers.rental.account import Account, Extension, Identity, Resource
from providers.rental.errors import AccountError, ProviderError
from providers.rental.receipt import Charge

JOB, CURRENCY = "job", "node hours"
HOUR_S = Decimal(3600)
EMULATED = "emulator-pbs"
"""The folder of the account that is emulated on this computer, as the emulator names it."""


class Queue(Account):
    """A person's jobs on one site."""

    machine = JOB

    def __init__(self, login: Host, *, is_emulated: bool = False) -> None:
        self.login, self._is_emulated = login, is_emulated

    def whoami(self) -> Identity:
        """Say whose jobs they are, after a login."""
        with _reading("the login host"):
            self.login.connect()
        where = f"{self.login.user}@{self.login.address}"
        return Identity(where, self.login.facts.name, self.login.user, where, self._is_emulated)

    def resources(self, owner: Owner | None = None, kind: str | None = None) -> list[Resource]:
        """List the living jobs of a stack, or of every stack of this person's."""
        found = []
        with _reading("the queue"):
            jobs = queue.jobs_of(self.login, str(owner or ""))
        for job, record in jobs:
            whose, is_billed = Owner(record["stack"], record["mark"]), job.state not in commands.WAITING
            since = _moment(record["submitted"])
            found.append(Resource(JOB, job.number, job.name, whose, is_billed=is_billed, since=since, row=record))
        return found

    def charges(self, owner: Owner, known: Iterable[str] = (), *, exact: bool = True) -> list[Charge]:
        """List the node hours of every start of every job, by what the jobs themselves wrote down."""
        with _reading("the bill"):
            jobs, records = queue.jobs_of(self.login, str(owner)), queue.records(self.login)
        running, now = {job.number for job, _ in jobs if job.state not in commands.WAITING}, datetime.now(UTC)
        return [
            charge(record, number, now, is_running=record["id"] in running)
            for record in records
            if owner_of(record) == str(owner)
            for number in range(len(record["lives"]))
        ]

    def extension(self, owner: Owner, new: Extension | None = None) -> Extension:
        """Read it beside the records of the stack's jobs, or write it there; it holds for the jobs that were alive then."""
        with _reading("how far the lease was extended"):
            numbers = [job.number for job, _ in queue.jobs_of(self.login, str(owner))]
            if new is not None and not numbers:
                raise AccountError(f"extending stack {owner.stack}: it has no job in the queue.")
            if new is not None:
                queue.extend(self.login, str(owner), (new.word, *numbers))
                return new
            word, *extended = queue.extended(self.login, str(owner)) or [""]
        return Extension.read(word) if set(extended) & set(numbers) else Extension()

    def end(self, resource: Resource) -> None:
        """End the job with its processes, and see it leave the queue."""
        with _reading(f"job {resource.id}"):
            unclear = queue.leave(self.login, resource.row["folder"], str(resource.owner))
        still = [f"{what}: {why}" for what, why in unclear.items() if what.startswith("job ")]
        if still:
            raise ProviderError(f"ending job {resource.id}: {'; '.join(still)}. Run the same command again.")


def account_of(config_file: str | None, exported: Mapping[str, str]) -> Queue:
    """Return the account on the login host that the file names; nobody is called yet.

    Raises:
        ProviderError: it names none.
    """
    if config_file is None or not Path(config_file).is_file():
        raise ProviderError(
            f"opening the site: {config_file or 'pbs:sshConfig of the stack file'} is no file. Write an OpenSSH configuration whose "
            "first Host is the login host, with HostName, User and IdentityFile."
        )
    path = Path(config_file)
    is_emulated = path.parent.name == EMULATED and path.is_relative_to(Home.of().root)
    with _reading("the login host"):
        return Queue(login_host(config_file, None), is_emulated=is_emulated)


def charge(record: Mapping[str, Any], number: int, now: datetime, *, is_running: bool) -> Charge:
    """Return the node hours of one start of a job; one that was killed counts until shortly after it was last seen.

    Args:
        number: of the start, from 0.
        is_running: whether the queue shows the job as running.
    """
    life, later = record["lives"][number], record["lives"][number + 1 :]
    is_open = is_running and not later and "ended" not in life
    latest = (now.timestamp(), life["started"] + record["walltime"], life.get("seen", life["started"]) + SEEN_EVERY_S)
    until = life.get("ended", min(*latest, *(other["started"] for other in later)))
    ended = now.timestamp() if is_open else max(life["started"], until)
    nodes = life.get("nodes", record["nodes"])
    again = f", started again ({number + 1})" if number else ""
    description = f"job {record['id']}{again}: {nodes} nodes of queue {record['queue']}, run {record['run']}"
    rate = Decimal(nodes)
    return Charge(
        id=record["id"],
        description=description,
        host=record["name"],
        category=JOB,
        opened=_moment(life["started"]),
        closed=None if is_open else _moment(ended),
        ends=None,
        hourly=True,
        per_hour=rate,
        per_month=Decimal(0),
        so_far=Decimal(str(round(ended - life["started"]))) / HOUR_S * rate,
        currency=CURRENCY,
    )


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """Turn a failure while ``what`` is read into a sentence for the person."""
    try:
        yield
    except (RemoteError, NotReadyError) as error:
        raise AccountError(f"reading {what}: {error}") from error
