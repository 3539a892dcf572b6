"""Runs before a queue: checked, submitted, waited for, observed and ended on the site's login host."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent.batch import SECRETS, commands
from agent.batch.login import ASKED_S, GONE_S, LOCK_TIMEOUT_S, SUBMIT_TIMEOUT_S
from agent.batch.records import FOLDER, owner_of, record_of
from core.plain_text import count, duration, note
from core.waiting import wait_until
from microcluster.analysis.run_state import place_in_queue
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.run_spec import RunFolder
from microcluster.remote.errors import CommandError, Completed, RemoteError
from microcluster.remote.host import Host

PRELUDE_FILE = ".microcluster/prelude"
INSIDE = f'[ ! -r ~/{PRELUDE_FILE} ] || . ~/{PRELUDE_FILE}; exec "$@"'
"""What runs in the login shell: its modules are those that the stack file names. `module` exists in no other shell."""
WRITE_PRELUDE = 'umask 077; mkdir -p ~/.microcluster "$1" && cat > ~/' + PRELUDE_FILE
RUN_DIGITS = 5
"""Torque cuts a name after 15 characters: `mc`, the mark's eight digits, and so many of the run's."""
ASK_TIMEOUT_S = 90.0
SUBMIT_LIMIT_S = LOCK_TIMEOUT_S + SUBMIT_TIMEOUT_S + 2 * ASK_TIMEOUT_S
LEAVE_LIMIT_S = LOCK_TIMEOUT_S + ASKED_S + GONE_S + 2 * ASK_TIMEOUT_S
"""Each longer than what the agent there waits for, so that its own sentence arrives."""
READ_RECORDS = (
    f'cd {FOLDER} 2>/dev/null && for file in */*.json; do [ ! -e "$file" ] || {{ cat "$file"; echo; }}; done; true'
)
READ_EXTENDED = f'cat {FOLDER}/"$1"/extended 2>/dev/null; true'
WRITE_EXTENDED = f'cd {FOLDER}/"$1" && cat >extended.new && mv -f extended.new extended'
# Prints one line of JSON. Python 2 has no venv: without requirements it needs none.
INTERPRETERS = """
lacks='' version=''
lack() { lacks="$lacks${lacks:+, }\\"$1\\""; }
python3 -c 'import sys; sys.exit(sys.version_info < (3, 5))' 2>/dev/null || lack 'there is no python3 of 3.5 or newer, which carries out every run'
if version=$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null); then
  case $version in
    2.*) [ "$2" = none ] || lack "$1 is Python $version, for which job.requirements cannot be installed: leave them out" ;;
    *) "$1" -c 'import venv' 2>/dev/null || lack "$1 has no module venv" ;;
  esac
else lack "there is no $1"
fi
echo "{\\"version\\": \\"$version\\", \\"lacks\\": [$lacks]}"
"""
WAIT_EVERY_S, LONGEST_WAIT_S = 5.0, 30 * 86400.0


def job_name(mark: str, run: str) -> str:
    """Return the name of a run's job, by which the next command finds it."""
    return f"mc{mark}{run[:RUN_DIGITS]}"


def inside(
    host: Host, argv: Sequence[str], *, timeout_s: float = ASK_TIMEOUT_S, accept: Sequence[int] = (0,)
) -> Completed:
    """Run ``argv`` in a login shell with the site's modules."""
    return host.run(("bash", "-l", "-c", INSIDE, "inside", *argv), timeout_s=timeout_s, accept=accept)


def listing(host: Host, argv: Sequence[str]) -> str:
    """Return what a command of the queue prints."""
    done = inside(host, argv, accept=range(256))
    if not commands.is_answer(done.exit_code):
        raise CommandError(str(host), argv, done)
    return done.stdout


def prepare(host: Host, cluster: ClusterFacts) -> None:
    """Write down which modules are loaded, and refuse what the live queue can never run.

    Raises:
        RemoteError: with every reason; nothing was submitted.
    """
    queue = cluster.queue
    assert queue
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
    job = cluster.job
    assert job
    python, needs = getattr(job, "python", None) or "python3", "pip" if getattr(job, "requirements", ()) else "none"
    found = _answer(host, inside(host, ("sh", "-c", INTERPRETERS, "interpreters", python, needs)))
    version, lacks = str(found["version"]), list(found["lacks"])
    if version.startswith("2") and job.preflight == "run":
        lacks.append(
            f"{python} is Python {version}, with which the preflight on every rank cannot run: give job.preflight: 'skip: Python 2'"
        )
    if lacks:
        modules = ", ".join(cluster.queue.modules if cluster.queue else ()) or "no module"
        raise RemoteError(
            f"asking {host.facts.name} for Python with {modules} loaded: {'; '.join(lacks)}. Nothing was submitted. Change job.python or "
            "cluster.modules."
        )


