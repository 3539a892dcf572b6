"""Runs before a queue: checked, submitted, waited for, observed and ended on the site's login host."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Annotated, Any, NotRequired

from pydantic import ConfigDict, Discriminator, Field, Tag, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from agent.batch import commands
from agent.batch.login import LOCK_TIMEOUT_S, SUBMIT_TIMEOUT_S
from agent.batch.records import FOLDER, owner_of
from agent.run.queue_nodes import SECRETS
from microcluster.analysis.run_state import place_in_queue
from microcluster.core.plain_text import count, duration, note
from microcluster.core.polling import wait_until
from microcluster.jobs.cluster_facts import ClusterFacts, Queue
from microcluster.jobs.own_program import OwnProgram
from microcluster.jobs.run_spec import RunFolder
from microcluster.remote.answers import OBJECT, read_answer, reason_of
from microcluster.remote.errors import Completed, RemoteError
from microcluster.remote.host import Host

Seconds = Annotated[int | float, Field(ge=0, lt=1e11)]


class Asked(TypedDict):
    """Request for a run, as it was submitted."""

    name: str
    stack: str
    mark: str
    run: str
    folder: str
    queue: str
    nodes: int
    walltime: Seconds
    submitted: Seconds
    extended: NotRequired[str]


class Started(Asked):
    """A start of a job, as it wrote it down: what was asked for the run, and what came of it."""

    id: str
    started: Seconds
    seen: NotRequired[Seconds]
    ended: NotRequired[Seconds]


class Rental(TypedDict):
    """A stack's last rental; it goes on with each submission until everything is closed.

    Attributes:
        first_order: the second of its first submission, by the login host's clock.
        lease_minutes: of nodes, as the stack file said at the last submission.
        extended: the word of an extension.
        ended: when everything was closed.
    """

    first_order: int
    lease_minutes: NotRequired[int | None]
    extended: NotRequired[str]
    ended: NotRequired[Seconds]


INSIDE = '[ ! -r ~/.microcluster/prelude ] || . ~/.microcluster/prelude; exec "$@"'
"""Script for the login shell, the only one with `module`: it loads the stack file's modules, then runs the command."""
WRITE_PRELUDE = 'umask 077; mkdir -p ~/.microcluster "$1" && cat > ~/.microcluster/prelude'
ASK_LIMIT_S = 90.0
CHANGE_LIMIT_S = LOCK_TIMEOUT_S + SUBMIT_TIMEOUT_S + 2 * ASK_LIMIT_S
"""Time limit of a submission or an end: longer than the agent's own, so that its sentence arrives."""
# Of what pip and git may take on the login host; and the lines of their output that an error repeats.
MAKE_LIMIT_S, MOST_SAID = 3600.0, 3
HAS_VENV, NO_VENV, PYTHON_2 = "import sys; sys.version_info > (3,) or sys.exit(2); import venv", 1, 2
"""A program, and its exit codes beside 0; a greater one is the shell's, which has not found the interpreter."""
STARTED_OR_ASKED = TypeAdapter[dict[str, Any]](
    Annotated[
        Annotated[Started, Tag("started")] | Annotated[Asked, Tag("asked")],
        Discriminator(lambda each: "started" if isinstance(each, dict) and "started" in each else "asked"),
    ],
    config=ConfigDict(extra="allow"),
)
RENTAL, SECOND = TypeAdapter(Rental), TypeAdapter(int)
READ_RECORDS = f'for file in {FOLDER}/*.json; do cat "$file"; echo; done 2>/dev/null'
"""Command that prints all records, each on its own line: so a torn record does not spoil the next one."""
APART_S = 86400.0
"""Gap before a submission by which records without a rental are of an earlier one (older versions wrote no rental)."""
WAIT_EVERY_S, LONGEST_WAIT_S = 5.0, 30 * 86400.0


