"""The queue's sweep: submitting and leaving, killed before, during and after each command of a queue that takes its time.

Real commands of microcluster and the real agent run on this computer as on a login host, with a queue of real processes
(`played_queue.py`); only what a job's supervisor does is played, and who else uses the queue.
"""

import contextlib
import json
import os
import pwd
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from random import Random

from agent.batch.records import SEEN_EVERY_S
from agent.kill_run import find
from agent.run.queue_nodes import STOP
from microcluster.accounts.queue import account as site
from microcluster.core.files import write_whole
from microcluster.core.home import Owner
from microcluster.jobs.cluster_facts import ClusterFacts, HostFacts, Queue
from microcluster.jobs.torchrun import Job
from microcluster.remote import job as remote_job
from microcluster.remote import queue, steps
from microcluster.remote.errors import CommandError, Completed
from tests.chaos import played_queue
from tests.chaos.checker import Verdict
from tests.chaos.engine import Verb
from tests.chaos.fork_server import fork
from tests.chaos.workers import Theatre

COMMANDS = "tests.chaos.queue_sweep"
STACK, MARK = "chaos", "1f3a9c42"
CALLS = {Verb.UP: 6, Verb.DESTROY: 4}
"""Commands of the queue in a clean command; a strike at a later one kills nobody."""
QSUB = 4
"""The call of an up that submits; the others list."""
MOMENTS, WHO, FAULTS = ("before", "during", "after"), ("client", "both"), ("twice", "lost", "requeue", "forced")
LIMIT_S, SETTLES_S, TOLERANCE_S, INSTANT_S = 240.0, 60.0, 20.0, 3.0
WALLTIME_S = 3600
Life = tuple[float, float, int]
SUPERVISOR = """import os, sys, time
from agent.machine import write_whole
def main(verb, folder):
    with open(os.path.join(folder, "carried_out"), "a") as file:
        file.write(os.environ["PBS_JOBID"].split(".")[0] + "\\n")
    write_whole(os.path.join(folder, "phase"), "training")
    time.sleep(600)
"""
"""A stand-in for a training: it goes on until it is ended."""


class Login:
    """This computer as the login host of a site: what `Host` is elsewhere, without ssh."""

    facts = HostFacts("login", "", "127.0.0.1", "127.0.0.1", "")
    address = "127.0.0.1"

    def __init__(self, folder: Path) -> None:
        self.user, self.home = pwd.getpwuid(os.getuid()).pw_name, folder / "home"
        self.environment = {
            "HOME": str(self.home),
            "PLAYED_QUEUE": str(folder / "queue"),
            "PATH": f"{folder / 'queue' / 'bin'}:{os.environ['PATH']}",
        }

    def __str__(self) -> str:
        return "login"

    def connect(self) -> None:
        """Do nothing: there is no connection."""

    def run(
        self, argv: Sequence[str], *, stdin: str = "", timeout_s: float = LIMIT_S, accept: Sequence[int] = (0,)
    ) -> Completed:
        """Run a command in a session of its own, which goes on when the caller is gone."""
        ended = subprocess.run(
            argv,
            env=self.environment,
            cwd=self.home,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            start_new_session=True,
        )
        done = Completed(ended.returncode, ended.stdout, ended.stderr)
        if done.exit_code not in accept:
            raise CommandError("login", argv, done)
        return done

    def put(self, path: str, content: str, mode: str) -> None:
        """Write a file whole; a login begins in the home."""
        write_whole(self.home / path, content, int(mode, 8))


def main(arguments: list[str]) -> int:
    """Carry out one command in a process of its own; print why it failed, or an empty line."""
    verb, folder = Verb(arguments[0]), Path(arguments[1])
    (folder / "queue" / "client").write_text(str(os.getpid()))
    login, cluster = Login(folder), ClusterFacts.from_json((folder / "facts.json").read_text())
    queue.WAIT_EVERY_S, place = 0.2, remote_job.place
    remote_job.SHIPPED = tuple(path for path in remote_job.SHIPPED if path.name != "supervisor.py")
    remote_job.place = lambda host, where, texts: place(
        host, where, {"agent/supervise/supervisor.py": SUPERVISOR, **texts}
    )
    why = ""
    try:
        if verb is Verb.UP:
            remote_job.start_job([login], cluster)
        else:
            with contextlib.suppress(Exception):  # As `fab step.stop-job`, which never blocks what comes after it.
                remote_job.stop_job([login], cluster)
            steps.leave_queue(login, cluster)
    except Exception as error:  # noqa: BLE001 - the case judges
        why = f"{type(error).__name__}: {error}"
    print(why.replace("\n", " | "), flush=True)
    return 0


