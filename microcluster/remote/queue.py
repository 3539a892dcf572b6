"""Runs before a queue: checked, submitted, waited for, observed and ended on the site's login host."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from agent.batch import SECRETS, commands
from agent.batch.login import LOCK_TIMEOUT_S, SUBMIT_TIMEOUT_S
from agent.batch.records import FOLDER, owner_of
from core.plain_text import count, duration, note
from core.polling import wait_until
from microcluster.analysis.run_state import place_in_queue
from microcluster.jobs.cluster_facts import ClusterFacts, Queue
from microcluster.jobs.own_program import OwnProgram
from microcluster.jobs.run_spec import RunFolder
from microcluster.remote.answers import OBJECT, read_answer, reason_of
from microcluster.remote.errors import Completed, RemoteError
from microcluster.remote.host import Host


class Started(TypedDict):
    """A start of a job, as it wrote it down."""

    started: float
    id: str


class Asked(TypedDict):
    """What was asked for a run."""

    name: str
    stack: str
    mark: str
    folder: str


INSIDE = '[ ! -r ~/.microcluster/prelude ] || . ~/.microcluster/prelude; exec "$@"'
"""What runs in the login shell: its modules are those that the stack file names. `module` exists in no other shell."""
WRITE_PRELUDE = 'umask 077; mkdir -p ~/.microcluster "$1" && cat > ~/.microcluster/prelude'
ASK_LIMIT_S = 90.0
CHANGE_LIMIT_S = LOCK_TIMEOUT_S + SUBMIT_TIMEOUT_S + 2 * ASK_LIMIT_S
"""Longer than what the agent there waits for when it submits or leaves, so that its own sentence arrives."""
HAS_VENV, NO_VENV, PYTHON_2 = "import sys; sys.version_info > (3,) or sys.exit(2); import venv", 1, 2
"""A program, and its exit codes beside 0; a greater one is the shell's, which has not found the interpreter."""
STARTED_OR_ASKED = TypeAdapter[dict[str, Any]](Started | Asked, config=ConfigDict(extra="allow"))
WAIT_EVERY_S, LONGEST_WAIT_S = 5.0, 30 * 86400.0


def inside(host: Host, argv: Sequence[str], timeout_s: float = ASK_LIMIT_S, accept: Sequence[int] = (0,)) -> Completed:
    """Run ``argv`` in a login shell with the site's modules."""
    return host.run(("bash", "-l", "-c", INSIDE, "inside", *argv), timeout_s=timeout_s, accept=accept)


def listing(host: Host, argv: Sequence[str]) -> str:
    """Return what a command of the queue prints."""
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


def jobs_of(host: Host, owner: str = "") -> list[tuple[commands.Job, dict[str, Any]]]:
    """Return this person's living jobs with a record, of one stack (STACK-MARK) or of all; no other job is ever touched."""
    listed = commands.living(commands.jobs(listing(host, commands.LIST)), host.user)
    known = {each["name"]: each for each in records(host) if "started" not in each and owner in ("", owner_of(each))}
    return [(job, known[job.name]) for job in listed if job.name in known]


def request_of(cluster: ClusterFacts) -> dict[str, Any]:
    """Return what is asked of the queue for a run, as the agent reads it."""
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
    """Submit the placed run, unless its job is in the queue already; return "submitted" or "found" with its number."""
    answer = _agent(host, "submit", request_of(cluster), CHANGE_LIMIT_S)
    return f"{'submitted' if answer['new'] else 'found'} as job {answer['job']}"


def look(host: Host, cluster: ClusterFacts) -> Mapping[str, Any]:
    """Return the snapshot of the run with its job's place in the queue."""
    request = request_of(cluster)
    if host.run(("test", "-e", f"{request['folder']}/agent/__main__.py"), accept=(0, 1)).exit_code:
        return {"exists": False}
    return _agent(host, "look", request, ASK_LIMIT_S)


def wait_until_granted(host: Host, cluster: ClusterFacts) -> None:
    """Return when the queue has granted the nodes, or the job is over; say the position and the time so far."""
    said: list[str] = []

    def probe() -> bool:
        queue = look(host, cluster).get("queue")
        text = place_in_queue(queue) if queue else ""
        if text and text not in said:
            said.append(text)
            note(f"{text}; {duration(queue['waited_s'])} so far")
        return not queue

    what = f"queue {cluster.queue.name} on {host.facts.name}"
    wait_until(what, probe, timeout_s=LONGEST_WAIT_S, every_s=WAIT_EVERY_S)


def leave(host: Host, requests: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """End the jobs of runs with their processes, and see them leave the queue; return {node: reason} for what is not proved."""
    answers = [_agent(host, "leave", request, CHANGE_LIMIT_S) for request in requests]
    return {node: why for answer in answers for node, why in answer.items() if why}


def records(host: Host) -> list[dict[str, Any]]:
    """Return what was asked for this person's runs, and, with "started", every start of a job of theirs, as it wrote it down."""
    lines = host.run(("sh", "-c", f"cat {FOLDER}/*.json 2>/dev/null; true")).stdout.splitlines()
    found = []
    for line in lines:
        try:
            found.append(STARTED_OR_ASKED.validate_json(line))
        except ValidationError as odd:  # A program is its user there, and may write anything beside our records.
            note(f"a record in {FOLDER} of {host.facts.name} is left out ({reason_of(odd)})")
    return found


def forget_secrets(host: Host, owner: str) -> None:
    """Remove the secrets of the stack's runs, which a job that was killed has left on the site's disk."""
    folders = {each["folder"] for each in records(host) if owner_of(each) == owner}
    if folders:
        host.run(("rm", "-rf", *(f"{folder}/{SECRETS}" for folder in sorted(folders))))


def _agent(host: Host, verb: str, request: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
    words = ("python3", f"{request['folder']}/agent", "batch.login", verb, json.dumps(request))
    done = inside(host, words, timeout_s=timeout_s)
    last = done.stdout.strip().rpartition("\n")[2]  # A login shell may greet before.
    found = read_answer(OBJECT, last, f"asking the queue on {host.facts.name} for run {request['run']} ({verb})")
    if "failed" in found:
        raise RemoteError(f"asking the queue on {host.facts.name} for run {request['run']} ({verb}): {found['failed']}")
    return found


def _refuse(asked: str, reasons: Iterable[str], advice: str) -> None:
    found = "; ".join(reasons)
    if found:
        raise RemoteError(f"{asked}: {found}. Nothing was submitted. {advice}")


def _reasons(host: Host, queue: Queue) -> Iterator[str]:
    """Yield why the live queue can never run what the stack file asks for."""
    known = commands.queues(listing(host, commands.LIST_QUEUES))
    if queue.name in known:
        limit, most = known[queue.name]
        if limit and queue.walltime_s > limit:
            yield f"the walltime of {duration(queue.walltime_s)} is over the queue's {duration(limit)}"
        if most and queue.nodes > most:
            yield f"the queue grants at most {count(most, 'node')}"
    else:
        yield f"it has no queue {queue.name}; it has {', '.join(known) or 'none'}"
    nodes = commands.nodes(listing(host, commands.LIST_NODES))
    fit = [processors for processors in nodes if processors >= queue.processors]
    if len(fit) < queue.nodes:
        yield f"{len(fit)} of its {count(len(nodes), 'node')} are up and have {queue.processors} processors"


def _lacks(host: Host, job: OwnProgram) -> Iterator[str]:
    """Yield what the interpreters cannot do."""

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
