"""Runs before a queue: checked, submitted, waited for, observed and ended on the site's login host."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from agent.batch import SECRETS, commands
from agent.batch.login import ASKED_S, GONE_S, LOCK_TIMEOUT_S, SUBMIT_TIMEOUT_S
from agent.batch.records import FOLDER, owner_of
from core.plain_text import count, duration, note
from core.waiting import wait_until
from microcluster.analysis.run_state import place_in_queue
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.run_spec import RunFolder
from microcluster.remote.errors import Completed, RemoteError
from microcluster.remote.host import Host

PRELUDE_FILE = ".microcluster/prelude"
INSIDE = f'[ ! -r ~/{PRELUDE_FILE} ] || . ~/{PRELUDE_FILE}; exec "$@"'
"""What runs in the login shell: its modules are those that the stack file names. `module` exists in no other shell."""
WRITE_PRELUDE = 'umask 077; mkdir -p ~/.microcluster "$1" && cat > ~/' + PRELUDE_FILE
FOLDER_DIGITS = 5
"""Torque cuts a name after 15 characters: `mc`, the mark's eight digits, and so many of the run's folder."""
ASK_TIMEOUT_S = 90.0
SUBMIT_LIMIT_S = LOCK_TIMEOUT_S + SUBMIT_TIMEOUT_S + 2 * ASK_TIMEOUT_S
LEAVE_LIMIT_S = LOCK_TIMEOUT_S + ASKED_S + GONE_S + 2 * ASK_TIMEOUT_S
"""Each longer than what the agent there waits for, so that its own sentence arrives."""
READ_RECORDS = f"cat {FOLDER}/*.json 2>/dev/null; true"
NEW_ENOUGH = "import sys; sys.exit(sys.version_info < (3, 5))"
PYTHON_3 = "import sys; sys.exit(sys.version_info < (3,))"
WAIT_EVERY_S, LONGEST_WAIT_S = 5.0, 30 * 86400.0


def job_name(cluster: ClusterFacts) -> str:
    """Return the name of a run's job: two stacks with one key have one mark, and may carry out the same run in two folders."""
    return f"mc{cluster.mark}{sha256(RunFolder(cluster).path.encode()).hexdigest()[:FOLDER_DIGITS]}"


def inside(
    host: Host, argv: Sequence[str], *, timeout_s: float = ASK_TIMEOUT_S, accept: Sequence[int] = (0,)
) -> Completed:
    """Run ``argv`` in a login shell with the site's modules."""
    return host.run(("bash", "-l", "-c", INSIDE, "inside", *argv), timeout_s=timeout_s, accept=accept)


def listing(host: Host, argv: Sequence[str]) -> str:
    """Return what a command of the queue prints."""
    return inside(host, argv, accept=commands.ANSWERS).stdout


def prepare(host: Host, cluster: ClusterFacts) -> None:
    """Write down which modules are loaded, and refuse what the live queue can never run.

    Raises:
        RemoteError: with every reason; nothing was submitted.
    """
    queue = cluster.queue
    text = "".join(f"module load {module} || exit\n" for module in queue.modules)
    host.run(("sh", "-c", WRITE_PRELUDE, "prelude", cluster.mount_point), stdin=text)
    found = list(_reasons(host, cluster))
    if found:
        raise RemoteError(
            f"asking {host.facts.name} for {count(queue.nodes, 'node')} of queue {queue.name}: {'; '.join(found)}. Such a job would wait "
            "for ever, so nothing was submitted. Change the cluster section of the stack file."
        )


def check_interpreters(host: Host, cluster: ClusterFacts) -> None:
    """Refuse a run whose interpreter, or the agent's, is not there with the modules, before anything is submitted.

    Raises:
        RemoteError: with every reason.
    """
    job, lacks = cluster.job, []
    python = getattr(job, "python", None) or "python3"

    def succeeds(program: str, code: str) -> bool:
        return inside(host, (program, "-c", code), accept=range(256)).exit_code == 0

    if not succeeds("python3", NEW_ENOUGH):
        lacks.append("there is no python3 of 3.5 or newer, which carries out every run")
    if not succeeds(python, ""):
        lacks.append(f"there is no {python}")
    elif not succeeds(python, PYTHON_3):
        if getattr(job, "requirements", ()):
            lacks.append(f"{python} is Python 2, for which job.requirements cannot be installed: leave them out")
        if job.preflight == "run":
            lacks.append(
                f"{python} is Python 2, with which the preflight on every rank cannot run: give job.preflight: 'skip: Python 2'"
            )
    elif not succeeds(python, "import venv"):
        lacks.append(f"{python} has no module venv")
    if lacks:
        modules = ", ".join(cluster.queue.modules) or "no module"
        raise RemoteError(
            f"asking {host.facts.name} for Python with {modules} loaded: {'; '.join(lacks)}. Nothing was submitted. Change job.python or "
            "cluster.modules."
        )


