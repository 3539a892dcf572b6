"""One case: its folders, its machines and its command, and what must hold of them afterwards."""

import contextlib
import ctypes
import hashlib
import io
import json
import os
import re
import select
import shutil
import signal
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import paramiko

from core.home import owner_mark
from core.ssh_key import KeyPair
from microcluster.jobs.cluster_facts import ClusterFacts, Host
from tests.hostile import driver
from tests.hostile.account import Rent
from tests.hostile.commands import Case
from tests.hostile.machine import ADDRESSES, Machines, serve
from tests.hostile.truth import Truth

ROOT = Path(__file__).parents[2]
MEMORY_BYTES, KILLED_AT_BYTES = 200 * 10**6, 700 * 10**6
"""How much a command may have in memory, and at how much it is ended, lest the computer suffers."""
SUBREAPER, CHILDREN = 36, Path("/proc/thread-self/children")
"""A number of prctl; and the children of this thread, which is the only one."""
LOOK_EVERY_S, INTERRUPT_AFTER_S = 0.05, 5.0
LONGEST_TEXT, LONGEST_END = 100_000, 4_000
"""Characters: of all that a command prints about a failure, and of its last paragraph."""
FORBIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
NEXT = re.compile(r"\bfab |\bmake |\bpulumi up|same command again|[Tt]ry again|[Rr]epeat|Run it again")
CODES = (0, 1, 2, 3)
MISTAKE, TRACEBACK = "This is a mistake in the program", "Traceback (most recent call last)"
STATE_OF_OURS = ("home/locks/", "home/receipts/", "home/cache/", "home/journal", "home/keys/{stack}/guards/")
STATE_FILES = (
    "home/keys/{stack}/pinned_hosts",
    "home/keys/{stack}/trusted_hosts.json",
    "home/keys/{stack}/known_hosts",
)
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
        failures: what did not hold, one sentence each.
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
            Host(
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
    before = snapshot(place)
    began_log, result = place / "machines.log", Result()
    began_log.touch()
    _adopt_orphans()
    server, port = _machines(world, case, place)
    try:
        if stage.rent:
            stage.rent.wait_until_over()
        result = _carry_out(stage, server, port)
        result.failures += changes(stage, before)
        result.failures += words(stage, result)
        if stage.rent and case.command.words[0] != "down":
            result.failures += [f"the guard left {left} billed" for left in stage.rent.billed()]
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
        "STACK": stage.stack,
        "PORT": str(20_000 + stage.case.number % 10_000),
    }
    words = [fills.get(word, word) for word in command.words]
    child = os.fork()
    if child == 0:
        driver.become(
            stage.place,
            words,
            stage.environment(),
            port,
            stack=stage.stack,
            given=command.given,
            patient=command.patient,
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
                result.failures.append(f"it was not over after {command.limit_s:.0f} s: {doing}")
            os.killpg(child, signal.SIGKILL)
            break
    os.close(pidfd)
    _, status, used = os.wait4(child, 0)
    left = _kill_children(but=server)
    if left and not result.failures:
        result.failures.append(f"it left {len(left)} processes behind: {' '.join(left)}")
    result.seconds = time.monotonic() - began
    result.peak_bytes = max(result.peak_bytes, used.ru_maxrss * 1024)
    if result.peak_bytes > MEMORY_BYTES:
        result.failures.append(f"it had {result.peak_bytes / 1e6:.0f} MB in memory")
    result.code = os.waitstatus_to_exitcode(status)
    return result


def _adopt_orphans() -> None:
    """Become the parent of all processes that a command leaves behind."""
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)


def _kill_children(but: int) -> list[str]:
    """End the children of this process, but for one; return what they were."""
    found = []
    while children := [int(pid) for pid in CHILDREN.read_text().split() if int(pid) != but]:
        for pid in children:
            with contextlib.suppress(OSError):
                if (state := Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]) != "Z":
                    found.append(f"{Path(f'/proc/{pid}/cmdline').read_text()[:100]} ({state})")
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


def snapshot(place: Path) -> dict[str, tuple[str, str]]:
    """Return what lies below a folder: kind, and the hash of the content or the target of a link."""
    found = {}
    for path in _below(place):
        known = path.lstat()
        if stat.S_ISLNK(known.st_mode):
            value = ("link", os.readlink(path))
        elif stat.S_ISDIR(known.st_mode):
            value = ("folder", "")
        elif stat.S_ISREG(known.st_mode):
            value = ("file", hashlib.sha256(path.read_bytes() if known.st_size < 10**8 else b"large").hexdigest())
        else:
            value = ("other", str(known.st_mode))
        found[os.fsdecode(os.path.relpath(path, place))] = value
    return found


def _below(folder: Path) -> Iterator[Path]:
    """Yield all below a folder; no name is too deep for it, as it goes on by relative steps where a path gets too long."""
    for where, folders, files in os.walk(folder, onerror=lambda _: None):
        for name in (*folders, *files):
            with contextlib.suppress(OSError):
                path = Path(where, name)
                path.lstat()
                yield path


def changes(stage: Stage, before: dict[str, tuple[str, str]]) -> list[str]:
    """Say what was made, changed or removed outside the run's folder and the known places of the product's state."""
    after, failures = snapshot(stage.place), []
    of_run = re.compile(rf"project/artifacts/{stage.stack}/{stage.world.facts.run}-[0-9a-f]*(/|$)")
    # Beside it lie the lock of a fetch, and what has not arrived whole.
    beside = re.compile(
        rf"project/artifacts/{stage.stack}/\.{stage.world.facts.run}-[0-9a-f]*\.(lock|partial(/[0-9a-f]{{32}})?)$"
    )
    parents = {f"project/artifacts/{stage.stack}", "project/artifacts", f"home/keys/{stage.stack}"}
    own = {"stacks", "stdout", "stderr", "machines.log", "machines.err"}
    for name in sorted(before.keys() | after.keys()):
        if (
            before.get(name) == after.get(name)
            or name in own
            or name in parents
            or beside.match(name)
            or name.startswith("project/__pycache__")
        ):
            continue
        what = "was made" if name not in before else "was removed" if name not in after else "was changed"
        if of_run.match(name):
            failures += [f"{name[-200:]!r} {why}" for why in flaws(name, after.get(name))]
        elif not _is_state(name, stage):
            failures.append(f"{name[:200]!r} {what} outside the run's folder")
    return failures[:5] + reserved(stage)


def _is_state(name: str, stage: Stage) -> bool:
    places = [each.format(stack=stage.stack) for each in STATE_OF_OURS]
    if any(name.startswith(each) or name == each.rstrip("/") for each in places):
        return True
    if stage.case.command.rents and name.startswith("home/state/.pulumi/"):
        return True
    return name in [each.format(stack=stage.stack) for each in STATE_FILES]


def flaws(name: str, known: tuple[str, str] | None) -> Iterator[str]:
    """Say what is wrong with something in the run's folder."""
    if known and known[0] not in ("file", "folder"):
        yield f"is a {known[0]}"
    if FORBIDDEN.search(name) or "\n" in name or "\t" in name:
        yield "has control characters in its name"
    if ".git" in name.split("/"):
        yield "is of a git repository"


def reserved(stage: Stage) -> list[str]:
    """Say which file of ours a machine has written in the run's folder."""
    failures = []
    for folder in stage.runs.glob("*") if stage.runs.is_dir() else ():
        manifest = folder / "manifest.json"
        if manifest.is_file():
            try:
                known = json.loads(manifest.read_text())
            except (ValueError, RecursionError):
                known = None
            if not isinstance(known, dict) or "fetched" not in known:
                failures.append("manifest.json was written by the machine")
        if stage.case.command.words[0] not in ("report", "follow"):
            failures += [
                f"{name} was written by the machine"
                for name in ("report.html", "report.json")
                if (folder / name).exists()
            ]
    return failures


def words(stage: Stage, result: Result) -> list[str]:
    """Say what is wrong with what the command has printed, and with its exit code."""
    command = stage.case.command
    out, errors = ((stage.place / name).read_bytes() for name in ("stdout", "stderr"))
    result.said = (out[-3000:] + b"\n--\n" + errors[-3000:]).decode("utf-8", "backslashreplace")
    failures, killed = [], any("was not over" in one or "in memory" in one for one in result.failures)
    texts = {}
    for name, content in (("output", out), ("errors", errors)):
        try:
            texts[name] = content.decode("utf-8")
        except UnicodeDecodeError as error:
            failures.append(f"its {name} are not UTF-8 ({error.reason})")
            texts[name] = content.decode("utf-8", "replace")
        if not command.raw and (found := FORBIDDEN.search(texts[name])):
            failures.append(f"its {name} have the control character {found[0]!r}")
        for mark, what in ((MISTAKE, "calls it a mistake in the program"), (TRACEBACK, "has a traceback")):
            if mark in texts[name]:
                failures.append(f"its {name} {what}: {_line_with(mark, texts[name])}")
    if killed or command.raw:
        return failures
    if result.code not in CODES:
        failures.append(f"its exit code is {result.code}")
    if result.code and len(texts["errors"]) > LONGEST_TEXT:
        failures.append(f"it printed {len(texts['errors']):,} characters about its failure")
    last = [each for each in (texts["errors"] or texts["output"]).strip().split("\n") if each.strip()]
    both = texts["output"] + texts["errors"]
    if result.code and not last:
        failures.append("it failed without a word")
    elif "--json" in command.words and _is_json(out):
        pass  # What it says is its answer.
    elif result.code:
        if len(last[-1]) > LONGEST_END:
            failures.append(f"its last line has {len(last[-1]):,} characters")
        if not NEXT.search("\n".join(both.strip().split("\n")[-20:]) + "\n".join(last[-20:])):
            failures.append(f"it failed without a next command: {last[-1][:300]!r}")
    return failures


def _is_json(content: bytes) -> bool:
    try:
        return bool(content) and json.loads(content) is not None
    except (ValueError, RecursionError):
        return False


def _line_with(mark: str, text: str) -> str:
    lines = text.split("\n")
    at = next(number for number, line in enumerate(lines) if mark in line)
    return (lines[at] if mark == MISTAKE else " | ".join(lines[-4:]))[:600]
