"""Starts, observes and stops a run; the supervisor on the launcher carries it out."""

import json
import re
import secrets as random
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, FailFast, Field, TypeAdapter
from typing_extensions import TypedDict

import agent
from agent import IN_CONTAINER
from agent.batch.records import owner_of
from agent.formats.checkpoints.parts import OVER
from agent.kill_run import NO_CONTAINER, STOPPED, still_there
from agent.run import document
from agent.run.queue_nodes import STOP
from agent.supervise.checkpoint_watch import COPY_TIMEOUT_S
from microcluster.analysis.run_state import OUTCOME, Outcome, judge
from microcluster.core.plain_text import count, note, printable
from microcluster.core.polling import NotReadyError, wait_until
from microcluster.jobs.cluster_facts import ClusterFacts, MachineLimits
from microcluster.jobs.run_spec import RunFolder, container_disk
from microcluster.remote import queue
from microcluster.remote.answers import OBJECT, read_answer
from microcluster.remote.docker import ensure_container
from microcluster.remote.errors import RemoteError, UnreachableError
from microcluster.remote.file_transfer import send_data
from microcluster.remote.host import Host, wait_for_ssh
from microcluster.remote.parallel import on_all
from microcluster.remote.ssh_mesh import ensure_ranks_reach
from microcluster.remote.training_image import image_id
from microcluster.remote.tree_transfer import send_tree

AGENT = Path(agent.__file__).parent
PLACE = AGENT / "place_files.py"
SHIPPED = tuple(sorted(AGENT.rglob("*.py")))
"""The whole package, copied into the run's folder; it runs on Python 3.5 and newer."""
LOOK = """[ ! -e "$1/agent/__main__.py" ] || exec python3 "$1/agent" records.run_snapshot "$1"
[ -e "$1/job.json" ] && echo '{"exists": true, "job": {}}' || echo '{"exists": false}'"""
"""Script that prints the snapshot of a run; the folder of an earlier version has no agent."""
READ_WORD = 'for file; do [ ! -s "$file" ] || exec cat "$file"; done'
KEEP_WORD = """set -eu; word=$1; shift
for file; do mkdir -p "${file%/*}"; echo "$word" > "$file.new"; mv -f "$file.new" "$file"; done"""
WORD, ADDRESS = re.compile(r"[0-9a-f]{6}"), re.compile(r"\d+(\.\d+){3}")
SNAPSHOT_BYTES = 2 << 20
SEPARATE_RUN = f"""set -eu; run=${{1##*/}}; new=${{1%/*}}/.$run; [ -e "$3" ] || ln -sfn "$2/${{3##*/}}" "$3"; [ ! -L "$1/{IN_CONTAINER}" ] || exit 0
rm -rf "$new"; mkdir -p "$new" "$2/runs"; ln -s "$2/runs/$run" "$new/{IN_CONTAINER}"
for name in word job.log progress.jsonl samples.jsonl preflight.json exit_code failure.json stopped guard.json not_loaded.json; do
  [ -L "$1/$name" ] || [ ! -f "$1/$name" ] || cp "$1/$name" "$new"
done
cd "$2/runs"; [ "$(pwd -P)" = "$(cd "$2"; pwd -P)/runs" ]; [ ! -e "$run" ] || run=$run.$(date +%s)
[ ! -d "$1" ] || mv -T "$1" "./$run"; mv -T "$new" "$1" """
"""Script that moves a run's folder into the container, and makes one for the machine with records and a link to the data; follows no link."""
ALIVE = ("preparing", "running")
START_TIMEOUT_S, PLACE_TIMEOUT_S = 60.0, 3600.0
OBSERVE_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 40.0
STOP_ROLE_S = 10.0
STOP_ALL_S = 50.0
"""Stopping delays a cancellation no longer; hosts that did not answer are named."""


class Killed(TypedDict):
    """Output of `kill_run`: the number of ended processes, and those that would not end."""

    ended: int
    left: Annotated[list[int], FailFast(), Field(max_length=10_000)]
    unseen: Annotated[str, Field(max_length=10_000)]