def jobs_of(host: Host, owner: str = "") -> list[tuple[commands.Job, dict[str, Any]]]:
    """Return this person's living jobs with a record, of one stack (STACK-MARK) or of all; no other job is ever touched."""
    listed, known, found = commands.jobs(listing(host, commands.LIST)), records(host), []
    for job in listed:
        record = record_of(job, known) if commands.is_of(job, host.user) and job.state in commands.LIVING else None
        if record and owner in ("", owner_of(record)):
            found.append((job, record))
    return found


def request_of(cluster: ClusterFacts) -> dict[str, Any]:
    """Return what is asked of the queue for a run, as the agent reads it."""
    queue = cluster.queue
    assert queue and cluster.run
    return {
        "name": job_name(cluster.mark, cluster.run),
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
    script = (
        '[ ! -e "$1/agent/__main__.py" ] && echo \'{"exists": false}\' || exec python3 "$1/agent" batch.login look "$1"'
    )
    return _answer(host, inside(host, ("sh", "-c", script, "look", folder)))


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

    what = f"queue {cluster.queue.name if cluster.queue else ''} on {host.facts.name}"
    wait_until(what, probe, timeout_s=LONGEST_WAIT_S, every_s=WAIT_EVERY_S)


def leave(host: Host, folder: str, owner: str) -> dict[str, str]:
    """End a stack's job of the run in a folder with its processes, and see it leave the queue.

    Returns:
        {node or job: reason} for what is not proved.
    """
    answer = _agent(host, "leave", folder, owner, timeout_s=LEAVE_LIMIT_S)
    unclear = {node: why for node, why in answer["nodes"].items() if why}
    return unclear | {f"job {number}": "it is still in the queue" for number in answer["left"]}


def records(host: Host) -> list[dict[str, Any]]:
    """Return what this person's jobs were asked for, each with every start of it and its end, as the jobs wrote them down."""
    lines = [json.loads(line) for line in host.run(("sh", "-c", READ_RECORDS)).stdout.splitlines() if line[:1] == "{"]
    lives = sorted((line for line in lines if "submitted" not in line), key=lambda life: life["started"])
    return [
        {**line, "lives": [life for life in lives if (life["id"], life["name"]) == (line["id"], line["name"])]}
        for line in lines
        if "submitted" in line
    ]


def extended(host: Host, owner: str) -> list[str]:
    """Return the words that `extend` has written for a stack; none where it has not."""
    return host.run(("sh", "-c", READ_EXTENDED, "extended", owner)).stdout.split()


def extend(host: Host, owner: str, words: Sequence[str]) -> None:
    """Write down by how much a stack's lease was extended, and for which jobs, where every guard reads it."""
    host.run(("sh", "-c", WRITE_EXTENDED, "extend", owner), stdin=" ".join(words))


def forget_secrets(host: Host, owner: str) -> None:
    """Remove the secrets of the stack's runs, which a job that was killed has left on the site's disk."""
    folders = {each["folder"] for each in records(host) if owner_of(each) == owner}
    if folders:
        host.run(("rm", "-rf", *(f"{folder}/{SECRETS}" for folder in sorted(folders))))


def _agent(host: Host, verb: str, folder: str, *more: str, timeout_s: float) -> dict[str, Any]:
    argv = ("python3", f"{folder}/agent", "batch.login", verb, folder, *more)
    return _answer(host, inside(host, argv, timeout_s=timeout_s))


def _answer(host: Host, done: Completed) -> dict[str, Any]:
    lines = done.stdout.strip().splitlines() or ["{}"]
    found: dict[str, Any] = json.loads(lines[-1])  # A login shell may greet before.
    if "failed" in found:
        raise RemoteError(f"asking the queue on {host.facts.name}: {found['failed']}")
    return found


def _reasons(host: Host, cluster: ClusterFacts) -> Iterator[str]:
    """Yield why the live queue can never run what the stack file asks for."""
    queue = cluster.queue
    assert queue
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
    fit = [node for node in nodes if commands.usable(node) and node.processors >= queue.processors]
    if len(fit) < queue.nodes:
        yield f"{len(fit)} of its {count(len(nodes), 'node')} are up and have {queue.processors} processors"
