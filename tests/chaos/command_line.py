"""The product's own command line in a copy of the project: real `kill -9`, recovered by `fab recover`."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from microcluster.core.home import owner_mark
from tests.chaos.accounts import CLOCK_RATE, AccountServer, Rented
from tests.chaos.engine import Outcome, Verb
from tests.chaos.stage import Attack, Stage, Target
from tests.chaos.wire import Strike, Wire
from tests.product import install

STACK = "local"
ACCOUNT = "account"
PROGRAM = '"""The cluster alone."""\n\nfrom tests.chaos.pulumi_program import main\n\nmain()\n'
PROVIDER = "microcluster.accounts.softlayer"
COMMAND_LIMIT_S = 600.0
QUESTION = re.compile(r"\[y/N\]|\(y/n\)|Please (choose|confirm|enter)|Do you want to|\? \[Use arrows", re.IGNORECASE)
UP = "pulumi up --yes --skip-preview --non-interactive -s local"
DESTROY = "pulumi destroy --yes --skip-preview --non-interactive -s local"
RECOVER = f"fab recover --stack {STACK} --yes"
RECEIPT = f"fab receipt --stack {STACK}"
SHORT_S = 0.2


class Running:
    """One command on its way, in a session of its own."""

    def __init__(self, line: str, folder: Path, environment: Mapping[str, str]) -> None:
        self._output = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 - read when the command has ended
        self._process = subprocess.Popen(
            ["bash", "-c", f". ./env.sh && exec {line}"],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def ended(self) -> tuple[int, str]:
        """Wait for the end of the command, not of what it has left behind; return its exit code and what it said."""
        late = ""
        try:
            self._process.wait(COMMAND_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.signal(Target.TREE, signal.SIGKILL)
            late = f"stopped after {COMMAND_LIMIT_S:g} s\n"
        code = self._process.wait()
        self._output.seek(0)
        return code, self._output.read() + late

    def signal(self, target: Target, number: "signal.Signals") -> None:
        """Strike the command alone, as a terminal does, or all that it has started as well, or its provider alone."""
        command = self._process.pid
        pids = [command] if target is Target.ENGINE else _of_session(command)
        for pid in pids:
            if target is not Target.PROVIDER or _is_provider(pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)


class Copy:
    """A copy of the project whose program is the cluster alone, and a home as set-up leaves it."""

    def __init__(self, folder: Path, time_scale: float = 1 / CLOCK_RATE) -> None:
        product = self.product = install(folder)
        shutil.rmtree(product.home / "emulator")
        (product.folder / "__main__.py").write_text(PROGRAM)
        # Not in a folder named emulator: set-up would want to start and stop the account itself.
        product.edit_stack("/emulator/softlayer.conf", f"/{ACCOUNT}/softlayer.conf")
        product.edit_stack("config:\n", f'config:\n  softlayer:timeScale: "{time_scale}"\n')
        for path in (product.folder / "stacks").glob("Pulumi.*.yaml"):
            if path.name != f"Pulumi.{STACK}.yaml":
                path.unlink()  # Set-up makes the keys and the state of every stack file: a second and a half of a processor each.
        self._nodes = 2
        cluster = "  microcluster:cluster:\n"
        product.edit_stack(cluster, f"{cluster}    nodes: {self._nodes}\n")
        done = product.run(".venv/bin/fab setup")
        assert done.returncode == 0, done.stdout + done.stderr

    def declare_nodes(self, count: int) -> None:
        """Have the stack file ask for another number of nodes."""
        self.product.edit_stack(f"nodes: {self._nodes}\n", f"nodes: {count}\n")
        self._nodes = count

    @contextmanager
    def home(self, server: AccountServer, folder: Path, **settings: Any) -> Iterator[Rented]:
        """Open a fresh home with a fresh account."""
        shutil.copytree(self.product.home, folder, symlinks=True)
        with server.opened(folder / ACCOUNT, **settings) as rented:
            yield rented

    def start(self, line: str, home: Path) -> Running:
        """Start a command as a person does who has sourced env.sh."""
        return Running(line, self.product.folder, self.product.env | {"MICROCLUSTER_HOME": str(home)})


class CommandLineStage(Stage):
    """The commands as a person types them, with Pulumi's own engine."""

    def __init__(self, wire: Wire, rented: Rented, copy: Copy) -> None:
        home = rented.folder.parent
        key = (home / "keys" / STACK / "id_ed25519.pub").read_text()
        super().__init__(wire, rented, home, f"{STACK}-{owner_mark(key)}.microcluster")
        self._copy = copy

    def run(self, verb: Verb, *, refresh: bool = False, is_settled: bool = False) -> Outcome:
        if verb is Verb.UP:
            return self._type(f"{UP} --expect-no-changes" if is_settled else UP)
        ended = self._type(DESTROY)
        return ended if ended.exit_code else self._type(RECEIPT)

    def strike(self, attack: Attack, chance: Random) -> None:
        running: list[Running] = []

        def act() -> None:
            attack.carry_out(partial(running[0].signal, attack.target), chance.uniform(0, SHORT_S))

        self.wire.arm(Strike(attack.number, attack.moment, act))
        running.append(self._copy.start(UP if attack.verb is Verb.UP else DESTROY, self.home))
        self._refuse_questions(running[0].ended()[1])

    def recover(self) -> None:
        self.verdict.prompts += [f"recover failed: {each}" for each in self._type(RECOVER).failures]

    def _type(self, line: str) -> Outcome:
        self.wire.arm(None)
        code, output = self._copy.start(line, self.home).ended()
        self._refuse_questions(output)
        self.compare_receipts([output])
        outcome = Outcome(code)
        if code:
            last = [text.strip() for text in output.splitlines()[-12:] if text.strip()]
            outcome.failures.append(f"`{line}`: {' | '.join(last)}")
        return outcome

    def _refuse_questions(self, output: str) -> None:
        if QUESTION.search(output):
            self.verdict.prompts.append(f"a question: {output[-500:]}")


def _of_session(leader: int) -> list[int]:
    """List the processes of a session: what its first one has started, and theirs."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(ProcessLookupError):
            if os.getsid(int(folder.name)) == leader:
                found.append(int(folder.name))
    return found


def _is_provider(pid: int) -> bool:
    try:
        return PROVIDER.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