def inside(host: Host, argv: Sequence[str], timeout_s: float = ASK_LIMIT_S, accept: Sequence[int] = (0,)) -> Completed:
    """Run ``argv`` in a login shell with the site's modules."""
    return host.run(("bash", "-l", "-c", INSIDE, "inside", *argv), timeout_s=timeout_s, accept=accept)


def listing(host: Host, argv: Sequence[str]) -> str:
    """Return the output of a command of the queue."""
    return inside(host, argv, accept=commands.ANSWERS).stdout


def prepare(host: Host, cluster: ClusterFacts) -> None:
    """Write down which modules are loaded, and refuse what the live queue can never run."""
    queue = cluster.queue
    text = "".join(f"module load {module} || exit\n" for module in queue.modules)
    host.run(("sh", "-c", WRITE_PRELUDE, "prelude", cluster.mount_point), stdin=text)
    asked = f"asking {host.facts.name} for {count(queue.nodes, 'node')} of queue {queue.name}"
    _refuse(asked, _reasons(host, queue), "It would wait for ever. Change the cluster section of the stack file.")


def check_interpreters(host: Host, cluster: ClusterFacts) -> None:
    """Refuse a run whose interpreter, or the agent's, is not there with the modules."""
    modules = ", ".join(cluster.queue.modules) or "no module"
    asked = f"asking {host.facts.name} for Python with {modules} loaded"
    _refuse(asked, _lacks(host, cluster.job), "Change job.python or cluster.modules.")


def make_environment(host: Host, folder: RunFolder) -> None:
    """Bring the repository and the packages of a run on the login host, where they are of another computer; the job finds them made.

    The nodes of many sites reach no repository and no package index.
    """
    if not (folder.facts.job.fetched_there or folder.facts.job.pinned):
        return
    doing = f"bringing the repository and the packages of run {folder.facts.run} on {host.facts.name}"
    note(f"{doing} ...")
    completed = inside(host, folder.document.program.make_environment, timeout_s=MAKE_LIMIT_S, accept=range(256))
    if completed.exit_code:
        said = "; ".join((completed.stdout + completed.stderr).strip().splitlines()[-MOST_SAID:])
        raise RemoteError(
            f"{doing}: {said or f'exit code {completed.exit_code}'}. Nothing was submitted. Change job.source, job.commit, job.requirements or "
            "job.python. Where the login host itself reaches no such place, clone the repository here and name that folder as job.source."
        )


def jobs_of(host: Host, owner: str = "") -> list[tuple[commands.Job, dict[str, Any]]]:
    """Return this person's living jobs with a record, of one stack (STACK-MARK) or of all; no other job is ever touched."""
    listed = commands.living(commands.jobs(listing(host, commands.LIST)), host.user)
    known = {each["name"]: each for each in records(host) if "started" not in each and owner in ("", owner_of(each))}
    return [(job, known[job.name]) for job in listed if job.name in known]


def request_of(cluster: ClusterFacts) -> dict[str, Any]:
    """Return the request to the queue for a run, as the agent reads it."""
    queue, folder = cluster.queue, RunFolder(cluster).path
    # Stacks with one key have one mark, and may carry out one run in two folders. Torque cuts a name after 15 characters.
    digits = sha256(folder.encode()).hexdigest()[:5]
    return {
        "name": f"mc{cluster.mark}{digits}",
        "stack": cluster.owner.stack,
        "mark": cluster.mark,
        "run": cluster.run,
        "folder": folder,
        "queue": queue.name,
        "nodes": queue.nodes,
        "processors": queue.processors,
        "walltime": queue.walltime_s,
        "interface": cluster.interface,
    }


def submit(host: Host, cluster: ClusterFacts) -> str:
    """Submit the placed run, unless its job is in the queue already; return "submitted" or "found" with its number.

    The stack's rental goes on with it, or begins, with the limits that the stack file says now.
    """
    owner, request = str(cluster.owner), request_of(cluster)
    rental = rental_of(host, owner) or Rental(first_order=clock(host))
    keep_rental(host, owner, {**rental, "lease_minutes": cluster.lease_minutes})
    answer = _agent(host, "submit", {**request, "extended": rental.get("extended", "")}, CHANGE_LIMIT_S)
    return f"{'submitted' if answer['new'] else 'found'} as job {answer['job']}"


def look(host: Host, cluster: ClusterFacts) -> Mapping[str, Any]:
    """Return the snapshot of the run with its job's place in the queue."""
    request = request_of(cluster)
    if host.run(("test", "-e", f"{request['folder']}/agent/__main__.py"), accept=(0, 1)).exit_code:
        return {"exists": False}
    return _agent(host, "look", request, ASK_LIMIT_S)


def wait_until_granted(host: Host, cluster: ClusterFacts) -> None:
    """Return when the queue has granted the nodes, or the job is over; say the position and the time so far."""
    shown_texts: list[str] = []

    def probe() -> bool:
        queue = look(host, cluster).get("queue")
        text = place_in_queue(queue) if queue else ""
        if text and text not in shown_texts:
            shown_texts.append(text)
            note(f"{text}; {duration(queue['waited_s'])} so far")
        return not queue

    what = f"queue {cluster.queue.name} on {host.facts.name}"
    wait_until(what, probe, timeout_s=LONGEST_WAIT_S, every_s=WAIT_EVERY_S)


