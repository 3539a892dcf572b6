"""A person's computer: home, clone, key, clock, disk and engine; and one look of a guard there, by the real command."""

import builtins
import errno
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from microcluster.accounts.shared import api_calls
from microcluster.accounts.softlayer.api import SEEING, Api
from microcluster.analysis.run_state import Outcome
from microcluster.command_line.command import Command
from microcluster.command_line.parts import run_part
from microcluster.commands.down import down as take_down
from microcluster.commands.guard import guard
from microcluster.commands.receipt import receipt
from microcluster.config import stack as config
from microcluster.core.home import MARK_FILE, Home
from microcluster.core.plain_text import BY_TIMER
from microcluster.core.ssh_key import KeyPair
from microcluster.guard import actions, timer
from microcluster.jobs.cluster_facts import ClusterFacts, HostFacts
from microcluster.lifecycle import pulumi, pulumi_state
from microcluster.rental import down
from microcluster.run import unsaved_work
from microcluster.setup import engine
from microcluster.setup.errors import CommandFailed
from tests.guarded.rented import MARK, STACK, Account

STOP_S, ENGINE_S = 40.0, 60.0
KEYS = KeyPair.fresh()
HOLDER = """
import fcntl, json, os, signal, sys
path, command = sys.argv[1:]
signal.signal(signal.SIGINT, lambda *_: os._exit(130))
file = os.open(path, os.O_RDWR | os.O_CREAT)
try:
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    sys.exit()
os.ftruncate(file, 0)
os.write(file, json.dumps({"pid": os.getpid(), "command": command, "folder": "/clone", "since": "08:00:00 UTC"}).encode())
os.kill(os.getpid(), signal.SIGSTOP)
while True:
    signal.pause()
"""
"""A command that holds a lock and that Ctrl-Z has stopped; it ends at an interrupt, and at once where the lock is not free."""
NOT_WRITING = {"full": errno.ENOSPC, "read-only": errno.EROFS}
EMPTY = {"version": 3, "checkpoint": {"stack": STACK, "latest": {}}}


@dataclass
class Machines:
    """What the machines and their run do."""

    idle_since: float | None = None
    reachable: bool = True
    stopped: bool = False
    fetch_s: float = 120.0
    fetched: bool = False

    def outcome(self, now: float) -> Outcome | None:
        if not self.reachable:
            return None
        idle_s = 0.0 if self.idle_since is None else max(now - self.idle_since, 0.0)
        return Outcome("stopped" if self.stopped else "running", idle_s=idle_s, armed=True)


@dataclass
class Look:
    """What one command has answered."""

    code: int
    said: str
    facts: Any = None