KILLED = TypeAdapter(Killed)


Texts = Annotated[list[Annotated[str, Field(max_length=200)]], FailFast(), Field(max_length=10_000)]
Options = {"worlds": Annotated[list[Annotated[int, Field(ge=1, le=10**6)]], FailFast(), Field(max_length=1000)]}
PARTS = {
    "machines": TypedDict("LastMachines", {"names": Texts, "addresses": Texts}, total=False),
    "checkpoints": TypedDict("Saved", {"options": TypedDict("Options", Options, total=False)}, total=False),
}
LAST = TypeAdapter(Annotated[TypedDict("LastAttempt", PARTS), BeforeValidator(document.grouped)])
"""Nodes of a run's last attempt in its document, which may be one of an earlier version."""
READ_JOB = f"""[ -e "$0/{document.FILE}" ] && exec cat "$0/{document.FILE}" || echo '{{}}'"""


def start_job(hosts: Sequence[Host], cluster: ClusterFacts, secrets: Mapping[str, str] | None = None) -> str:
    """Let the run be carried out; return "started", "running" or "finished".

    Args:
        secrets: what the person has exported of the environment variables that a program may be given.
    """
    if cluster.queue:
        return _start_queued(hosts[0], cluster, secrets)
    container = cluster.container
    worlds = _go_on(hosts[0], cluster) if cluster.job.any_world else ()
    on_all(hosts, lambda host: (wait_for_ssh(host), ensure_ranks_reach(host, hosts, cluster)))
    _end_all(hosts, cluster, "all-but")  # A cluster carries one run.
    launcher = hosts[0]
    if _keeps_its_version(launcher, cluster):
        return "running"
    images = on_all(hosts, lambda host: image_id(host, container.tag) or "none") if container else ()
    send_data(hosts, cluster)
    folder = RunFolder(cluster, tuple(images), _ensure_word(hosts, cluster), worlds)
    _ensure_secrets(launcher, folder, secrets)
    texts = folder.texts()
    place(launcher, folder.path, texts)
    state_before = observe(launcher, cluster).state
    if state_before == "finished":
        return state_before
    if state_before not in ALIVE:  # Its supervisor hangs, or was killed and left ranks.
        _end_all(hosts, cluster, "only")
        if container:  # One that an earlier version has started sees the machine's own folders.
            on_all(hosts, lambda host: _ensure_separate(host, folder, texts))
    if container:
        place(launcher, folder.path, texts, _inside(cluster))
    if state_before not in ALIVE:
        _ensure_program(launcher, folder)
    argv = ("python3", f"{folder.path}/agent", "supervise.supervisor", "start", folder.path)
    return launcher.run(argv, timeout_s=START_TIMEOUT_S).stdout.strip()


def _keeps_its_version(launcher: Host, cluster: ClusterFacts) -> bool:
    """Return whether a supervisor of an earlier version is at work on the run, which reads the files of its own version alone.

    One that hangs is ended, and the run begun anew; so is one whose document nobody here reads.
    """
    seen = (queue.look if cluster.queue else _look)(launcher, cluster)
    begun = seen.get("job")
    is_earlier = isinstance(begun, dict) and begun.get("version") in document.EARLIER
    if not (seen.get("alive") and is_earlier and observe(launcher, cluster).state in ALIVE):
        return False
    note(
        f"run {cluster.run} on {launcher.facts.name} goes on as the version of microcluster that began it: none of its files is replaced, "
        "and what the stack file has changed since counts from its next start"
    )
    return True


