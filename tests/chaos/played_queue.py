"""A site's qsub, qstat, qdel, pbsdsh, as one program by its name, and the daemon behind them: its jobs are real processes.

In the folder PLAYED_QUEUE: a folder for each job; `strike`, which says at which call whom to kill and when; `fault`, what the queue
does on purpose. It behaves as Torque and Slurm do: a qsub goes on when its caller is gone, jobs are begun anew unless `-r n` says
otherwise, and a qdel sends TERM and later KILL. Only the standard library: it starts often.
"""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

HERE = Path(os.environ.get("PLAYED_QUEUE", "/nowhere"))
SLOW_S, WAITS_S, KILL_AFTER_S, BREAKS_S = 0.5, 0.3, 3.0, 1.0
OUTLIVES_S, OUTLIVES_MOST_S, LISTED = 12.0, 40.0, 3
STRANGER, ROW = "stranger", "{:<19} {:<16} {:<15} 00:00:00 {} gpu"


def main(name: str, arguments: list[str]) -> None:
    """Strike if it is time, do what the program does, strike again."""
    if name == "daemon":
        return carry_out(HERE / "jobs" / arguments[0])
    if name == "pbsdsh":
        return pbsdsh(arguments)
    moment = due()
    if moment in {"before", "during"}:
        kill_callers()
    if moment == "before":
        sys.exit(1)
    if moment == "during" and name == "qsub":
        outlive()
    {"qstat": qstat, "qsub": qsub, "qdel": qdel}[name](arguments)
    if moment == "after":
        kill_callers()
    return None


def due() -> str:
    """Count the call; return when it strikes, or an empty text."""
    with locked():
        count = int(text(HERE / "calls") or 0) + 1
        (HERE / "calls").write_text(str(count))
    strike = json.loads(text(HERE / "strike") or "{}")
    return strike["moment"] if strike.get("number") == count else ""


def kill_callers() -> None:
    """Kill the command of the person, as when the computer loses power, and who asks here for it where the strike says so."""
    strike = json.loads(text(HERE / "strike"))
    if strike["who"] == "both" and os.getppid() > 1:
        os.kill(os.getppid(), signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(int(text(HERE / "client")), signal.SIGKILL)


def outlive() -> None:
    """Go on until the next command has listed the jobs and would submit; it may as well wait for us."""
    begins = time.monotonic() + OUTLIVES_MOST_S
    while text(HERE / "strike") != "{}" or int(text(HERE / "calls") or 0) < 1:
        if time.monotonic() > begins:
            return
        time.sleep(0.05)
    ends = time.monotonic() + OUTLIVES_S
    while int(text(HERE / "calls") or 0) < LISTED and time.monotonic() < ends:
        time.sleep(0.05)


def qstat(_: list[str]) -> None:
    """Print every job that was ever submitted, as a table."""
    print(ROW.format("Job id", "Name", "Username", "S"), "-" * 19 + " " + "-" * 16, sep="\n")
    for job in sorted((HERE / "jobs").iterdir(), key=lambda job: int(job.name)):
        facts = json.loads(text(job / "facts"))
        print(ROW.format(job.name, facts["name"], facts["user"], text(job / "state")))


def qsub(arguments: list[str]) -> None:
    """Accept a job after a while; the fault `twice` accepts it twice, as a qsub that tries again."""
    time.sleep(SLOW_S)
    fault = text(HERE / "fault")
    for _ in range(2 if fault == "twice" else 1):
        with locked():
            number = str(101 + len(list((HERE / "jobs").iterdir())))
            made = HERE / "jobs" / f".{number}"
            made.mkdir()
            options = dict(zip(arguments[::2], arguments[1::2], strict=False))
            facts = {"name": options["-N"], "user": me(), "rerun": options.get("-r") != "n", "script": arguments[-1]}
            (made / "facts").write_text(json.dumps(facts))
            (made / "state").write_text("Q")
            made.rename(HERE / "jobs" / number)
        # Descriptors are not handed on: the daemon is none of the caller's children.
        daemon = [sys.executable, "-S", "-E", __file__, "daemon", number]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.Popen(daemon, start_new_session=True, cwd="/", **quiet)
    print(f"{number}.master")


def qdel(arguments: list[str]) -> None:
    """End a job; whose it is nobody asks."""
    job = HERE / "jobs" / arguments[0]
    if text(job / "state") == "R":
        signal_group(job, signal.SIGTERM)
        (job / "killed_at").write_text(str(time.monotonic() + KILL_AFTER_S))
    (job / "state").write_text("C")


def pbsdsh(arguments: list[str]) -> None:
    """Run the words behind the node's name here."""
    words = arguments[arguments.index("-h") + 2 :]
    os.execv(words[0], words)


def carry_out(job: Path) -> None:
    """Start a job, write down when each life of it began and ended, and begin it anew as real queues do."""
    time.sleep(WAITS_S)
    facts, fault = json.loads(text(job / "facts")), text(HERE / "fault")
    lives = 2 if fault == "forced" or (fault == "requeue" and facts["rerun"]) else 1
    (job / "nodes").write_text("127.0.0.1\n")
    environment = {**os.environ, "PBS_JOBID": f"{job.name}.master", "PBS_NODEFILE": str(job / "nodes")}
    for life in range(lives):
        with locked():
            if text(job / "state") == "C":
                return
            (job / "state").write_text("R")
        child = subprocess.Popen(["/bin/bash", facts["script"]], env=environment, start_new_session=True, cwd="/")
        (job / "group").write_text(str(child.pid))
        began, breaks = time.time(), fault in ("lost", "requeue", "forced") and life == 0
        while child.poll() is None:
            late = text(job / "killed_at")
            if (breaks and time.time() > began + BREAKS_S) or (late and time.monotonic() > float(late)):
                signal_group(job, signal.SIGKILL)
            time.sleep(0.02)
        with (job / "lives").open("a") as file:
            file.write(json.dumps([began, time.time(), child.returncode]) + "\n")
    (job / "state").write_text("C")


def signal_group(job: Path, number: signal.Signals) -> None:
    """Send a signal to every process of a job."""
    with contextlib.suppress(ProcessLookupError, ValueError):
        os.killpg(int(text(job / "group")), number)


@contextlib.contextmanager
def locked() -> Iterator[None]:
    """Let one program at a time change what is there."""
    with (HERE / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def me() -> str:
    """Return who submits."""
    import pwd  # noqa: PLC0415 - one program of five needs it

    return pwd.getpwuid(os.getuid()).pw_name


def text(path: Path) -> str:
    """Return a small file's text, or an empty one."""
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