@dataclass
class Computer:
    """One computer; what of it changes while a rental is guarded are its fields.

    Attributes:
        skew_s: how far its clock is ahead.
        other_key: the text of a file with the key of another account.
        knows_idle: whether anything there says how long the machines may be idle.
        left: where its home was, with which a timer of before goes on.
        stack, called: how the stack is called there, and was called before, as a timer of then says it.
        pulumi: "works", "fails", "hangs" or "missing".
        meanwhile: is called whenever a command has let time go by.
    """

    name: str
    place: Path
    account: Account
    machines: Machines
    skew_s: float = 0.0
    online: bool = True
    awake: bool = True
    key_fits: bool = True
    other_key: str = ""
    knows_idle: bool = False
    left: Path | None = None
    has_key_alone: bool = False
    stack: str = STACK
    called: tuple[str, ...] = ()
    disk: str = ""
    pulumi: str = "works"
    has_timer: bool = True
    meanwhile: Callable[[], None] = lambda: None
    held: list[subprocess.Popen[bytes]] = field(default_factory=list)
    """Processes that hold something."""

    def __post_init__(self) -> None:
        self.root, self.stacks = self.place / "home", self.place / "clone" / "stacks"

    @property
    def home(self) -> Home:
        return Home(self.root, self.root / "cache")

    @property
    def key(self) -> Path:
        return self.place / ".softlayer" if self.has_key_alone else self.root / "key.conf"

    @property
    def stack_file(self) -> Path:
        return self.stacks / f"Pulumi.{self.stack}.yaml"

    @property
    def state(self) -> Path:
        return self.root / "state" / ".pulumi" / "stacks" / "microcluster" / f"{self.stack}.json"

    def set_up(self, section: str | None) -> None:
        """Write what `make setup` and the person write; without a section the stack file says nothing of limits."""
        self.stacks.mkdir(parents=True)
        self.home.make()
        keys = self.root / "keys" / STACK
        keys.mkdir()
        for name in ("id_ed25519", "rank_ed25519"):
            (keys / name).write_text(KEYS.private)
            (keys / f"{name}.pub").write_text(f"{KEYS.public}\n")
        (keys / MARK_FILE).write_text(f"{MARK}\n")
        self.write_key(self.account.key_file())
        self.write_stack_file(section)

    def write_key(self, text: str) -> None:
        self.key.write_text(text)
        self.key.chmod(0o600)

    def write_stack_file(self, section: str | None) -> None:
        lines = ["config:", "  softlayer:timeScale: 0.002", "  softlayer:configFile: $MICROCLUSTER_HOME/key.conf"]
        lines += [f"  microcluster:guard: {section}"] if section else []
        lines += ["  microcluster:cluster:", "    datacenter: lon06"]
        lines += ["    flavor: AC1_16X120X100", "    adminCidrs: [198.51.100.7/32]"]
        lines += ["  microcluster:job:", "    kind: openseq2seq"]
        self.stack_file.write_text("\n".join(lines) + "\n")

    def write_state(self) -> None:
        """Write Pulumi's state of a stack that is up."""
        hosts = tuple(
            HostFacts(f"gpu-{number}", str(each), "", "", "") for number, each in enumerate(self.account.ordered)
        )
        facts = ClusterFacts(STACK, MARK, hosts, account_config_file=str(self.key)).to_json()
        urn, of = f"urn:pulumi:{self.stack}::microcluster::", "softlayer:index:"
        stack = {"urn": f"{urn}pulumi:pulumi:Stack::microcluster-{STACK}", "type": "pulumi:pulumi:Stack"}
        account_id = str(self.account.rented.account.id)
        ledger = {"urn": f"{urn}{of}Ledger::ledger", "type": f"{of}Ledger", "id": "1"}
        resources = [stack | {"outputs": {"microcluster": facts}}, ledger | {"outputs": {"accountId": account_id}}]
        for number, each in enumerate(self.account.ordered):
            kind = f"{of}VirtualGuest"
            resources.append({"urn": f"{urn}{kind}::gpu-{number}-guest", "type": kind, "id": str(each)})
        self.state.parent.mkdir(parents=True, exist_ok=True)
        whole = {"version": 3, "checkpoint": {"stack": STACK, "latest": {"resources": resources}}}
        self.state.write_text(json.dumps(whole))

    @property
    def can_see(self) -> bool:
        """Whether a guard there can read the whole account."""
        return self.awake and self.online and self.key_fits and self.account.permits(*SEEING)

    @property
    def can_reach(self) -> bool:
        """Whether it can end what it finds, too."""
        return self.can_see and self.account.permits("SERVER_CANCEL")

    @property
    def clock(self) -> float:
        return self.account.clock + self.skew_s

    def take_up(self, key: str) -> Look:
        """Begin to guard with the account's key alone."""
        self.stacks.mkdir(parents=True)
        self.home.make()
        self.has_key_alone = True
        self.write_key(key)
        return self.look(mark=MARK)

    def look(self, root: Path | None = None, **options: Any) -> Look:
        """Let the guard look; with another root as a timer of before does, whose home has moved."""
        found = self.run(guard, root, as_json=True, **options)
        with suppress(ValueError):
            found.facts = json.loads(found.said[found.said.rindex("\n{\n") :])
        return found

    def receipt(self) -> Look:
        return self.run(receipt)

    def down(self) -> Look:
        return self.run(take_down, discard=True)

    def run(self, command: Command, root: Path | None = None, **options: Any) -> Look:
        """Run a command of the product on this computer."""
        said = io.StringIO("\n")
        said.seek(0, io.SEEK_END)
        with self._here(root or self.root), redirect_stdout(said), redirect_stderr(said):
            code = command.code(**{"stack": self.stack, **options})
        return Look(code, said.getvalue())

    def hold(self, lock: str, command: str) -> None:
        """Let a process take a lock of the home and be stopped, as by Ctrl-Z."""
        path = self.root / "locks" / f"{lock}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        words = (sys.executable, "-S", "-c", HOLDER, str(path), command)
        holder = subprocess.Popen(words, process_group=0)
        os.waitpid(holder.pid, os.WUNTRACED)
        os.utime(path, (self.clock, self.clock))
        self.held.append(holder)

    def let_go(self) -> None:
        """End what holds something."""
        for each in self.held:
            each.kill()
            each.wait()
        self.held.clear()

    @contextmanager
    def _here(self, root: Path) -> Iterator[None]:
        """Let this process be this computer."""
        places = {"MICROCLUSTER_HOME": str(root), "MICROCLUSTER_CACHE": str(root / "cache"), "HOME": str(self.place)}
        replaced = {
            **dict.fromkeys(((module, "run_part_apart") for module in (actions, down)), self._apart),
            **dict.fromkeys(((module, "apart") for module in (actions, unsaved_work)), self._apart),
            (actions, "asked_apart"): lambda stack: self.machines.outcome(self.account.clock),
            (timer, "timer"): lambda job: SimpleNamespace(remove=self._remove_timer, where=lambda: ("", False)),
            (config, "STACKS"): self.stacks,
            (engine, "ensure_any"): self._engine,
            (pulumi, "run"): self._pulumi,
            (pulumi, "answer"): self._answer,
            (time, "time"): lambda: self.clock,
            (socket, "gethostname"): lambda: self.name,
            (Api, "per_second"): 1e6,
            (api_calls, "FIRST_PAUSE_S"): 0.001,
            (api_calls, "LONGEST_PAUSE_S"): 0.001,
        }
        replaced |= {(module, "datetime"): Clock for module in _dated()}
        with mock.patch.dict(os.environ, {**places, BY_TIMER: "timer"}), _disk(root, NOT_WRITING.get(self.disk)):
            for name in ("SL_USERNAME", "SL_API_KEY", "PULUMI_BACKEND_URL"):
                os.environ.pop(name, None)
            patches = [mock.patch.object(place, name, value) for (place, name), value in replaced.items()]
            try:
                for each in patches:
                    each.start()
                with self.account.reached(lambda: self.online):
                    yield
            finally:
                for each in reversed(patches):
                    each.stop()

    def _remove_timer(self) -> bool:
        self.has_timer, was = False, self.has_timer
        return was

    def _apart(self, limit_s: float, function: Callable[..., Any], **options: Any) -> Any:
        """Do what a process of its own would; machines and Pulumi take time, which an account that is away does not stop."""
        return getattr(self, f"_{function.__name__}")(limit_s, **options)

    def _set_limits(self, limit_s: float, **options: Any) -> None:
        """The machines' own limits are a test of their own."""

    def _what_would_be_lost(self, limit_s: float, **options: Any) -> list[str] | None:
        return [] if self.machines.reachable else self._spend(limit_s)

    def _stop_run(self, limit_s: float, **options: Any) -> int | None:
        if not self.machines.reachable:
            return self._spend(limit_s)
        self._spend(STOP_S)
        self.machines.stopped = True
        return 0

    def _fetch_begun(self, limit_s: float, **options: Any) -> int | None:
        if not self.machines.reachable or self.machines.fetch_s > limit_s:
            return self._spend(limit_s)
        self._spend(self.machines.fetch_s)
        self.machines.fetched = True
        return 0

    def _tidy(self, limit_s: float, **options: Any) -> int | None:
        if self.pulumi == "hangs":
            return self._spend(limit_s)
        return run_part(down.tidy, **options)

    def _spend(self, seconds: float) -> None:
        self.account.pass_(seconds)
        self.meanwhile()

    def _engine(self, *_: Any) -> None:
        if self.pulumi == "missing":
            raise CommandFailed("The engine is not here and cannot be made.")

    def _pulumi(self, home: Home, *words: str) -> int:
        if self.pulumi != "works" or not self.can_reach:
            return 255
        self._spend(ENGINE_S)
        self.account.cancel()
        self.meanwhile()
        with suppress(OSError):
            self.state.write_text(json.dumps(EMPTY))
        return 0

    def _answer(self, home: Home, *words: str, **_: Any) -> subprocess.CompletedProcess[str]:
        if self.pulumi != "works":
            raise CommandFailed("`pulumi` gave no answer.")
        if words[0] == "cancel":
            shutil.rmtree(home.state / ".pulumi" / "locks", ignore_errors=True)
        if words[:2] == ("stack", "init"):
            pulumi_state.path_of(words[2], home).write_text(json.dumps(EMPTY))
        return subprocess.CompletedProcess(words, 0, "", "")


