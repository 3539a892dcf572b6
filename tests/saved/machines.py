"""The machines of a case: a folder plays the disk of each, and a script plays ssh between them; the run's files are the real ones."""

import contextlib
import importlib
import json
import os
import resource
import shlex
import shutil
import subprocess
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import agent
from agent.__main__ import PROGRAMS
from agent.run.context import ENTER, Run
from components.cluster import facts_of
from microcluster.config import stack as config
from microcluster.core.home import Owner
from microcluster.jobs.cluster_facts import ClusterFacts, HostFacts
from microcluster.jobs.mpirun import RSH_AGENT
from microcluster.jobs.run_spec import RunFolder, decided
from microcluster.remote.connection import command_bytes
from microcluster.remote.errors import CommandError, Completed
from microcluster.remote.host import ANSWER_BYTES, NO_FILE, Host, RemoteError

STACK, WORD, RUN, FAILED = "saved", "0a1b2c", "0123456789ab", 1
AGENT = Path(agent.__file__).parent
SECTIONS = {
    "cluster": {"datacenter": "lon06", "flavor": "AC1_16X120X100", "adminCidrs": ["198.51.100.7/32"]},
    "container": {"image": "r.test/microcluster/torch:local"},
    "job": {"kind": "command", "source": "examples/jax_distributed", "command": "python train.py"},
}
SSH = """while [ $# -gt 2 ]; do shift; done
eval "$(printf %s "$2" | LC_ALL=C sed "s,{place}/10.0.0.1/,{place}/$1/,g")"
"""
"""The line says the launcher's folder, as everything lies at the same place on all machines."""
PYTHON = '#!/bin/sh\nexec {} -S -E "$@"\n'
LONGEST_WORD = 128 << 10
"""Bytes of one argument of a program on Linux; the line that sshd gives a shell is one."""


class Machines:
    """The machines of one run.

    Attributes:
        disks: the folder of each machine's disk; what the run's folder is below it stands in its specification.
        drive: the folder of the drive that all of them mount, or None.
    """

    def __init__(
        self,
        place: Path,
        nodes: int,
        *,
        shared: bool,
        pattern: str | None,
        keep: Sequence[str],
        resume_on: str | None = None,
    ) -> None:
        self.place, self.addresses = place, [f"10.0.0.{number + 1}" for number in range(nodes)]
        self.disks = [place / address for address in self.addresses]
        names = [HostFacts(f"gpu-{n}", str(100 + n), "", address, "") for n, address in enumerate(self.addresses)]
        self.facts = replace(
            facts(pattern, tuple(keep), resume_on), hosts=tuple(names), mount_point=str(self.disks[0]), run=RUN
        )
        if shared:
            self.facts = replace(self.facts, shared_mount=str(place / "drive"))
        self.folder = RunFolder(self.facts, word=WORD)
        self.drive = Path(self.folder.shared) if shared else None
        place.mkdir(parents=True)
        (place / "ssh").write_text(SSH.format(place=place))
        for number in range(nodes):
            self.replace(number)

    def use(self, nodes: int, worlds: tuple[int, ...] = ()) -> None:
        """Give the run the first machines only, or more of them again."""
        known = [HostFacts(f"gpu-{n}", str(100 + n), "", f"10.0.0.{n + 1}", "") for n in range(nodes)]
        self.facts = replace(self.facts, hosts=tuple(known))
        self.folder = RunFolder(self.facts, word=WORD, worlds=worlds)
        self.write()

    def run_folder(self, node: int) -> Path:
        """Return the run's folder on a machine."""
        return self.disks[node] / "runs" / RUN

    def logdir(self, node: int) -> Path:
        """Return the folder in which the program saves on a machine."""
        return self.run_folder(node) / "logdir"

    def replace(self, node: int) -> None:
        """Let a machine be a fresh one, prepared for the run as every machine is."""
        shutil.rmtree(self.disks[node], ignore_errors=True)
        tools, path = self.run_folder(node) / "environment" / "bin", self.run_folder(node)
        tools.mkdir(parents=True)
        (path / "program").mkdir()
        for name in ("python", "python3"):
            (tools / name).write_text(PYTHON.format(sys.executable))
            (tools / name).chmod(0o755)
        (path / "agent").symlink_to(AGENT)
        (path / "word").write_text(WORD)
        if node == 0:
            self.write()

    def write(self) -> None:
        """Write the run's files on the first machine, as a start does."""
        for name, text in self.folder.texts().items():
            file = self.run_folder(0) / name
            file.write_text(self._at_home(text) if name == "job.json" else text.replace(*self._ssh))

    @property
    def _ssh(self) -> tuple[str, str]:
        return RSH_AGENT, f"sh {self.place}/ssh"

    def _at_home(self, text: str) -> str:
        """Return the document without what takes long: an environment that is installed, and imports."""
        document = json.loads(text)
        document["machines"]["ssh"] = self._ssh[1].split()
        document["program"] |= {"make_environment": None, "imports": []}
        return json.dumps(document)

    def opened(self) -> Run:
        """Return the run as its supervisor opens it."""
        return Run(str(self.run_folder(0)))

    def hosts(self) -> list["Node"]:
        """Return the machines as the product reaches them."""
        return [Node(one, self.disks[0], disk) for one, disk in zip(self.facts.hosts, self.disks, strict=True)]


