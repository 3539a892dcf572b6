"""Lives on the launcher and carries one run through preparing, preflight and training; Python 3.5, it travels alone.

``supervisor.py start FOLDER`` detaches ``supervisor.py run FOLDER`` unless that is alive. Everything it knows stands in
FOLDER/job.json; everything it says goes to job.log, progress.jsonl, phase, exit_code and failure in the same folder.
"""

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time

from progress import Reader

CHECKPOINT_PARTS = (".index", ".meta", ".data-00000-of-00001")
PREFLIGHT_MARK = "microcluster-preflight "
START_TIMEOUT_S = 30
LOCK_TIMEOUT_S = 2
SYSTEMD = "/run/systemd/system"
TERMINATED = 143


class Failed(Exception):
    """A phase ended badly; the first argument is a sentence, the second the exit code."""


class Stopped(Exception):
    """Somebody asked the run to stop."""


class Run:
    """One run in its folder."""

    def __init__(self, folder):
        self.folder = folder
        with open(self.path("job.json")) as file:
            self.job = json.load(file)
        self.log = open(self.path("job.log"), "ab", 0)  # noqa: SIM115 - as long as the process
        self.events = open(self.path("progress.jsonl"), "a")  # noqa: SIM115 - as long as the process

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text):
        """Replace a file at once."""
        with open(self.path(name + ".new"), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.rename(self.path(name + ".new"), self.path(name))

    def remove(self, *names):
        for name in names:
            if os.path.exists(self.path(name)):
                os.remove(self.path(name))

    def tell(self, event):
        """Add one event to progress.jsonl."""
        self.events.write(json.dumps(dict(event, t=round(time.time(), 3)), sort_keys=True) + "\n")
        self.events.flush()

    def enter(self, phase):
        self.write("phase", phase)
        self.tell({"event": "phase", "phase": phase})

    def in_container(self, argv, each_line=lambda line: None):
        """Run ``argv`` in the container with the run's mark, into job.log; return its exit code."""
        job = self.job
        prefix = [
            "docker",
            "exec",
            "-e",
            "MICROCLUSTER_RUN=" + job["run"],
            "-w",
            job["program_folder"],
            job["container"],
        ]
        child = subprocess.Popen(
            prefix + argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        try:
            for line in child.stdout:
                self.log.write(line)
                each_line(line.decode("utf-8", "replace").rstrip("\n"))
            return child.wait()
        finally:
            if child.poll() is None:
                child.terminate()

    def must(self, what, argv, each_line=lambda line: None):
        code = self.in_container(argv, each_line)
        if code:
            raise Failed(what + " ended with exit code " + str(code), code)


def carry_out(run):
    """Take the run from where it stands to its end."""
    run.remove("exit_code", "stopped", "failure", "preflight.json")
    run.enter("preparing")
    run.must("preparing the data set", run.job["prepare"])
    checkpoint = latest_checkpoint(run)
    for address in run.job["addresses"][1:]:
        run.must("bringing data and configuration to " + address, run.job["place"] + [address] + checkpoint)
    run.enter("preflight")
    preflight(run)
    run.enter("training")
    reader = Reader()

    def follow(line):
        for event in reader.read(line):
            run.tell(event)

    run.must("training", run.job["resume"] if checkpoint else run.job["train"], follow)


def latest_checkpoint(run):
    """Return the two small files that every rank looks for, after a log folder without a whole checkpoint is put aside."""
    logdir = run.path("logdir")
    names = os.listdir(logdir) if os.path.isdir(logdir) else []
    if not names:
        os.makedirs(logdir, exist_ok=True)
        return []
    steps = whole_checkpoints(names)
    if not steps:
        os.rename(logdir, logdir + ".without-checkpoint-" + str(int(time.time())))
        os.makedirs(logdir)
        return []
    name = "model.ckpt-" + str(steps[-1])
    with open(os.path.join(logdir, "checkpoint")) as file:
        named = re.search(r'^model_checkpoint_path: "([^"]+)"', file.read(), re.MULTILINE)
    if named and all(os.path.exists(os.path.join(logdir, named.group(1) + part)) for part in CHECKPOINT_PARTS):
        name = named.group(1)
    else:
        line = 'model_checkpoint_path: "' + name + '"\n'
        run.write("logdir/checkpoint", line + "all_" + line.replace("path", "paths"))
    return ["logdir/checkpoint", "logdir/" + name + ".index"]


def whole_checkpoints(names):
    """Return the steps of the checkpoints of which every part is there."""
    found = set(names)
    steps = [int(name[11:-6]) for name in names if re.match(r"model\.ckpt-\d+\.index$", name)]
    return sorted(s for s in steps if all("model.ckpt-" + str(s) + part in found for part in CHECKPOINT_PARTS))


def preflight(run):
    """Let every rank say where it is, and refuse a world that is not the one that was asked for."""
    ranks = []

    def collect(line):
        if PREFLIGHT_MARK in line:
            ranks.append(json.loads(line.partition(PREFLIGHT_MARK)[2]))

    run.must("reaching all ranks with mpirun", run.job["preflight"], collect)
    ranks.sort(key=lambda rank: rank["rank"])
    run.write("preflight.json", json.dumps({"ranks": ranks}, sort_keys=True) + "\n")
    wanted = [address for address in run.job["addresses"] for _ in range(run.job["slots"])]
    seen = [rank["address"] for rank in ranks]
    if seen != wanted:
        raise Failed("the ranks answered from " + ", ".join(seen) + " instead of " + ", ".join(wanted), 1)
    if len(set(rank["config"] for rank in ranks)) != 1:
        raise Failed("the ranks see different configurations", 1)


def supervise(folder):
    """Carry out the run, once more when a higher max_steps was asked for meanwhile."""
    lock = try_lock(folder, LOCK_TIMEOUT_S)
    if lock is None:
        return 0
    signal.signal(signal.SIGTERM, on_term)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    while True:
        run = Run(folder)
        run.write("supervisor.pid", str(os.getpid()) + "\n")
        code = end(run)
        if code or Run(folder).job["max_steps"] <= run.job["max_steps"]:
            return code


def end(run):
    """Carry out the run and leave behind how it ended."""
    code, sentence = 0, ""
    try:
        carry_out(run)
    except Failed as failed:
        sentence, code = failed.args
    except Stopped:
        sentence, code = "stopped", TERMINATED
        run.write("stopped", "")
    except Exception as error:  # noqa: BLE001 - nobody else could tell
        sentence, code = "the supervisor failed: " + repr(error), 1
    if sentence:
        run.write("failure", sentence + "\n")
    run.tell({"event": "end", "exit_code": code})
    run.write("exit_code", str(code) + "\n")
    return code


def on_term(number, frame):
    raise Stopped()


def try_lock(folder, timeout_s):
    """Return the open lock file of a living supervisor, or None when another one has it."""
    file = open(os.path.join(folder, "supervisor.lock"), "w")  # noqa: SIM115 - the lock is the open file
    deadline = time.time() + timeout_s
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except OSError:
            if time.time() >= deadline:
                file.close()
                return None
            time.sleep(0.1)


def start(folder):
    """Detach a supervisor; print ``alive`` when there is one already, ``started`` when there is one now."""
    lock = try_lock(folder, 0)
    if lock is None:
        print("alive")
        return 0
    ended = os.path.join(folder, "exit_code")
    if os.path.exists(ended):  # It is of an earlier attempt, and would be taken for the end of this one.
        os.remove(ended)
    lock.close()
    run = os.path.basename(folder)
    argv = [sys.executable, os.path.abspath(__file__), "run", folder]
    if os.path.isdir(SYSTEMD):
        unit = "microcluster-" + run
        said_in = "journalctl -u " + unit
        words = ["systemd-run", "--quiet", "--collect", "--unit=" + unit, "--setenv=MICROCLUSTER_RUN=" + run]
        subprocess.check_call(words + argv)
    else:
        said_in = os.path.join(folder, "supervisor.log")
        with open(said_in, "ab") as log:
            environment = dict(os.environ, MICROCLUSTER_RUN=run)
            options = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, "start_new_session": True}
            subprocess.Popen(argv, env=environment, cwd="/", **options)
    deadline = time.time() + START_TIMEOUT_S
    while time.time() < deadline:
        lock = try_lock(folder, 0)
        if lock is None or os.path.exists(ended):
            print("started")
            return 0
        lock.close()
        time.sleep(0.1)
    print("the supervisor did not start within " + str(START_TIMEOUT_S) + " s; see " + said_in)
    return 1


if __name__ == "__main__":
    sys.exit({"start": start, "run": supervise}[sys.argv[1]](sys.argv[2]))