def _go_on(launcher: Host, cluster: ClusterFacts) -> tuple[int, ...]:
    """Bring the parts of checkpoints of nodes that go away, before fewer ones go on; return how many files of one kind a checkpoint may have.

    Raises:
        RemoteError: a node has parts that nobody can read, and would be cancelled with them.
    """
    path, staying = RunFolder(cluster).path, {host.name for host in cluster.hosts}
    wait_for_ssh(launcher)
    answer = launcher.run(("sh", "-c", READ_JOB, path), answer_bytes=SNAPSHOT_BYTES).stdout
    last = read_answer(LAST, answer, f"reading the nodes of run {cluster.run} on {launcher}")
    pairs = zip(last["machines"].get("names", ()), last["machines"].get("addresses", ()), strict=False)
    leaving = {name: address for name, address in pairs if name not in staying and ADDRESS.fullmatch(address)}
    if leaving and not cluster.shared_mount:
        gather = ("python3", f"{path}/agent", "checkpoints.parts", path, "gather", OVER, *leaving.values())
        try:
            launcher.run((*_inside(cluster), *gather), timeout_s=COPY_TIMEOUT_S)
        except RemoteError as error:
            raise RemoteError(
                f"going on with run {cluster.run} on {count(len(staying), 'node')}: what {printable(' and '.join(leaving))} have of its "
                f"checkpoints could not be brought to {launcher}: {str(error).rstrip('.')}. Nothing was removed; try again: make up. To go "
                f"on without it: fab ssh --stack {cluster.stack} {launcher.facts.name} -- rm {path}/{document.FILE}"
            ) from error
    return tuple(last["checkpoints"].get("options", {}).get("worlds", ()))


def _start_queued(login: Host, cluster: ClusterFacts, secrets: Mapping[str, str] | None) -> str:
    """Submit the run, unless its job is in the queue, and return when the queue has granted its nodes."""
    wait_for_ssh(login)
    request, earlier, own_jobs = queue.request_of(cluster), [], []
    for job, record in queue.jobs_of(login):
        if owner_of(record) != owner_of(request):  # It may have a copy of our key.
            _refuse_shared(login, cluster, job.number, record)
        elif record["folder"] != request["folder"] or _was_asked_to_end(login, record):
            earlier.append(record)
        else:
            own_jobs.append(record)
    queue.leave(login, earlier)  # A stack carries one run, and never one that was asked to end.
    if _keeps_its_version(login, cluster):
        return "running"
    queue.check_interpreters(login, cluster)
    send_data([login], cluster)
    worlds = _go_on(login, cluster) if cluster.job.any_world else ()
    folder = RunFolder(cluster, word=_ensure_word([login], cluster), worlds=worlds)
    place(login, folder.path, folder.texts())
    snapshot_before = observe(login, cluster)
    if snapshot_before.state == "finished":
        note(_finished_before(cluster, snapshot_before))
        return snapshot_before.state
    if not own_jobs:  # Its job may be making the same.
        queue.make_environment(login, folder)
    _ensure_secrets(login, folder, secrets)
    if snapshot_before.state not in ALIVE:
        _ensure_program(login, folder)
    note(f"run {cluster.run}: {queue.submit(login, cluster)}")
    queue.wait_until_granted(login, cluster)
    return "running" if snapshot_before.state in ALIVE else "started"


def _was_asked_to_end(login: Host, record: Mapping[str, Any]) -> bool:
    return login.run(("test", "-e", f"{record['folder']}/{STOP}"), accept=(0, 1)).exit_code == 0


def _finished_before(cluster: ClusterFacts, found: Outcome) -> str:
    """Say that nothing is trained now, and how it would be."""
    when = f" at {datetime.fromtimestamp(found.ended_at, UTC):%Y-%m-%d %H:%M} UTC" if found.ended_at else ""
    return (
        f"run {cluster.run} finished{when}, and its folder is still there: nothing is trained now. To train it again: "
        f"fab ssh --stack {cluster.stack} login -- rm -r {RunFolder(cluster).path}; make down; make up"
    )


def _refuse_shared(login: Host, cluster: ClusterFacts, number: str, record: Mapping[str, Any]) -> None:
    """Refuse to carry out a run in a folder in which another stack's job does."""
    if record["folder"] == RunFolder(cluster).path:
        raise RemoteError(
            f"starting run {cluster.run} on {login.facts.name}: job {number} of stack {record['stack']} carries it out in the same folder "
            f"({record['folder']}). Give stack {cluster.stack} another cluster.folder, or keys of its own."
        )


