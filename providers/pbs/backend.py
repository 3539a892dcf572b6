"""What a queue says to the commands that list, delete and count: nothing is ordered here, a step submits."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NoReturn

from agent.batch import commands
from agent.batch.records import SEEN_EVERY_S
from microcluster.remote import queue
from microcluster.remote.host import Host
from providers.rental.backend import Backend, Belonging, Claim, Found, Tell, Thing
from providers.rental.errors import ProviderError
from providers.rental.operation import Identity
from providers.rental.owner_mark import ANY_STACK, Owner
from providers.rental.receipt import Charge
from providers.rental.waiting import Deadline, Pending

JOB, CURRENCY = "job", "node hours"
MARK_DIGITS = 8
HOUR_S = Decimal(3600)


class Queue(Backend):
    """A person's jobs on one site."""

    machine, machine_label, other_kinds = JOB, JOB, ()
    lists_lag_s, longest_call_s = 0.0, queue.ASK_TIMEOUT_S

    def __init__(self, login: Host) -> None:
        self.login, self.username = login, login.user

    def identity(self) -> Identity:
        """Say whose jobs they are, after a login."""
        self.login.connect()
        where = f"{self.login.user}@{self.login.address}"
        return Identity(where, self.login.facts.name, self.login.user, where)

    def list(self, kind: str, owner: Owner) -> Sequence[Thing]:
        """List the living jobs with the mark."""
        return [self._thing(job, owner) for job in queue.jobs_of(self.login, owner.stack, owner.mark)]

    def find(self, kind: str, object_id: str, owner: Owner, *, fresh: bool, max_age_s: float = 0.0) -> Found:
        """Read one job; None when the queue does not show it as living."""
        return next((thing for thing in self.list(kind, owner) if thing.id == object_id), None)

    def order(self, order: Any) -> NoReturn:
        """Refuse: the step `start-job` submits, with the run's folder in place."""
        raise ProviderError("submitting a job: only `make up` does that.")

    def read_claim(self, owner: Owner, key_ids: Sequence[str], max_age_s: float) -> Claim | None:
        """Return None: a lock on the login host lets one command submit at a time."""

    def write_claim(self, owner: Owner, claim: Claim) -> None:
        """Do nothing, for the same reason."""

    def cancel(self, thing: Thing) -> Pending | None:
        """End the job with its processes, and see it leave the queue."""
        self._end(thing.id, thing.owner)
        return None

    def everything(self) -> Sequence[Belonging]:
        """List the living jobs with any mark of this person's."""
        found = []
        for job, record in queue.all_jobs(self.login):
            if record:
                owner = Owner(record["stack"], record["mark"])
                is_billed, since = job.state not in commands.WAITING, _moment(record["submitted"])
                found.append(Belonging(JOB, job.number, job.name, owner, since, is_billed=is_billed))
            elif _mark_in(job.name):
                found.append(Belonging(JOB, job.number, job.name, Owner(ANY_STACK, _mark_in(job.name))))
        return found

    def remove(self, kind: str, object_id: str, owner: Owner, deadline: Deadline, tell: Tell) -> None:
        """End one job that bears the mark."""
        self._end(object_id, owner)

    def charges(self, owner: Owner, known_ids: Iterable[str] = ()) -> Sequence[Charge]:
        """List the node hours of every start of every job, by what the jobs themselves wrote down."""
        jobs, now = queue.jobs_of(self.login, owner.stack, owner.mark), datetime.now(UTC)
        running = {job.number for job in jobs if job.state not in commands.WAITING}
        return [
            charge(record, number, now, is_running=record["id"] in running)
            for record in queue.records(self.login)
            if owner.has(Owner(record["stack"], record["mark"]))
            for number in range(len(record["lives"]))
        ]

    def _thing(self, job: commands.Job, owner: Owner) -> Thing:
        label = f"job {job.number} ({job.name})"
        return Thing(JOB, job.number, job.name, owner, label, is_billed=job.state not in commands.WAITING)

    def _end(self, number: str, owner: Owner) -> None:
        jobs = [job for job in queue.jobs_of(self.login, owner.stack, owner.mark) if job.number == number]
        unclear = [found for job in jobs for found in queue.end(self.login, job).items()]
        still = [f"{what}: {why}" for what, why in unclear if what.startswith("job ")]
        if still:
            raise ProviderError(f"ending job {number}: {'; '.join(still)}. Run the same command again.")


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
        *(record["id"], description, record["name"], JOB, _moment(life["started"])),
        *(None if is_open else _moment(ended), None),
        hourly=True,
        per_hour=rate,
        per_month=Decimal(0),
        so_far=Decimal(str(round(ended - life["started"]))) / HOUR_S * rate,
        currency=CURRENCY,
    )


def _mark_in(name: str) -> str:
    """Return the mark in a job's name, or an empty text."""
    mark = name.removeprefix(queue.MARK_BEGINS)[:MARK_DIGITS]
    hexadecimal = len(mark) == MARK_DIGITS and not set(mark) - set("0123456789abcdef")
    return mark if name.startswith(queue.MARK_BEGINS) and len(name) == queue.NAME_LENGTH and hexadecimal else ""


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
