"""One case: its folders, its machines and its command, and what must hold of them afterwards."""

import contextlib
import ctypes
import io
import json
import os
import re
import select
import shutil
import signal
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import paramiko

from microcluster.core.home import owner_mark
from microcluster.core.ssh_key import KeyPair
from microcluster.jobs.cluster_facts import ClusterFacts, HostFacts, Queue
from tests.hostile import driver
from tests.hostile.account import Rent
from tests.hostile.checks import Seen, changes, reserved, snapshot, words
from tests.hostile.commands import Case
from tests.hostile.machine import ADDRESSES, Machines, serve
from tests.hostile.truth import Truth
from tests.product import free_port

ROOT = Path(__file__).parents[2]
MEMORY_BYTES, KILLED_AT_BYTES = 200 * 10**6, 700 * 10**6
"""How much a command may have in memory, and at how much it is ended, lest the computer suffers."""
SUBREAPER, CHILDREN = 36, Path("/proc/thread-self/children")
"""A number of prctl; and the children of this thread, which is the only one."""
LOOK_EVERY_S, INTERRUPT_AFTER_S, CLOSING_S = 0.05, 5.0, 3.0
STAND_IN = """#!/bin/sh
# Stands in for Pulumi's engine: a destroy forgets what the state holds and leaves the account as it is.
case $1 in
version) echo v3.259.0 ;;
destroy) cp "$MICROCLUSTER_HOME/forgotten.json" "$MICROCLUSTER_HOME/state/.pulumi/stacks/microcluster/$(cat ../stack).json" ;;
stack) [ "$2" = output ] && echo '{}' ;;
esac
exit 0
"""


@dataclass(frozen=True)
class World:
    """What all cases share: the machines' folder, their true answers, their host key and the account."""

    place: Path
    facts: ClusterFacts
    truth: Truth
    host_key: KeyPair
    account_file: Path


@dataclass
class Result:
    """What a case has shown.

    Attributes:
        failures: what did not hold: which promise, a colon, and what was seen.
        touched: whether the attack was carried out.
        peak_bytes: the most that the command or a child of it had in memory.
    """

    failures: list[str] = field(default_factory=list)
    code: int | None = None
    seconds: float = 0.0
    peak_bytes: int = 0
    touched: bool = False
    said: str = ""
    attacked: str = ""


