"""The product's own command line in a copy of the project, against an account of this process."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.home import owner_mark
from tools.chaos.account import CLOCK_RATE, AccountServer, Rented
from tools.product import install

STACK = "local"
ACCOUNT = "account"
PROGRAM = '"""The cluster alone."""\n\nfrom tools.chaos.pulumi_program import main\n\nmain()\n'
PROVIDER = "providers.softlayer"
COMMAND_LIMIT_S = 600.0
QUESTION = re.compile(r"\[y/N\]|\(y/n\)|Please (choose|confirm|enter)|Do you want to|\? \[Use arrows", re.IGNORECASE)
UP = "pulumi up --yes --skip-preview --non-interactive -s local"
DESTROY = "pulumi destroy --yes --skip-preview --non-interactive -s local"


@dataclass(frozen=True)
class Said:
    """How a command ended."""

    exit_code: int
    output: str

    @property
    def asks(self) -> bool:
        """Whether it asked a person something."""
        return bool(QUESTION.search(self.output))


class Running:
    """One command on its way."""

    def __init__(self, line: str, folder: Path, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            ["bash", "-c", f". ./env.sh && exec {line}"],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def said(self) -> Said:
        """Wait for the end of the command, not of what it has left behind."""
        lines: list[str] = []
        reader = threading.Thread(target=lambda: lines.extend(self._process.stdout), daemon=True)
        reader.start()
        try:
            code = self._process.wait(COMMAND_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.signal_tree(signal.SIGKILL)
            code = self._process.wait()
            lines.append(f"stopped after {COMMAND_LIMIT_S:g} s\n")
        reader.join(1.0)
        return Said(code, "".join(lines))

    def signal(self, number: signal.Signals) -> None:
        """Strike the command alone, as a terminal does."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    def signal_tree(self, number: "signal.Signals") -> None:
        """Strike the command and all that it has started."""
        for pid in [self._process.pid, *_below(self._process.pid)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def signal_provider(self, number: "signal.Signals") -> None:
        """Strike the provider alone."""
        for pid in _below(self._process.pid):
            with contextlib.suppress(ProcessLookupError):
                if PROVIDER in _words(pid):
                    os.kill(pid, number)


class Copy:
    """A copy of the project whose program is the cluster alone, and a home as set-up leaves it."""

    def __init__(self, folder: Path, time_scale: float = 1 / CLOCK_RATE) -> None:
        self._product = install(folder)
        shutil.rmtree(self._product.home / "emulator")
        (self._product.folder / "__main__.py").write_text(PROGRAM)
        # Not in a folder named emulator: set-up would want to start and stop the account itself.
        self._product.edit_stack("/emulator/softlayer.conf", f"/{ACCOUNT}/softlayer.conf")
        self._product.edit_stack("config:\n", f'config:\n  softlayer:timeScale: "{time_scale}"\n')
        for path in (self._product.folder / "stacks").glob("Pulumi.*.yaml"):
            if path.name != f"Pulumi.{STACK}.yaml":
                path.unlink()  # Set-up makes the keys and the state of every stack file: a second and a half of a processor each.
        self._nodes = ""
        done = self._product.run(".venv/bin/python -m microcluster setup")
        assert done.returncode == 0, done.stdout + done.stderr

    def declare_nodes(self, count: int) -> None:
        """Have the stack file ask for another number of nodes."""
        nodes = f"    nodes: {count}\n"
        if self._nodes:
            self._product.edit_stack(self._nodes, nodes)
        else:
            self._product.edit_stack("  microcluster:cluster:\n", f"  microcluster:cluster:\n{nodes}")
        self._nodes = nodes

    @contextmanager
    def home(self, server: AccountServer, folder: Path, **settings: Any) -> "Iterator[CommandLine]":
        """Open a fresh home with a fresh account."""
        shutil.copytree(self._product.home, folder, symlinks=True)
        with server.opened(folder / ACCOUNT, **settings) as rented:
            environment = self._product.env | {"MICROCLUSTER_HOME": str(folder)}
            yield CommandLine(self._product.folder, folder, environment, rented)


@dataclass(frozen=True)
class CommandLine:
    """The commands of one home."""

    project: Path
    home: Path
    environment: Mapping[str, str]
    rented: Rented

    @property
    def mark(self) -> str:
        """The stack's owner mark."""
        key = (self.home / "keys" / STACK / "id_ed25519.pub").read_text()
        return owner_mark(key)

    @property
    def state_file(self) -> Path:
        """Where Pulumi keeps the state."""
        return self.home / "state" / ".pulumi" / "stacks" / "microcluster" / f"{STACK}.json"

    @property
    def backup_file(self) -> Path:
        """The write before the last."""
        return self.state_file.with_name(f"{self.state_file.name}.bak")

    def start(self, line: str) -> Running:
        """Start a command as a person does who has sourced env.sh."""
        return Running(line, self.project, self.environment)

    def run(self, line: str) -> Said:
        """Run a command to its end."""
        return self.start(line).said()


def _below(pid: int) -> list[int]:
    """List the processes that a process has started, and theirs."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            parents.setdefault(parent, []).append(int(folder.name))
    found, waiting = [], [pid]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found += children
        waiting += children
    return found


def _words(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []
