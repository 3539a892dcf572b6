"""One run's folder on the launcher, and how commands run on its nodes: in the training container, or on the machine itself.

``runtime`` in the run document chooses one of the two, and nothing else of the agent knows which it is.
"""

import json
import os
import shlex
import subprocess
import threading
import time
import zlib
from typing import IO, Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from agent import inside, kill_run, program
from agent.kill_run import RUN_VARIABLE
from agent.machine import LINE_BYTES, why_not_free, write_whole
from agent.run import document, event_summary
from agent.run.document import RunDocument

ASK_TRIES, ASK_PAUSE_S = 4, 10
"""A machine whose sshd restarts, or that is too busy for a moment, answers again within half a minute."""
TAKE_IN, HAND_TIMEOUT_S = 'cat > "$0.new" && mv -f "$0.new" "$0"', 120
BALLAST_BYTES = 1 << 20
"""Reserve on the disk: with it a run can still say that the disk is full."""
MEETING_PORTS = 8000  # From the run's first one on; from 32768 on the system gives ports away.
ENTER = 'cd "$0" && PATH="$1:$PATH" && export PATH && shift && exec "$@"'
"""Starts words in a folder, with the programs of an environment before those of the machine."""
TERMINALS, TERMINALS_OF_THE_MACHINE = "/dev/pts", "/run/microcluster/terminals"
"""Folders of terminals: those of the machine, and those of the machine as a container sees them."""


class Run:
    """One run in its folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.spec = document.read(self.path(document.FILE))
        self.runtime = runtime_of(self.spec)
        self.log = open(self.path("job.log"), "ab", 0)  # noqa: SIM115 - as long as the process
        self.events = open(self.path(event_summary.EVENTS), "a")  # noqa: SIM115 - as long as the process
        self.samples = open(self.path("samples.jsonl"), "a")  # noqa: SIM115 - as long as the process
        for file in (self.events, self.samples):
            if is_cut_off(file.name):  # The first event must not become a part of the line that a crash has left.
                file.write("\n")
        self.writing, self.not_summed = threading.Lock(), 0
        self.doing, self.stuck = "preparing", None
        self.resumed = self.resumed_from = self.checkpoint = self.port = None
        self.notes = []  # Of the preparation, for the preflight's table: what was looked at, where, what was found, and what was wanted.
        self.attempt = "{}-{:x}".format(self.spec.run, int(time.time() * 1e3))

    @property
    def is_shared(self) -> bool:
        """Whether every node sees the run's whole folder, and not its checkpoints alone."""
        return self.spec.checkpoints.shared == self.path("logdir")

    def free_port(self) -> Optional[int]:
        """Return a port of this machine, the first node, on which nobody listens now; None for a run that meets at none.

        Each attempt begins its search at another one, so that runs that start at once on one machine do not choose the same.
        """
        first, begin = self.spec.machines.meeting_port, zlib.crc32(self.attempt.encode())
        ports = (first + number % MEETING_PORTS for number in range(begin, begin + MEETING_PORTS) if first)
        return next((port for port in ports if not why_not_free("", port)), first)

    def path(self, *names: str) -> str:
        return os.path.join(self.folder, *names)

    def inside(self, *names: str) -> str:
        """Return where this machine finds what the run's processes know by ``path``: to be read, and neither written nor removed."""
        return os.path.join(inside(self.folder), *names)

    def program(self, module: str, *arguments: str) -> List[str]:
        """Return the words that run one module of the agent, wherever the run's folder is."""
        return program(self.folder, module, *arguments)

    def write(self, name: str, text: str) -> None:
        """Replace a file at once."""
        write_whole(self.path(name), text)

    def remove(self, *names: str) -> None:
        for name in names:
            if os.path.exists(self.path(name)):
                os.remove(self.path(name))

    def emit(self, event: Dict[str, Any]) -> None:
        """Add one event to progress.jsonl, and now and then to the summary of them."""
        size = self._add(self.events, event)
        with self.writing:
            self.not_summed += size
            if self.not_summed >= event_summary.EVERY_BYTES:
                self.not_summed = 0
                event_summary.write(self.folder)

    def sample(self, facts: Dict[str, Any]) -> None:
        """Add how a machine is to samples.jsonl; there are too many of them for those who read every event."""
        self._add(self.samples, facts)

    def _add(self, file: IO[str], event: Dict[str, Any]) -> int:
        with self.writing:
            size = file.write(json.dumps(dict(event, t=round(time.time(), 3)), sort_keys=True) + "\n")
            file.flush()
        return size

    def enter(self, phase: str) -> None:
        self.write("phase", phase)
        self.emit({"event": "phase", "phase": phase})

    def name_of(self, address: str) -> str:
        """Return the name of the node with an address, which is what a person knows it by."""
        names = dict(zip(self.spec.machines.addresses, self.spec.machines.names))
        return names.get(address, address)

    def on_node(self, address: str, argv: Sequence[str], marked: bool = True) -> List[str]:
        """Return the words that run ``argv`` on a node by the run's runtime; what bears the run's mark ends with the run."""
        there = address != self.spec.machines.addresses[0]
        return self.runtime.here(self.runtime.beyond(address, argv, marked) if there else argv, marked)

    def do(self, argv: Sequence[str], each_line: Callable[[str], Any]) -> int:
        """Run ``argv`` on the launcher with the run's mark, into job.log; return its exit code."""
        return self.do_outside(self.runtime.here(argv, True), each_line)

    def outside(self, address: str, argv: Sequence[str]) -> List[str]:
        """Return the words that run ``argv`` on a node's machine as it is, with the run's mark."""
        words = ["env", RUN_VARIABLE + "=" + self.spec.run] + list(argv)
        return words if address == self.spec.machines.addresses[0] else self.spec.machines.ssh + [address, line(words)]

    def do_outside(self, argv: Sequence[str], each_line: Callable[[str], Any]) -> int:
        """Run ``argv`` on the launcher's machine as it is, into job.log; return its exit code."""
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            for line in iter(lambda: child.stdout.readline(LINE_BYTES), b""):
                self.log.write(line)
                each_line(line.decode("utf-8", "replace").rstrip("\r\n"))
            return child.wait()
        finally:
            if child.poll() is None:
                child.terminate()

    def ask(
        self, argv: Sequence[str], timeout_s: float, node: Optional[str] = None, marked: bool = True, given: bytes = b""
    ) -> Tuple[int, str]:
        """Run ``argv`` on a node, the launcher where none is named; return (exit code, output). ``given`` is its standard input."""
        # Its own environment bears the mark too, and must not hand it to what is asked to look for marked processes.
        environment = dict(pair for pair in os.environ.items() if marked or pair[0] != RUN_VARIABLE)
        words = self.on_node(node or self.spec.machines.addresses[0], argv, marked)
        code, output = kill_run.ask(words, timeout_s, given, env=environment)
        return code, output.strip()

    def ask_again(self, argv: Sequence[str], timeout_s: float, answers: Sequence[int]) -> Tuple[int, str]:
        """Ask until the exit code is one of ``answers``, a limited number of times; any other code is no answer."""
        for number in range(ASK_TRIES):
            if number:
                time.sleep(ASK_PAUSE_S)
            code, output = self.ask(argv, timeout_s)
            if code in answers or self.doing == self.stuck:
                break
        return code, output

    def hand_in(self, name: str) -> None:
        """Let the run's processes have a file of this folder as it is now; without a container they see it."""
        if self.inside() != self.path() and os.path.exists(self.path(name)):
            with open(self.path(name), "rb") as file:
                take_in = self.runtime.here(["sh", "-c", TAKE_IN, self.path(name)], False)
                subprocess.check_call(take_in, stdin=file, timeout=HAND_TIMEOUT_S)

    def keep_ballast(self) -> None:
        # Without append: where the file system has no such call, as over NFS, the C library writes at places and reads them.
        with open(self.path("ballast"), "w+b") as file:
            os.posix_fallocate(file.fileno(), 0, BALLAST_BYTES)


def is_cut_off(path: str) -> bool:
    """Return whether a file ends in the middle of a line."""
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - 1))
        return file.read() not in (b"", b"\n")


def runtime_of(spec: RunDocument) -> "Union[ContainerRuntime, HostRuntime]":
    """Return the runtime that a run document names."""
    return {"container": ContainerRuntime, "host": HostRuntime}[spec.machines.runtime](spec)


class ContainerRuntime:
    """`docker exec`. From the launcher's container ssh reaches the others, and hands the run's mark on."""

    terminals = TERMINALS_OF_THE_MACHINE

    def __init__(self, spec: RunDocument) -> None:
        self.spec = spec

    def here(self, argv: Sequence[str], marked: bool) -> List[str]:
        """Return the words that run ``argv`` on the launcher; what bears the run's mark ends with the run."""
        mark = ["-e", RUN_VARIABLE + "=" + self.spec.run] if marked else []
        return (
            ["docker", "exec"]
            + mark
            + ["-i", "-w", self.spec.program.folder, self.spec.machines.container]
            + list(argv)
        )

    def beyond(self, address: str, argv: Sequence[str], marked: bool) -> List[str]:
        """Return the words that, where ``here`` runs them, run ``argv`` on another node."""
        return self.spec.machines.ssh + [address, line(argv)]


class HostRuntime:
    """The machine itself, with the run's own environment of Python first in the path."""

    terminals = TERMINALS

    def __init__(self, spec: RunDocument) -> None:
        self.spec = spec

    def here(self, argv: Sequence[str], marked: bool) -> List[str]:
        mark = [RUN_VARIABLE + "=" + self.spec.run] if marked else ["-u", RUN_VARIABLE]
        enter = ["sh", "-c", ENTER, self.spec.program.folder, self.spec.program.environment + "/bin"]
        return ["env"] + mark + enter + list(argv)

    def beyond(self, address: str, argv: Sequence[str], marked: bool) -> List[str]:
        return self.spec.machines.ssh + [address, line(self.here(argv, marked))]


def line(argv: Sequence[str]) -> str:
    """Return words as the one line that ssh takes."""
    return " ".join(shlex.quote(word) for word in argv)