class Stage:
    """The folders of one case: a person's, the product's home, a clone, and what lies beside them."""

    def __init__(self, world: World, case: Case, place: Path) -> None:
        self.world, self.case, self.place = world, case, place
        self.stack = f"case{case.number}"
        self.keys = place / "home" / "keys" / self.stack
        self.state_file = place / "home" / "state" / ".pulumi" / "stacks" / "microcluster" / f"{self.stack}.json"
        self.rent: Rent | None = None

    def prepare(self) -> None:
        """Write everything that a person with a stack that is up has."""
        for folder in (
            "person/.ssh",
            "outside",
            "tmp",
            "project/stacks",
            "project/.venv/bin",
            "home/cache/logs",
            "home/locks",
        ):
            (self.place / folder).mkdir(parents=True)
        for file, text in (
            ("person/.bashrc", "# mine\n"),
            ("person/.ssh/authorized_keys", "ssh-ed25519 mine\n"),
            ("outside/x", "mine\n"),
        ):
            (self.place / file).write_text(text)
        plugin = self.place / "home" / "pulumi" / "plugins" / "resource-command-v1.2.1" / "pulumi-resource-command"
        plugin.parent.mkdir(parents=True)
        plugin.touch()
        project = self.place / "project"
        shutil.copy(ROOT / "fabfile.py", project)
        shutil.copy(ROOT / "Pulumi.yaml", project)
        engine = project / ".venv" / "bin" / "pulumi"
        engine.write_text(STAND_IN)
        engine.chmod(0o755)
        (self.place / "stack").write_text(self.stack)
        (self.place / "sentences").write_text("one sentence\nanother one\n")
        self.keys.mkdir(parents=True)
        pair = KeyPair.fresh()
        for name in ("id_ed25519", "rank_ed25519"):
            (self.keys / name).write_text(pair.private)
            (self.keys / name).chmod(0o600)
            (self.keys / f"{name}.pub").write_text(pair.public + "\n")
        self.mark = owner_mark(pair.public)
        self._write_stack_file()
        self.guests = ("101", "102")
        if self.case.command.rents:
            self.rent = Rent(self.world.account_file, self.stack, self.mark)
            self.guests = self.rent.order()

    def _write_stack_file(self) -> None:
        lines = ["config:", "  softlayer:timeScale: 0.05", f"  softlayer:configFile: {self.world.account_file}"]
        if self.case.command.words[0] == "guard":
            lines.append("  microcluster:guard: {lease: 0.0005}")
        lines += [
            "  microcluster:cluster:",
            "    datacenter: lon06",
            "    flavor: AC1_16X120X100",
            "    adminCidrs: [198.51.100.7/32]",
        ]
        lines += ["  microcluster:container:", "    image: r.test/microcluster/training:local"]
        lines += ["  microcluster:job:", "    kind: openseq2seq"]
        (self.place / "project" / "stacks" / f"Pulumi.{self.stack}.yaml").write_text("\n".join(lines) + "\n")

    def facts(self) -> ClusterFacts:
        """Return the facts of this case's cluster."""
        hosts = tuple(
            HostFacts(
                f"gpu-{number}",
                self.guests[number],
                ADDRESSES[number],
                f"10.112.7.{number + 2}",
                self.world.host_key.public,
            )
            for number in range(2)
        )
        own = {
            "stack": self.stack,
            "mark": self.mark,
            "hosts": hosts,
            "account_config_file": str(self.world.account_file),
        }
        if self.case.command.queued:
            asked = {"account": "queue", "container": None, "queue": Queue("gpu", 2, 4, 3600)}
            own |= {**asked, "account_config_file": str(self.place / "site")}
        return replace(
            self.world.facts,
            **own,
            key_file=str(self.keys / "id_ed25519"),
            rank_key_file=str(self.keys / "rank_ed25519"),
        )

    def write_state(self) -> None:
        """Write Pulumi's state with the outputs, and one in which nothing is left, for the stand-in of the engine."""
        text = self.facts().to_json()
        (self.place / "facts.json").write_text(text)
        urn = f"urn:pulumi:{self.stack}::microcluster::"
        stack = {"urn": f"{urn}pulumi:pulumi:Stack::microcluster-{self.stack}", "type": "pulumi:pulumi:Stack"}
        guests = [
            {
                "urn": f"{urn}softlayer:index:VirtualGuest::gpu-{number}-guest",
                "type": "softlayer:index:VirtualGuest",
                "id": guest,
            }
            for number, guest in enumerate(self.guests)
        ]
        whole = {
            "version": 3,
            "checkpoint": {
                "stack": self.stack,
                "latest": {"resources": [stack | {"outputs": {"microcluster": text}}, *guests]},
            },
        }
        empty = {"version": 3, "checkpoint": {"stack": self.stack, "latest": {}}}
        self.state_file.parent.mkdir(parents=True)
        self.state_file.write_text(json.dumps(whole))
        (self.place / "home" / "forgotten.json").write_text(json.dumps(empty))

    def write_login_host(self, port: int) -> None:
        """Write the person's configuration of ssh, which names the first machine."""
        (self.place / "site_known").write_text(f"site {self.world.host_key.public}\n")
        lines = (f"HostName {ADDRESSES[0]}", f"Port {port}", "User me", f"IdentityFile {self.keys / 'id_ed25519'}")
        lines += ("HostKeyAlias site", f"UserKnownHostsFile {self.place / 'site_known'}")
        (self.place / "site").write_text("\n  ".join(("Host login", *lines)) + "\n")

    def environment(self) -> dict[str, str]:
        """Return the variables of the command."""
        home = self.place / "home"
        return {
            "HOME": str(self.place / "person"),
            "MICROCLUSTER_HOME": str(home),
            "MICROCLUSTER_CACHE": str(home / "cache"),
            "TMPDIR": str(self.place / "tmp"),
            "PATH": os.environ.get("PATH", os.defpath),
            "NO_PROXY": "127.0.0.1",
            "LC_ALL": "C.UTF-8",
            "COLUMNS": "200",
        }

    @property
    def runs(self) -> Path:
        """Where the runs of this stack are fetched to."""
        return self.place / "project" / "artifacts" / self.stack


def play(world: World, case: Case, place: Path) -> Result:
    """Play one case and return what it has shown; nothing of it is left running."""
    stage = Stage(world, case, place)
    stage.prepare()
    stage.write_state()
    stage.write_login_host(0)
    before = snapshot(place)
    began_log, result = place / "machines.log", Result()
    began_log.touch()
    _adopt_orphans()
    server, port = _machines(world, case, place)
    stage.write_login_host(port)
    try:
        if stage.rent:
            stage.rent.wait_until_over()
        result = _carry_out(stage, server, port)
        seen = Seen(
            place, stage.stack, str(world.facts.run), case.command, result.code, is_killed=bool(result.failures)
        )
        result.said = seen.said
        result.failures += [f"place: {what}" for what in (*changes(seen, before), *reserved(seen))]
        result.failures += [f"words: {what}" for what in words(seen)]
        if stage.rent and case.command.words != ("down",):  # Which refuses, as something would be lost.
            result.failures += [f"bill: machine {left} is still billed" for left in stage.rent.billed()]
    finally:
        os.kill(server, signal.SIGKILL)
        os.waitpid(server, 0)
        if stage.rent:
            stage.rent.cancel()
    lines = began_log.read_text().splitlines()
    attacked = [line for line in lines if "ATTACKED" in line]
    result.touched, result.attacked = bool(attacked), attacked[0][9:300] if attacked else ""
    return result