class Clock(datetime):
    """The date by the computer's own clock, which ``time.time`` shows."""

    @classmethod
    def now(cls, tz: Any = None) -> datetime:
        return datetime.fromtimestamp(time.time(), tz)


def _dated() -> list[Any]:
    """Return the modules of the product that know the date."""
    ours = [module for name, module in list(sys.modules.items()) if name.startswith(("microcluster.", "providers."))]
    return [module for module in ours if vars(module).get("datetime") is datetime]


@contextmanager
def _disk(root: Path, failure: int | None) -> Iterator[None]:
    """Let nothing below a folder be written."""

    def refused(real: Callable[..., Any], *, opens: bool = False) -> Callable[..., Any]:
        def call(path: Any, *more: Any, **named: Any) -> Any:
            how = more[0] if more else named.get("mode", named.get("flags", "r"))
            writes = not opens or (how & (os.O_WRONLY | os.O_RDWR) if isinstance(how, int) else set(how) & set("wax+"))
            if writes and not isinstance(path, int) and Path(path).is_relative_to(root):
                if real is os.mkdir and Path(path).exists():
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
                raise OSError(failure, os.strerror(failure), str(path))
            return real(path, *more, **named)

        return call

    places = [(os, name) for name in ("mkdir", "unlink", "rename", "replace", "link")]
    opening = [(os, "open"), (io, "open"), (builtins, "open")]
    patches = [mock.patch.object(place, name, refused(getattr(place, name))) for place, name in places]
    patches += [mock.patch.object(place, name, refused(getattr(place, name), opens=True)) for place, name in opening]
    patches = patches if failure else []
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in reversed(patches):
            each.stop()
