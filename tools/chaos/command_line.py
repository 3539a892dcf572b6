"""The product's own command line in a copy of the project: real `kill -9`, recovered by `fab recover` and `make down`."""

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
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from core.home import owner_mark
from tools.chaos.accounts import CLOCK_RATE, AccountServer, Rented
from tools.chaos.engine import Outcome, Verb
from tools.chaos.stage import Attack, Damage, Stage, Target
from tools.chaos.wire import Strike, Wire
from tools.product import install

STACK = "local"
ACCOUNT = "account"
PROGRAM = '"""The cluster alone."""\n\nfrom tools.chaos.pulumi_program import main\n\nmain()\n'
PROVIDER = "providers.softlayer"
COMMAND_LIMIT_S = 600.0
QUESTION = re.compile(r"\[y/N\]|\(y/n\)|Please (choose|confirm|enter)|Do you want to|\? \[Use arrows", re.IGNORECASE)
UP = "pulumi up --yes --skip-preview --non-interactive -s local"
DESTROY = "pulumi destroy --yes --skip-preview --non-interactive -s local"
RECOVER = f"fab recover --stack {STACK} --yes"
RECEIPT = f"fab receipt --stack {STACK}"
DOWN = f"fab down --stack {STACK}"
SHORT_S = 0.2


@dataclass(frozen=True)
class Said:
    """How a command ended."""

    exit_code: int
    output: str


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
            self.signal(Target.TREE, signal.SIGKILL)
            code = self._process.wait()
            lines.append(f"stopped after {COMMAND_LIMIT_S:g} s\n")
        reader.join(1.0)
        return Said(code, "".join(lines))

    def signal(self, target: Target, number: "signal.Signals") -> None:
        """Strike the command alone, as a terminal does, or all that it has started as well, or its provider alone."""
        pids = [self._process.pid] if target is not Target.PROVIDER else []
        if target is not Target.ENGINE:
            below = _below(self._process.pid)
            pids += below if target is Target.TREE else [pid for pid in below if PROVIDER in _words(pid)]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
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
        done = self._product.run(".venv/bin/fab setup")
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

    def start(self, line: str) -> Running:
        """Start a command as a person does who has sourced env.sh."""
        return Running(line, self.project, self.environment)

    def run(self, line: str) -> Said:
        """Run a command to its end."""
        return self.start(line).said()


class CommandLineStage(Stage):
    """The commands as a person types them, with Pulumi's own engine."""

    def __init__(self, wire: Wire, line: CommandLine) -> None:
        key = (line.home / "keys" / STACK / "id_ed25519.pub").read_text()
        state = line.home / "state" / ".pulumi" / "stacks" / "microcluster" / f"{STACK}.json"
        super().__init__(wire, line.rented, line.home, state, f"{STACK}-{owner_mark(key)}.microcluster")
        self._line = line
        self._is_damaged = False

    def run(self, verb: Verb, *, refresh: bool = False, is_settled: bool = False) -> Outcome:
        if verb is Verb.UP:
            return self._type(f"{UP} --expect-no-changes" if is_settled else UP)
        ended = self._type(DOWN if self._is_damaged else DESTROY)
        return ended if ended.exit_code else self._type(RECEIPT)

    def strike(self, attack: Attack, chance: Random) -> None:
        running: list[Running] = []

        def act() -> None:
            attack.carry_out(partial(running[0].signal, attack.target), chance.uniform(0, SHORT_S))

        self.wire.arm(Strike(attack.number, attack.moment, act))
        running.append(self._line.start(UP if attack.verb is Verb.UP else DESTROY))
        self._refuse_questions(running[0].said())

    def damage(self, damage: Damage, chance: Random) -> None:
        self._is_damaged = True
        super().damage(damage, chance)

    def recover(self) -> None:
        if not self._is_damaged:
            ended = self._type(RECOVER)
            self.verdict.prompts += [f"recover failed: {each}" for each in ended.failures]

    def _type(self, line: str) -> Outcome:
        self.wire.arm(None)
        said = self._line.run(line)
        self._refuse_questions(said)
        self.compare_receipts([said.output])
        last = [text.strip() for text in said.output.splitlines()[-12:] if text.strip()]
        failures = [f"`{line}`: {' | '.join(last)}"] if said.exit_code else []
        return Outcome(said.exit_code, failures=failures, said=[said.output])

    def _refuse_questions(self, said: Said) -> None:
        if QUESTION.search(said.output):
            self.verdict.prompts.append(f"a question: {said.output[-500:]}")


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