def _ensure_word(hosts: Sequence[Host], cluster: ClusterFacts) -> str:
    """Return the run's word, which every host and the drive keep; draw one where the run begins.

    The configuration alone names the run, so that without it the results of a second training would pass for those of the first.
    """
    files = RunFolder(cluster).word_files
    found = on_all(hosts, lambda host: host.run(("sh", "-c", READ_WORD, "word", *files)).stdout.strip())
    word = next(filter(WORD.fullmatch, found), None) or random.token_hex(3)
    on_all(
        hosts, lambda host: host.run(("sh", "-c", KEEP_WORD, "word", word, *files[: None if host is hosts[0] else 1]))
    )
    return word


def _ensure_secrets(launcher: Host, folder: RunFolder, given: Mapping[str, str] | None) -> None:
    """Let the launcher hold exactly those of the program's secrets that were given now, each in a file that nobody else reads.

    They are sent on standard input, and a program that takes none leaves no trace.
    """
    program = folder.document.program
    if program.secrets:
        launcher.run(("mkdir", "-p", "-m", "700", program.secrets_folder))
    for name in program.secrets:
        value = (given or ()).get(name, "").strip()
        if value:
            launcher.put(f"{program.secrets_folder}/{name}", value, "0600")
        else:
            launcher.run(("rm", "-f", f"{program.secrets_folder}/{name}"))


def _ensure_separate(host: Host, folder: RunFolder, texts: Mapping[str, str]) -> None:
    """Make the container, and a folder of the run that it cannot see, for everything that root runs on the machine."""
    mount_point, data = folder.facts.mount_point, folder.data
    ensure_container(host, folder.facts.container, mount_point)
    seen = (container_disk(mount_point), data.folder if data else mount_point)
    host.run(("sh", "-c", SEPARATE_RUN, "separate", folder.path, *seen))
    place(host, folder.path, texts)


def _ensure_program(launcher: Host, folder: RunFolder) -> None:
    """Send the folder of the program, and let the run have it where its program starts; what the program wrote beside its files stays."""
    program = folder.document.program
    if program.sent_program:
        send_tree(launcher, folder.facts.tree, program.sent_program)
        words = (
            "python3",
            f"{folder.path}/agent",
            "data.program_folder",
            "place",
            program.sent_program,
            program.folder,
        )
        launcher.run((*_inside(folder.facts), *words), timeout_s=PLACE_TIMEOUT_S)


def place(host: Host, folder: str, texts: Mapping[str, str], inside: Sequence[str] = ()) -> None:
    """Write the agent and ``texts`` into a folder of the host by one command; ``inside`` are words before it, as of the container."""
    files = [(f"agent/{path.relative_to(AGENT)}", path.read_text()) for path in SHIPPED] + list(texts.items())
    host.run((*inside, "python3", "-c", PLACE.read_text(), folder), stdin=json.dumps(files))


def _inside(cluster: ClusterFacts) -> tuple[str, ...]:
    """Return the words before a command that runs where the program does."""
    return ("docker", "exec", "-i", cluster.container.name) if cluster.container else ()


def observe(launcher: Host, cluster: ClusterFacts) -> Outcome:
    """Return the run's state; a lost connection is opened again once."""
    look = queue.look if cluster.queue else _look
    try:
        snapshot = look(launcher, cluster)
    except UnreachableError:
        snapshot = look(launcher, cluster)
    doing = f"looking at run {cluster.run} on {launcher}"
    try:
        return OUTCOME.validate_python(vars(judge(snapshot)))
    except document.SpecError as error:
        raise RemoteError(f"{doing}: {str(error)[:1000]}. Look at the machine, or run `make down`.") from error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as odd:
        raise RemoteError(
            f"{doing}: its records are not what the agent writes ({type(odd).__name__}). Look at the machine, or run `make down`."
        ) from odd


def _look(launcher: Host, cluster: ClusterFacts) -> Mapping[str, Any]:
    argv = ("sh", "-c", LOOK, "look", RunFolder(cluster).path)
    answer = launcher.run(argv, timeout_s=OBSERVE_TIMEOUT_S, answer_bytes=SNAPSHOT_BYTES).stdout
    return read_answer(OBJECT, answer, f"looking at run {cluster.run} on {launcher}")


def set_guard(launcher: Host, cluster: ClusterFacts, guard: MachineLimits, *, now: float | None = None) -> None:
    """Give a run, also one that is under way, other limits in place of those that it was started with or given before.

    Args:
        now: UTC seconds by a clock that is right, such as the account's; None for this computer's.
    """
    folder = RunFolder(cluster).path
    left_s = None if guard.stop_at is None else guard.stop_at - (time.time() if now is None else now)
    given = json.dumps({**asdict(guard), "left_s": left_s})
    argv = ("python3", f"{folder}/agent", "supervise.guard", folder, given)
    if cluster.queue:  # Where the interpreter may come from a module.
        queue.inside(launcher, argv)
    else:
        launcher.run(argv)


def stop_job(hosts: Sequence[Host], cluster: ClusterFacts, *, graceful: bool = False) -> dict[str, str]:
    """End every process of the run; return {host: reason} for hosts on which this is not proved.

    Args:
        graceful: wait until the program has ended by itself, where the job's kind says that it does.
    """
    if graceful and cluster.job and not (cluster.queue and queue.look(hosts[0], cluster).get("queue")):
        _let_end(hosts, cluster, RunFolder(cluster).document.limits.stop_grace_s)
    if cluster.queue:
        return queue.leave(hosts[0], [queue.request_of(cluster)])
    order = RunFolder(cluster).document.program.stop_order if cluster.job else ()
    for role in order[:-1]:
        on_all(hosts, partial(_end_runs, cluster=cluster, mode="only", role=role), late="", timeout_s=STOP_ROLE_S)
    answers = on_all(
        hosts, lambda host: _end_runs(host, cluster, "only"), late="no answer in time", timeout_s=STOP_ALL_S
    )
    return {host.facts.name: answer for host, answer in zip(hosts, answers, strict=True) if answer}


def _let_end(hosts: Sequence[Host], cluster: ClusterFacts, grace_s: int) -> None:
    """Leave the word on every host that the run is to end, and wait until it has; what does not end is ended afterwards."""
    if not grace_s:
        return
    folder = RunFolder(cluster).path
    with suppress(RemoteError, NotReadyError):
        for where in dict.fromkeys(((), _inside(cluster))):
            argv = (*where, "sh", "-c", STOPPED, folder)
            with suppress(RemoteError):  # A container that has ended keeps nobody else from saving.
                on_all(hosts, lambda host, argv=argv: host.run(argv, timeout_s=STOP_ROLE_S))
        wait_until(
            f"the end of run {cluster.run} by itself",
            lambda: (
                hosts[0].run(("test", "!", "-d", folder, "-o", "-e", f"{folder}/exit_code"), accept=(0, 1)).exit_code
                == 0
            ),
            timeout_s=grace_s,
        )


def _end_all(hosts: Sequence[Host], cluster: ClusterFacts, mode: str) -> None:
    left = [answer for answer in on_all(hosts, lambda host: _end_runs(host, cluster, mode)) if answer]
    if left:
        raise RemoteError("ending what is left of an earlier run: " + "; ".join(left) + ". Try again, or make down.")


def _end_runs(host: Host, cluster: ClusterFacts, mode: str, role: str = "") -> str:
    """End the processes; return an empty text on proof, else the reason."""
    # All processes of its container end with the run, but not with those of one role.
    container = cluster.container.name if mode == "only" and cluster.container and not role else NO_CONTAINER
    argv = ("python3", "-", f"{cluster.mount_point}/runs", mode, cluster.run or "", container, role)
    try:
        done = host.run(argv, stdin=(AGENT / "kill_run.py").read_text(), timeout_s=STOP_TIMEOUT_S)
        killed = read_answer(KILLED, done.stdout, f"ending run {cluster.run} on {host}")
    except RemoteError as error:
        return str(error)
    if killed["ended"]:
        note(f"{host}: {count(killed['ended'], 'process', 'processes')} ended")
    unclear = "; ".join(filter(None, (still_there(killed["left"]), killed["unseen"])))
    return f"{host}: {unclear}" if unclear else ""
