"""One run's folder on the launcher, and how commands run in its container and on its nodes."""

import contextlib
import json
import os
import shlex
import subprocess
import threading
import time

from agent import spec
from agent.checkpoints import checkpoints_of
from agent.kill_run import RUN_VARIABLE
from agent.processes import LINE_BYTES

ASK_TRIES, ASK_PAUSE_S = 4, 10
"""A machine whose sshd restarts, or that is too busy for a moment, answers again within half a minute."""
TOO_SLOW = 124
KILLED_TIMEOUT_S = 5
BALLAST_BYTES = 1 << 20
"""What a run keeps in reserve on the disk, so that it can still say that the disk is full."""


class Run:
    """One run in its folder."""

    def __init__(self, folder):
        self.folder = folder
        self.spec = spec.read(self.path(spec.FILE))
        self.log = open(self.path("job.log"), "ab", 0)  # noqa: SIM115 - as long as the process
        self.events = open(self.path("progress.jsonl"), "a")  # noqa: SIM115 - as long as the process
        self.samples = open(self.path("samples.jsonl"), "a")  # noqa: SIM115 - as long as the process
        self.cut_off = [file for file in (self.events, self.samples) if is_cut_off(file.name)]
        self.writing = threading.Lock()
        self.doing, self.stuck = "preparing", None
        self.resumed = self.resumed_from = None

    @property
    def checkpoints(self):
        return checkpoints_of(self.spec, self.path("logdir"))

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

    def emit(self, event):
        """Add one event to progress.jsonl."""
        self._add(self.events, event)

    def sample(self, facts):
        """Add how a machine is to samples.jsonl; there are too many of them for those who read every event."""
        self._add(self.samples, facts)

    def _add(self, file, event):
        with self.writing:
            if file in self.cut_off:  # The first event must not become a part of the line that a crash has left.
                self.cut_off.remove(file)
                file.write("\n")
            file.write(json.dumps(dict(event, t=round(time.time(), 3)), sort_keys=True) + "\n")
            file.flush()

    def enter(self, phase):
        self.write("phase", phase)
        self.emit({"event": "phase", "phase": phase})

    def name_of(self, address):
        """Return the name of the node with an address, which is what a person knows it by."""
        names = dict(zip(self.spec.addresses, self.spec.names))
        return names.get(address, address)

    def in_container_argv(self, argv, marked=True):
        """Return ``argv`` as it runs in the container; what bears the run's mark ends with the run."""
        mark = ["-e", RUN_VARIABLE + "=" + self.spec.run] if marked else []
        return ["docker", "exec"] + mark + ["-i", "-w", self.spec.program_folder, self.spec.container] + list(argv)

    def in_container(self, argv, each_line=lambda line: None):
        """Run ``argv`` in the container with the run's mark, into job.log; return its exit code."""
        return self.on_host(self.in_container_argv(argv), each_line)

    def on_host(self, argv, each_line=lambda line: None):
        """Run ``argv`` beside the container, into job.log; return its exit code."""
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            for line in iter(lambda: child.stdout.readline(LINE_BYTES), b""):
                self.log.write(line)
                each_line(line.decode("utf-8", "replace").rstrip("\r\n"))
            return child.wait()
        finally:
            if child.poll() is None:
                child.terminate()

    def ask(self, argv, timeout_s, stdin=b"", marked=True):
        """Run ``argv`` in the container, beside the log; return (exit code, what it printed); TOO_SLOW after ``timeout_s``."""
        # Its own environment bears the mark too, and must not hand it to what is asked to look for marked processes.
        environment = dict(pair for pair in os.environ.items() if marked or pair[0] != RUN_VARIABLE)
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        child = subprocess.Popen(self.in_container_argv(argv, marked), env=environment, **options)
        try:
            out, _ = child.communicate(stdin, timeout=timeout_s)
        except subprocess.TimeoutExpired:
            child.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):  # On a disk that hangs not even that ends a process.
                child.communicate(timeout=KILLED_TIMEOUT_S)
            return TOO_SLOW, "no answer after " + str(timeout_s) + " s"
        return child.returncode, out.decode("utf-8", "replace").strip()

    def ask_again(self, argv, timeout_s, answers, marked=True):
        """Ask until the exit code is one of ``answers``, a limited number of times; any other code is no answer."""
        for number in range(ASK_TRIES):
            if number:
                time.sleep(ASK_PAUSE_S)
            code, output = self.ask(argv, timeout_s, marked=marked)
            if code in answers or self.doing == self.stuck:
                break
        return code, output

    def on_node(self, address, argv):
        """Return the words that run ``argv`` in the container of a node; the launcher's own needs no way there."""
        return (
            list(argv)
            if address == self.spec.addresses[0]
            else self.spec.ssh + [address] + [" ".join(shlex.quote(word) for word in argv)]
        )

    def keep_ballast(self):
        if not os.path.exists(self.path("ballast")):
            try:
                with open(self.path("ballast"), "wb") as file:
                    file.write(b"\0" * BALLAST_BYTES)
            except OSError:
                self.remove("ballast")
                raise


def is_cut_off(path):
    """Return whether a file ends in the middle of a line."""
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - 1))
        return file.read() not in (b"", b"\n")