def leave(host: Host, requests: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """End the jobs of runs with their processes, and see them leave the queue; return {node: reason} for what is not proved."""
    answers = [_agent(host, "leave", request, CHANGE_LIMIT_S) for request in requests]
    return {node: why for answer in answers for node, why in answer.items() if why}


def records(host: Host) -> list[dict[str, Any]]:
    """Return the requests for this person's runs, and, with "started", every start of their jobs."""
    all_records = []
    for line in filter(None, host.run(("sh", "-c", READ_RECORDS)).stdout.splitlines()):
        try:
            all_records.append(STARTED_OR_ASKED.validate_json(line))
        except ValidationError as odd:  # A program is its user there, and may write anything beside our records.
            note(f"a record in {FOLDER} of {host.facts.name} is left out ({reason_of(odd)})")
    return all_records


def clock(host: Host) -> int:
    """Return the second that it is on the login host."""
    return read_answer(SECOND, host.run(("date", "+%s")).stdout, f"asking {host.facts.name} for the time")


def cluster_name(host: Host) -> str:
    """Return the cluster's own name, which all of its login hosts say; an empty text where the queue answers and nobody says it."""
    name = commands.cluster(inside(host, commands.NAME_CLUSTER, accept=range(256)).stdout)
    if not name:
        listing(host, commands.LIST)
    return name


def rental_of(host: Host, owner: str) -> Rental | None:
    """Return the stack's rental, unless it has ended; one that an older version began is known by what its jobs wrote down."""
    try:
        rental = RENTAL.validate_json(host.run(("cat", _rental_path(owner)), accept=(0, 1)).stdout)
    except ValidationError:
        return _older(host, owner, 0.0)
    return _older(host, owner, rental["ended"]) if "ended" in rental else rental


def keep_rental(host: Host, owner: str, rental: Rental) -> None:
    """Write the rental beside the records of the jobs."""
    path = _rental_path(owner)
    host.run(("mkdir", "-p", path.rpartition("/")[0]))
    host.put(path, json.dumps(rental) + "\n", "0600")


def end_rental(host: Host, owner: str) -> None:
    """Write down that all of it is closed, so that the next submission begins another one."""
    rental = rental_of(host, owner)
    if rental:
        keep_rental(host, owner, {**rental, "ended": clock(host)})


def went_on_since(starts: Iterable[Mapping[str, Any]], submitted: float) -> float:
    """Return when what went on with a submission had begun, by the starts of the stack's jobs before it."""
    began = submitted
    for start in sorted(starts, key=lambda start: start["started"], reverse=True):
        if began - start.get("ended", start.get("seen", start["started"])) > APART_S:
            break
        began = min(began, start["started"])
    return began


def _rental_path(owner: str) -> str:
    """Name the file from the home, in which a login begins; versions before it read every `*.json` as a record."""
    return f"{FOLDER.removeprefix('~/')}/{owner}.rental"


def _older(host: Host, owner: str, closed_at: float) -> Rental | None:
    """Find what an older version has submitted since everything was closed."""
    written = [each for each in records(host) if owner_of(each) == owner and each["submitted"] > closed_at]
    if not written:
        return None
    living = [record["submitted"] for _, record in jobs_of(host, owner) if record["submitted"] > closed_at]
    now = clock(host)
    began = went_on_since([each for each in written if "started" in each], min(living, default=now))
    newest = max(written, key=lambda each: each["submitted"])
    return Rental(first_order=int(began), extended=newest.get("extended", "")) if living or began < now else None


def forget_secrets(host: Host, owner: str) -> None:
    """Remove the secrets of the stack's runs, which a job that was killed has left on the site's disk."""
    folders = {each["folder"] for each in records(host) if owner_of(each) == owner}
    if folders:
        host.run(("rm", "-rf", *(f"{folder}/{SECRETS}" for folder in sorted(folders))))


def _agent(host: Host, verb: str, request: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
    words = ("python3", f"{request['folder']}/agent", "batch.login", verb, json.dumps(request))
    done = inside(host, words, timeout_s=timeout_s)
    last = done.stdout.strip().rpartition("\n")[2]  # A login shell may greet before.
    answer = read_answer(OBJECT, last, f"asking the queue on {host.facts.name} for run {request['run']} ({verb})")
    if "failed" in answer:
        raise RemoteError(
            f"asking the queue on {host.facts.name} for run {request['run']} ({verb}): {answer['failed']}"
        )
    return answer


def _refuse(asked: str, reasons: Iterable[str], advice: str) -> None:
    found = "; ".join(reasons)
    if found:
        raise RemoteError(f"{asked}: {found}. Nothing was submitted. {advice}")


def _reasons(host: Host, queue: Queue) -> Iterator[str]:
    """Yield why the live queue can never run what the stack file asks for."""
    queues = commands.queues(listing(host, commands.LIST_QUEUES))
    if queue.name in queues:
        limit, most = queues[queue.name]
        if limit and queue.walltime_s > limit:
            yield f"the walltime of {duration(queue.walltime_s)} is over the queue's {duration(limit)}"
        if most and queue.nodes > most:
            yield f"the queue grants at most {count(most, 'node')}"
    else:
        yield f"it has no queue {queue.name}; it has {', '.join(queues) or 'none'}"
    nodes = commands.nodes(listing(host, commands.LIST_NODES))
    fit = [processors for processors in nodes if processors >= queue.processors]
    if len(fit) < queue.nodes:
        yield f"{len(fit)} of its {count(len(nodes), 'node')} are up and have {queue.processors} processors"


def _lacks(host: Host, job: OwnProgram) -> Iterator[str]:
    """Yield shortcomings of the interpreters."""

    def ended(program: str, code: str) -> int:
        return inside(host, (program, "-c", code), accept=range(256)).exit_code

    if ended("python3", "import sys; sys.exit(sys.version_info < (3, 5))"):
        yield "there is no python3 of 3.5 or newer, which carries out every run"
    python = job.python or "python3"
    code = ended(python, HAS_VENV)
    if code == PYTHON_2 and (job.requirements or job.preflight == "run"):
        yield f"{python} is Python 2: leave job.requirements out, and give job.preflight: 'skip: Python 2'"
    if code == NO_VENV:
        yield f"{python} has no module venv"
    if code > PYTHON_2:
        yield f"there is no {python}"