def jobs_of(host: Host, owner: str = "") -> list[tuple[commands.Job, dict[str, Any]]]:
    """Return this person's living jobs with a record, of one stack (STACK-MARK) or of all; no other job is ever touched."""
    listed = commands.living(commands.jobs(listing(host, commands.LIST)), host.user)
    known = {each["name"]: each for each in records(host) if "started" not in each and owner in ("", owner_of(each))}
    return [(job, known[job.name]) for job in listed if job.name in known]


def request_of(cluster: ClusterFacts) -> dict[str, Any]:
    """Return what is asked of the queue for a run, as the agent reads it."""
    queue = cluster.queue
    return {
        "name": job_name(cluster),
        "stack": cluster.stack,
        "mark": cluster.mark,
        "run": cluster.run,
        "queue": queue.name,
        "nodes": queue.nodes,
        "processors": queue.processors,
        "walltime": queue.walltime_s,
        "interface": cluster.interface,
    }


def submit(host: Host, cluster: ClusterFacts) -> str:
    """Submit the placed run, unless its job is in the queue already; return "submitted" or "found" with its number."""
    folder = RunFolder(cluster).path
    answer = _agent(host, "submit", folder, timeout_s=SUBMIT_LIMIT_S)
    if "refused" in answer:
        raise RemoteError(
            f"submitting run {cluster.run} on {host.facts.name}: the queue refused it: {answer['refused']}. Change the cluster section "
            "of the stack file, then run the same command again."
        )
    return f"{'submitted' if answer['new'] else 'found'} as job {answer['job']}"


def look(host: Host, cluster: ClusterFacts) -> Mapping[str, Any]:
    """Return the snapshot of the run with its job's place in the queue."""
    folder = RunFolder(cluster).path
    if host.run(("test", "-e", f"{folder}/agent/__main__.py"), accept=(0, 1)).exit_code:
        return {"exists": False}
    return _agent(host, "look", folder)


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


def leave(host: Host, folder: str, owner: str) -> dict[str, str]:
    """End a stack's job of the run in a folder with its processes, and see it leave the queue.

    Returns:
        {node or job: reason} for what is not proved.
    """
    answer = _agent(host, "leave", folder, owner, timeout_s=LEAVE_LIMIT_S)
    return {what: why for what, why in answer.items() if why}


def end(host: Host, folders: Collection[str], owner: str) -> dict[str, str]:
    """Leave the queue with a stack's runs in these folders; return {node: reason} for what is not proved.

    Raises:
        RemoteError: the queue still shows a job of one of them.
    """
    unclear: dict[str, str] = {}
    for folder in folders:
        unclear |= leave(host, folder, owner)
    there = [job.number for job, record in jobs_of(host, owner) if record["folder"] in folders] if folders else []
    if there:
        raise RemoteError(
            f"ending job {', '.join(there)} of {owner}: still in the queue ({unclear}). Nothing else was done. Run the same command again."
        )
    return unclear


def records(host: Host) -> list[dict[str, Any]]:
    """Return what was asked for this person's runs, and, with "started", every start of a job of theirs, as it wrote it down."""
    lines = host.run(("sh", "-c", READ_RECORDS)).stdout.splitlines()
    return [json.loads(line) for line in lines if line[:1] == "{"]


def forget_secrets(host: Host, owner: str) -> None:
    """Remove the secrets of the stack's runs, which a job that was killed has left on the site's disk."""
    folders = {each["folder"] for each in records(host) if owner_of(each) == owner}
    if folders:
        host.run(("rm", "-rf", *(f"{folder}/{SECRETS}" for folder in sorted(folders))))


def _agent(host: Host, verb: str, folder: str, *more: str, timeout_s: float = ASK_TIMEOUT_S) -> dict[str, Any]:
    done = inside(host, ("python3", f"{folder}/agent", "batch.login", verb, folder, *more), timeout_s=timeout_s)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])  # A login shell may greet before.
    if "failed" in found:
        raise RemoteError(f"asking the queue on {host.facts.name}: {found['failed']}")
    return found


def _reasons(host: Host, cluster: ClusterFacts) -> Iterator[str]:
    """Yield why the live queue can never run what the stack file asks for."""
    queue = cluster.queue
    known = commands.queues(listing(host, commands.LIST_QUEUES))
    if queue.name in known:
        limit, most = known[queue.name].walltime_s, known[queue.name].nodes
        if limit and queue.walltime_s > limit:
            yield f"the walltime of {duration(queue.walltime_s)} is over the queue's {duration(limit)}"
        if most and queue.nodes > most:
            yield f"the queue grants at most {count(most, 'node')}"
    else:
        yield f"it has no queue {queue.name}; it has {', '.join(known) or 'none'}"
    nodes = commands.nodes(listing(host, commands.LIST_NODES))
    fit = [node for node in nodes if node.is_up and node.processors >= queue.processors]
    if len(fit) < queue.nodes:
        yield f"{len(fit)} of its {count(len(nodes), 'node')} are up and have {queue.processors} processors"