@dataclass(frozen=True)
class Case:
    """One run: a command that is killed at a call of the queue, then one that has to reach its goal."""

    verb: Verb
    number: int
    moment: str
    who: str
    then: Verb
    fault: str
    seed: int

    def play(self, theatre: Theatre) -> Verdict:
        """Play it in a folder of its own."""
        # The daemon of a job that was killed may still write its last words.
        with tempfile.TemporaryDirectory(prefix="microcluster-chaos-", ignore_cleanup_errors=True) as folder:
            site = _Site(self, Path(folder))
            try:
                site.play()
            finally:
                site.close()
        return site.verdict

    def __str__(self) -> str:
        killed = f"killed {self.moment} call {self.number} of the queue ({self.who})"
        return f"queue: {self.verb} {killed}; then {self.then}; fault {self.fault or 'none'}; seed {self.seed}"


class _Site:
    """A site of one case alone: a login host with a home, a queue, and a job of somebody else that bears our job's name."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case = case
        self.folder = folder
        self.verdict = Verdict()
        self.queue = folder / "queue"
        self.home = folder / "home"
        self.stranger = self.queue / "jobs" / "100"
        self.run_id = f"{Random(case.seed).randrange(16**12):012x}"
        job = Job(kind="torchrun", source=".", maxSteps=10, script="train.py", checkpoints=r"(?P<step>\d+)")
        facts = ClusterFacts(
            *(STACK, MARK, (HostFacts("gpu-0", "", "", "", ""),)),
            queue=Queue("gpu", 1, 1, WALLTIME_S, ()),
            mount_point=str(folder / "site"),
            interface="lo",
            job=job,
            run=self.run_id,
        )
        (folder / "facts.json").write_text(facts.to_json())
        self._install_queue(queue.request_of(facts)["name"])

    def _install_queue(self, name_of_job: str) -> None:
        programs = self.queue / "bin"
        for place in (programs, self.home, self.stranger):
            place.mkdir(parents=True)
        for name in ("qstat", "qsub", "qdel", "pbsdsh"):
            line = f'exec {sys.executable} -S -E {played_queue.__file__} {name} "$@"'
            (programs / name).write_text(f"#!/bin/sh\n{line}\n")
            (programs / name).chmod(0o755)
        # A login shell forgets the path that it was given.
        (self.home / ".bash_profile").write_text(f"export PATH={programs}:{os.environ['PATH']}\n")
        (self.stranger / "facts").write_text(json.dumps({"name": name_of_job, "user": played_queue.STRANGER}))
        (self.stranger / "state").write_text("R")

    def play(self) -> None:
        """Strike one command, run the next ones, and judge."""
        case = self.case
        if case.verb is Verb.DESTROY:
            self._succeeds(Verb.UP)
        (self.queue / "fault").write_text(case.fault)
        self._run(case.verb, strike=True)
        self._succeeds(case.then)
        (self.queue / "fault").write_text("")
        if case.then is Verb.UP:
            if case.fault:  # Only what the queue itself does wrong may take a second one.
                self._succeeds(Verb.UP)
            self._settles(1)
            self._succeeds(Verb.DESTROY)
        self._settles(0)
        self._judge_jobs()
        self._judge_hours()

    def close(self) -> None:
        """End whatever a job has left."""
        for job in self._jobs():
            played_queue.signal_group(job, signal.SIGKILL)
        for pid, _ in find("only", self.run_id):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _run(self, verb: Verb, *, strike: bool = False) -> str:
        """Carry out a command; return why it failed, or an empty text."""
        case = self.case
        blow = {"number": case.number, "moment": case.moment, "who": case.who} if strike else {}
        (self.queue / "calls").write_text("0")
        (self.queue / "strike").write_text(json.dumps(blow))
        log = self.folder / "log"
        process = fork(COMMANDS, [str(verb), str(self.folder)], {"HOME": str(self.home)}, log)
        try:
            ended = process.ended(LIMIT_S)
            return process.first_line(1).strip() if ended else f"{verb} did not end in {LIMIT_S:g} s"
        finally:
            process.signal(signal.SIGKILL)
            process.release()

    def _succeeds(self, verb: Verb) -> None:
        if failure := self._run(verb):
            self.verdict.prompts.append(f"{verb} failed: {failure}")

    def _settles(self, wanted: int) -> None:
        """Wait until so many jobs of ours live, and no more: one that came late ends itself."""
        deadline = time.monotonic() + SETTLES_S
        while len(found := self._living()) != wanted and time.monotonic() < deadline:
            time.sleep(0.1)
        if len(found) > wanted:
            kind = self.verdict.duplicates if wanted else self.verdict.orphans
            kind.append(f"jobs {found} live where {wanted} should")
        elif len(found) < wanted and not self.case.fault:
            self.verdict.orphans.append("no job lives after an up")
        if wanted and (self._run_folder / STOP).exists():
            self.verdict.orphans.append("the job that lives after an up was asked to end")

    def _jobs(self) -> list[Path]:
        return [job for job in (self.queue / "jobs").iterdir() if job != self.stranger]

    @property
    def _run_folder(self) -> Path:
        return self.folder / "site" / "runs" / self.run_id

    def _living(self) -> list[str]:
        return [job.name for job in self._jobs() if played_queue.text(job / "state") in "QR"]

    def _lives(self) -> dict[str, list[Life]]:
        """Return when each life of each job began and ended, and its exit code, as the queue itself has seen them."""
        lives = {}
        for job in self._jobs():
            lines = played_queue.text(job / "lives").splitlines()
            lives[job.name] = [json.loads(line) for line in lines]
        return lives

    def _judge_jobs(self) -> None:
        """Judge who carried out the run, whether two did at once, and what is left."""
        verdict = self.verdict
        carried_out = played_queue.text(self._run_folder / "carried_out").split()
        for number, times in Counter(carried_out).items():
            if times > 1:
                verdict.duplicates.append(f"job {number} carried the run out twice")
        verdict.orphans += [f"process {pid} of the run is left" for pid, _ in find("only", self.run_id)]
        if (self.stranger / "state").read_text() != "R":
            verdict.orphans.append("a stranger's job of the same name was deleted")
        # A queue that accepts a job twice by itself lets the second one begin, which ends itself.
        if self.case.fault != "twice":
            spans = sorted((began, ended) for each in self._lives().values() for began, ended, _ in each)
            for earlier, later in pairwise(spans):
                if later[0] < earlier[1]:
                    verdict.duplicates.append("two jobs of the run ran at once")

    def _judge_hours(self) -> None:
        """Compare every node hour of the receipt with the queue's own."""
        charges = site.Queue(Login(self.folder)).charges(Owner(STACK, MARK))
        for number, lives in self._lives().items():
            shown = [charge for charge in charges if charge.id == number]
            if any(charge.is_open for charge in shown):
                self.verdict.wrong_hours.append(f"job {number} is over and still open on the receipt")
            hours = sorted(float(charge.so_far) * 3600 for charge in shown)
            real = sorted(ended - began for began, ended, _ in lives)
            if len(hours) < len(real):  # A life of an instant may end before its shell has written a word.
                real = [span for span in real if span > INSTANT_S]
            was_killed = any(code < 0 or code > 128 for _, _, code in lives)
            allowed = TOLERANCE_S + (SEEN_EVERY_S if was_killed else 0)
            if len(hours) != len(real) or any(abs(a - b) > allowed for a, b in zip(hours, real, strict=True)):
                self.verdict.wrong_hours.append(f"job {number} used {real} s, the receipt says {hours} s")


def cases(seed: int) -> Iterator[Case]:
    """List each call of each command, struck at each moment; the qsub in every way; then what the queue does by itself."""
    chance = Random(seed)
    calls = [(verb, number) for verb, last in CALLS.items() for number in range(1, last + 1)]
    every = [(*call, moment, chance.choice(WHO), chance.choice(list(Verb)), "") for call in calls for moment in MOMENTS]
    every += [(Verb.UP, QSUB, *ways, "") for ways in product(MOMENTS, WHO, Verb)]
    for fault, then in product(FAULTS, Verb):
        number = chance.randint(1, CALLS[Verb.UP])
        every.append((Verb.UP, number, chance.choice(MOMENTS), chance.choice(WHO), then, fault))
    for place, case in enumerate(every):
        yield Case(*case, seed * 1000 + place)