def _machines(world: World, case: Case, place: Path) -> tuple[int, int]:
    """Start the machines in a process of their own; return its number and their port."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        os.close(read)
        errors = os.open(place / "machines.err", os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(errors, 2)
        try:
            host_key = paramiko.Ed25519Key.from_private_key(io.StringIO(world.host_key.private))
            serve(Machines(world.truth, case.attack, place, place / "machines.log", host_key), write)
        finally:
            os._exit(1)
    os.close(write)
    port = os.read(read, 10)
    os.close(read)
    return child, int(port)


def _carry_out(stage: Stage, server: int, port: int) -> Result:
    """Run the command to its end or its limit, and measure it."""
    command, began = stage.case.command, time.monotonic()
    fills = {
        "SENTENCES": str(stage.place / "sentences"),
        "FETCHED": str(stage.world.place / "fetched"),
        "STACK": stage.stack,
        "PORT": str(free_port()),
    }
    argv = [fills.get(word, word) for word in command.words]
    child = os.fork()
    if child == 0:
        driver.become(
            stage.place,
            argv,
            stage.environment(),
            port,
            stack=stage.stack,
            given=command.given,
            patient=command.patient,
            hurried=stage.case.attack is not None,
        )
    result, pidfd, interrupted = Result(), os.pidfd_open(child), False
    while not select.select([pidfd], [], [], LOOK_EVERY_S)[0]:
        seconds = time.monotonic() - began
        if command.interrupted and not interrupted and seconds > INTERRUPT_AFTER_S:
            os.kill(child, signal.SIGINT)
            interrupted = True
        result.peak_bytes = max(result.peak_bytes, _memory(child))
        if result.peak_bytes > KILLED_AT_BYTES or seconds > command.limit_s:
            if seconds > command.limit_s:
                doing = _where(child, stage.place / "stacks")
                os.kill(server, signal.SIGUSR1)
                result.failures.append(f"time: it was not over after {command.limit_s:.0f} s: {doing}")
            os.killpg(child, signal.SIGKILL)
            break
    os.close(pidfd)
    _, status, used = os.wait4(child, 0)
    _wait_for_masters()
    left = _kill_children(but=server)
    if left and not result.failures:
        result.failures.append(f"processes: it left {len(left)} behind: {' '.join(left)}")
    result.seconds = time.monotonic() - began
    result.peak_bytes = max(result.peak_bytes, used.ru_maxrss * 1024)
    if result.peak_bytes > MEMORY_BYTES:
        result.failures.append(f"memory: it had {result.peak_bytes / 1e6:.0f} MB in memory")
    result.code = os.waitstatus_to_exitcode(status)
    return result


def _adopt_orphans() -> None:
    """Become the parent of all processes that a command leaves behind."""
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)


def _wait_for_masters() -> None:
    """Return when all connections of OpenSSH's are closed, or after a while: each ends some milliseconds after it has agreed to."""
    until = time.monotonic() + CLOSING_S
    while time.monotonic() < until and any(_argv(pid).startswith("ssh\0") for pid in CHILDREN.read_text().split()):
        time.sleep(LOOK_EVERY_S)


def _argv(pid: int | str) -> str:
    """Return the arguments of a process, NUL-separated; nothing of one that has ended or is ending."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""


def _kill_children(but: int) -> list[str]:
    """End the children of this process, but for one; return what they were."""
    found = []
    while children := [int(pid) for pid in CHILDREN.read_text().split() if int(pid) != but]:
        for pid in children:
            with contextlib.suppress(OSError):
                if argv := _argv(pid):
                    found.append(argv.replace("\0", " ")[:300])
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
    return found


def _memory(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def _where(pid: int, stacks: Path) -> str:
    """Return what a process is doing: its processor time, and the innermost frames of its threads."""
    with contextlib.suppress(OSError):
        times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        busy_s = (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")
        os.kill(pid, signal.SIGUSR1)
        time.sleep(0.5)
        threads = stacks.read_text().split("\n\n")
        frames = [re.findall(r'File "[^"]*/([^"/]+)", line (\d+) in (\w+)', one) for one in threads]
        inner = [
            " < ".join(f"{file}:{line} {name}" for file, line, name in each if file != "threading.py")
            for each in frames
        ]
        return f"{busy_s:.1f} s of a processor; in " + "; ".join(one[:400] for one in inner)
    return "it is gone"