@cache
def facts(pattern: str | None, keep: tuple[str, ...], resume_on: str | None = None) -> ClusterFacts:
    """Return the facts of a cluster without containers whose program saves by this pattern."""
    job = SECTIONS["job"] | ({"checkpoints": pattern} if pattern else {}) | ({"keep": list(keep)} if keep else {})
    job |= {"resumeOn": resume_on, "resume": "--from {checkpoint}"} if resume_on else {}
    sections = {f"microcluster:{name}": section for name, section in (SECTIONS | {"job": job}).items()}
    owner = config.StackKeys(Owner(STACK, "1f3a9c42"), "ssh-ed25519 AAAA", "key", "rank_key")
    found = decided(facts_of(config.with_files(config.parse(STACK, sections)), owner))
    return replace(found, container=None)


class Node(Host):
    """A machine behind the interface of Host; sshd gives a shell one line, as here."""

    def __init__(self, known: HostFacts, home: Path, disk: Path) -> None:
        super().__init__(known, "root", "/nowhere")
        self.moved = (f"{home}/", f"{disk}/")

    def connect(self) -> None:
        """Be there already."""

    def run(self, argv, *, stdin="", timeout_s=None, accept=(0,), answer_bytes=ANSWER_BYTES):  # noqa: ARG002
        done = self._ended(argv, stdin.encode())
        completed = Completed(
            done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode(errors="replace")
        )
        if completed.exit_code not in accept:
            raise CommandError(str(self), tuple(argv), completed)
        return completed

    def output(
        self, argv: Sequence[str], doing: str, silent_s: float | None = None, stdin: bytes = b""
    ) -> Iterator[bytes]:  # noqa: ARG002
        done = self._ended(argv, stdin)
        yield done.stdout
        if done.returncode:
            why = "it does not exist any more" if done.returncode == NO_FILE else done.stderr.decode(errors="replace")
            raise RemoteError(f"{doing}: {why}")

    def _ended(self, argv: Sequence[str], stdin: bytes) -> "subprocess.CompletedProcess[bytes]":
        words = [word.replace(*self.moved) for word in argv]
        if len(command_bytes(self._line(words))) >= LONGEST_WORD:
            return subprocess.CompletedProcess(words, 126, b"", b"Argument list too long")
        enter = ["sh", "-c", ENTER, "/", f"{self.moved[1]}runs/{RUN}/environment/bin"]
        return subprocess.run(enter + words, input=stdin, capture_output=True, check=False)


class Forked(subprocess.Popen):
    """A program of the agent in a fork that has everything imported, in place of a new Python; every other program is itself."""

    def _execute_child(self, args, *rest):
        """Take the pipes of Popen's own, which gives them in this order since Python 3.11."""
        folder, environment, read, write, errors = (rest[number] for number in (4, 5, 9, 12, 14))
        words = [os.fsdecode(word) for word in args]
        self.pid = os.fork()
        if self.pid == 0:
            code = FAILED
            try:
                for number, end in enumerate((read, write, errors)):
                    if end != -1:
                        os.dup2(end, number)
                os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
                os.chdir(folder or ".")
                os.environ.update(environment or {})
                code = become(words)
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
                print(ended.code if isinstance(ended.code, str) else "", file=sys.stderr, end="")
            except BaseException:  # noqa: BLE001 - printed as Python does
                traceback.print_exc()
            finally:
                for stream in (sys.stdout, sys.stderr):
                    with contextlib.suppress(OSError):
                        stream.flush()
                os._exit(code or 0)
        self._child_created = True
        self._close_pipe_fds(*rest[9:15])


def become(words: list[str]) -> int | None:
    """Be a command in a forked process: what only starts another one is skipped."""
    while True:
        match words:
            case ["env", *rest]:
                while "=" in rest[0] or rest[0] == "-u":
                    name, _, value = rest.pop(0).partition("=")
                    os.environ.update({name: value} if value else {rest.pop(0): ""})
                words = rest
            case ["timeout", _, _, *rest] | ["nice", *rest]:
                words = rest
            case ["sh", "-c", line, folder, path, *rest] if line == ENTER:
                os.chdir(folder)
                os.environ["PATH"] = f"{path}:{os.environ['PATH']}"
                words = rest
            case ["sh", script, address, line] if script.endswith("/ssh"):
                place = os.path.dirname(script)
                words = shlex.split(line.replace(f"{place}/10.0.0.1/", f"{place}/{address}/"))
            case ["python" | "python3", *rest]:
                return _python(rest)
            case _:
                os.execvp(words[0], words)


def _python(words: list[str]) -> int | None:
    """Run a module of the agent, or a program that was sent."""
    ends = ((0, "r"), (1, "w"), (2, "w"))
    sys.stdin, sys.stdout, sys.stderr = (open(end, mode, closefd=False) for end, mode in ends)  # noqa: SIM115
    if words[0].endswith("/agent"):
        return importlib.import_module(f"agent.{PROGRAMS[words[1]]}").main(*words[2:])
    program = sys.stdin.read() if words[0] == "-" else words[1]
    sys.argv = [words[0], *words[1 if words[0] == "-" else 2 :]]
    exec(compile(program, "sent", "exec"), {"__name__": "__main__"})  # noqa: S102 - the product's own
    return 0
