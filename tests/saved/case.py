"""One case: a random run on machines that fail, by the agent's own programs, then fetched and asked about by the product's own commands."""

import contextlib
import fnmatch
import hashlib
import importlib
import io
import json
import random
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from rich.filesize import decimal

from agent.formats.checkpoints import rewritten
from agent.formats.checkpoints.replica import SLOTS
from agent.run.context import Run
from agent.supervise.checkpoint_watch import CheckpointWatch
from agent.supervise.health_rules import HealthRules
from agent.supervise.prepare import prepare
from microcluster.analysis.run_state import Outcome
from microcluster.core.plain_text import printable
from microcluster.run import status, unsaved_work
from microcluster.setup import environment
from tests.saved.machines import RUN, STACK, Forked, Machines
from tests.saved.program import FORMS, POINTERS, Program

fetching = importlib.import_module("microcluster.run.fetch")  # In its package the name is the command's.
STEP, KEPT = 100, 2
FINISHED, KILLED, FAILED = "finished", "killed", "failed"


@dataclass(frozen=True)
class Attempt:
    """One attempt of a run.

    Attributes:
        saves: how many checkpoints it saves.
        until: after how many files of one more it is killed in the middle of a file; None where it is not.
        rotates: how many checkpoints the program keeps; None where it keeps all.
        looks: after which of its checkpoints the agent happens to look.
        ends: how it ends.
        replaced: the machine that is replaced afterwards.
    """

    saves: int
    until: int | None
    rotates: int | None
    looks: frozenset[int]
    ends: str
    replaced: int | None


@dataclass(frozen=True)
class Case:
    """What a seed and a number make."""

    seed: int
    number: int
    nodes: int
    shared: bool
    form: str
    odd: bool
    links: frozenset[str]
    pointer: str | None
    best: bool
    keep: tuple[str, ...]
    attempts: tuple[Attempt, ...]

    def __str__(self) -> str:
        where = f"{self.nodes} nodes" + (" with a drive" if self.shared else "")
        ends = ", ".join(
            one.ends + ("" if one.replaced is None else f" and gpu-{one.replaced} replaced") for one in self.attempts
        )
        return f"seed {self.seed} case {self.number}: {self.form} on {where}: {ends}"


@dataclass
class Played:
    """What a case has shown; ``outcome`` is the run's state before it was fetched."""

    outcome: Outcome | None = None
    flaws: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def case_of(seed: int, number: int) -> Case:
    """Return the case that a seed and a number make."""
    chance = random.Random(f"{seed}/{number}")  # noqa: S311 - a case is played again by its number
    nodes, form = chance.choices((1, 2, 3), (4, 4, 2))[0], chance.choice(list(FORMS))
    last = chance.choice((0, 0, 1, 1, 2, 3))
    kinds = [one for one in ("in", "out", "nowhere", "folder") if chance.random() < 0.2]
    return Case(
        seed,
        number,
        nodes,
        shared=nodes > 1 and chance.random() < 0.3,
        form=form,
        odd=chance.random() < 0.5,
        links=frozenset(kinds),
        pointer=chance.choice([None, *POINTERS]),
        best=form == "trainer" and chance.random() < 0.5,
        keep=chance.choice(((), (), (f"*{STEP}*",), ("*.csv",))),
        attempts=tuple(_attempt(chance, nodes, is_last=number == last) for number in range(last + 1)),
    )


def _attempt(chance: random.Random, nodes: int, *, is_last: bool) -> Attempt:
    saves = chance.choice((0, 1, 1, 2, 3))
    ends = chance.choices((FINISHED, KILLED, FAILED), (6, 2, 1) if is_last else (0, 3, 1))[0]
    return Attempt(
        saves=saves,
        until=chance.choice((None, 0, 1, 2)) if ends == KILLED else None,
        rotates=chance.choice((None, None, 1, 2, 3)),
        looks=frozenset(number for number in range(saves) if chance.random() < 0.6),
        ends=ends,
        replaced=chance.randrange(nodes) if not is_last and chance.random() < 0.25 else None,
    )


def play(case: Case, place: Path) -> Played:
    """Carry out a case in a folder of its own."""
    with mock.patch.object(subprocess, "Popen", Forked), mock.patch.multiple(rewritten, STABLE_S=0, WRITTEN_S=0.005):
        return _play(case, place)


def _play(case: Case, place: Path) -> Played:
    played = Played()
    pattern = FORMS[case.form]
    machines = Machines(place / "machines", case.nodes, shared=case.shared, pattern=pattern, keep=case.keep)
    logdirs = [machines.drive or machines.logdir(node) for node in range(case.nodes)]
    outside = [(machines.drive.parent if machines.drive else disk) / "scratch" for disk in machines.disks]
    chance = random.Random(f"{case.seed}/{case.number}/program")  # noqa: S311 - as above
    program = Program(case.form, chance, logdirs, outside, case.odd, case.links, case.pointer, best=case.best)
    run = Training(case, machines, program, played)
    try:
        for attempt in case.attempts:
            run.attempt(attempt)
    except Exception as error:  # noqa: BLE001 - whatever it is, the case names it
        played.flaws.append(f"the agent ended with {type(error).__name__}: {error}")
    check_product(case, machines, program, place, played)
    return played


@dataclass
class Training:
    """The attempts of a run; what the supervisor does around them, and what is left of the program's bytes after each."""

    case: Case
    machines: Machines
    program: Program
    played: Played

    def attempt(self, attempt: Attempt) -> None:
        """Prepare as the supervisor does, let the program save, and end."""
        run = self.machines.opened()
        try:
            for node, logdir in enumerate(self.program.logdirs):
                if node == 0 or not self.case.shared:
                    logdir.mkdir(parents=True, exist_ok=True)
            run.remove("exit_code", "failure.json")
            run.enter("preparing")
            prepare(run)
            self.settle(run.resumed)
            self.program.see()
            run.enter("training")
            watch = CheckpointWatch(run, HealthRules(0.0, run.spec), threading.Event())
            self.let_save(attempt, run, watch)
            if attempt.ends != KILLED:
                watch.look(True)
                code = 0 if attempt.ends == FINISHED else 1
                run.emit({"event": "end", "exit_code": code, "max_steps": run.spec.expected.max_steps})
                run.write("exit_code", f"{code}\n")
            self.tell(f"{attempt.ends}; {watch.rules.not_copied or 'copied'}")
        finally:
            for file in (run.log, run.events, run.samples):
                file.close()
        self.look_for_all("when it had ended")
        if attempt.replaced is not None:
            self.replace(attempt.replaced)

    def let_save(self, attempt: Attempt, run: Run, watch: CheckpointWatch) -> None:
        resumed = run.resumed or 0
        for number in range(attempt.saves):
            run.emit({"event": "train", "step": resumed + STEP * (number + 1), "loss": 2.0})
            self.program.save(resumed + STEP * (number + 1))
            if attempt.rotates:
                self.program.rotate(attempt.rotates)
            if number in attempt.looks:
                watch.look()
                self.program.see()
        if self.program.seed.random() < 0.2:
            self.program.rename()
        if attempt.until is not None:
            run.emit({"event": "train", "step": resumed + STEP * (attempt.saves + 1), "loss": 2.0})
            self.program.save(resumed + STEP * (attempt.saves + 1), until=attempt.until)
        self.tell(f"from {resumed}: {self.program.steps()}, {len(self.program.truth)} files")

    def settle(self, resumed: int | None) -> None:
        """Take note of what a resume has moved: it has to be somewhere, but for old checkpoints, of which two stay."""
        program = self.program
        self.put_back(resumed)
        stays = program.steps()[-KEPT:] + ([min(program.steps())] if program.best and program.steps() else [])
        for key, one in list(program.truth.items()):
            node, path = key
            if any(_content(logdir / path) == one.content for logdir in program.logdirs):
                continue
            is_kept = any(fnmatch.fnmatchcase(path, pattern) for pattern in self.case.keep)
            is_old = one.step is not None and one.step not in stays and not is_kept
            if not (is_old or one.is_pointer) and one.content in map(_content, self._files(f"logdir/{path}")):
                continue
            del program.truth[key]
            if is_old or one.is_pointer:
                self.played.counts["old ones that a resume removed"] += not one.is_pointer
            else:
                program.aside.append((path, one.content))
        self.tell(f"goes on from {resumed}; {len(program.aside)} files put aside")
        self.look_for_all("after the preparation")

    def put_back(self, resumed: int | None) -> None:
        """Take note that a torn state has given way to the one that was seen before."""
        program = self.program
        if program.torn and program.seen:
            there = {path: _content(program.logdirs[node] / path) for node, path in program.seen}
            wrong = [path for (_, path), one in program.seen.items() if there[path] != one.content]
            if wrong and program.form != "over-link":
                self.played.flaws.append(f"goes on from {resumed} without {wrong}")
            program.truth = program.whole()
        elif program.torn:  # Of ranks, a program would not begin with it.
            program.unloadable = program.form == "over-ranks"
            program.truth = {key: one for key, one in program.truth.items() if not key[1].endswith(".npz")}
        program.torn = False

    def look_for_all(self, when: str) -> None:
        """Name every file whose bytes are on no disk any more."""
        there = {(path.name, _content(path)) for path in self._files()}
        for path, content in expected(self.program):
            if (path.rpartition("/")[2], content) not in there:
                self.played.flaws.append(f"{when}, {printable(path)} was on no disk")
                self._forget(content)

    def replace(self, node: int) -> None:
        """Lose a machine with all that it alone has."""
        self.tell(f"gpu-{node} is replaced")
        self.machines.replace(node)
        there = {(path.name, _content(path)) for path in self._files()}
        for path, content in expected(self.program, pointers=True):
            if (path.rpartition("/")[2], content) not in there:
                self.played.counts["lost with a machine"] += 1
                self._forget(content)

    def _files(self, name: str = "") -> Iterator[Path]:
        """Yield what lies on the disks, of this name; of a replica only what was received whole."""
        unfinished = [disk / "runs" / RUN / slot for disk in self.machines.disks for slot in SLOTS]
        unfinished = [slot for slot in unfinished if (slot.parent / "copy").resolve() != slot]
        for path in self.machines.place.rglob("*"):
            is_ours = "agent" in path.parts or any(path.is_relative_to(slot) for slot in unfinished)
            if not is_ours and str(path).endswith(f"/{name}" if name else ""):
                yield path

    def _forget(self, content: bytes) -> None:
        program = self.program
        program.truth = {key: one for key, one in program.truth.items() if one.content != content}
        program.seen = {key: one for key, one in program.seen.items() if one.content != content}
        program.aside = [one for one in program.aside if one[1] != content]

    def tell(self, text: str) -> None:
        self.played.log.append(text)


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def expected(program: Program, *, pointers: bool = False) -> list[tuple[str, bytes]]:
    """Return (path, content) of all that must be here in the end; who resumes sets pointers anew."""
    own = [(path, one.content) for (_, path), one in program.whole().items() if pointers or not one.is_pointer]
    return own + program.aside


def check_product(case: Case, machines: Machines, program: Program, place: Path, played: Played) -> None:
    """Ask what would be lost, fetch, fetch everything, and ask again."""
    wanted = expected(program)
    played.counts.update({"runs": 1, "files": len(wanted), "bytes": sum(len(content) for _, content in wanted)})
    with _product(machines, place) as said:
        try:
            _check_question(wanted, played)
            _check_usual_fetch(program, place, played)
            _check_everything(wanted, place, played)
        except Exception as error:  # noqa: BLE001 - whatever it is, the case names it
            played.flaws.append(f"a command ended with {type(error).__name__}: {error}")
    played.log += said.getvalue().splitlines()


@contextlib.contextmanager
def _product(machines: Machines, place: Path) -> Iterator[io.StringIO]:
    """Let the commands find these machines, and a folder of this case for what they fetch."""
    facts, said = machines.facts, io.StringIO()
    seams: list[tuple[Any, str, Callable[..., Any]]] = [
        (fetching, "cluster_of", lambda _: facts),
        (fetching, "open_hosts", lambda _: machines.hosts()),
        (fetching, "write_report", lambda *_: None),  # It asks an account.
        (status, "find_cluster", lambda _: facts),
        (status, "launcher_of", lambda _: machines.hosts()[0]),
    ]
    with contextlib.ExitStack() as stack:
        for module, name, function in seams:
            stack.enter_context(mock.patch.object(module, name, function))
        stack.enter_context(mock.patch.object(environment, "ARTIFACTS", place / "artifacts"))
        for stream in ("stdout", "stderr"):
            stack.enter_context(mock.patch(f"sys.{stream}", said))
        yield said


def _check_question(wanted: list[tuple[str, bytes]], played: Played) -> None:
    (cluster, outcome), listed = status.observed(STACK), fetching.unfetched_runs(STACK)
    asked, played.outcome = unsaved_work.judge(cluster.run, outcome, listed), outcome
    played.log.append(f"asked: {asked}")
    if wanted and not asked:
        played.flaws.append("nothing was asked before the machines go")
    named = [text for one in listed for text in (*one["unfetched"], *one["silent"])]
    for path, content in wanted:
        if not any(printable(path[:60]) in text and decimal(len(content)) in text for text in named):
            played.flaws.append(f"{printable(path)} was not named in the question")


def _check_usual_fetch(program: Program, place: Path, played: Played) -> None:
    code = fetching.fetch_runs(STACK)
    here = _fetched(place, played)
    if code and not played.flaws:
        played.flaws.append(f"fetch ended with {code}")
    played.counts["fetched as usual"] += len(here)
    newest = max(program.steps(), default=None)
    for (node, path), one in program.whole().items():
        if program.is_over and node:  # A part that had no copy when the run was killed is one of an unknown step.
            continue
        if newest is not None and one.step == newest and hashlib.sha256(one.content).hexdigest() not in here:
            played.flaws.append(f"a usual fetch did not bring {printable(path)} of the newest checkpoint")


def _check_everything(wanted: list[tuple[str, bytes]], place: Path, played: Played) -> None:
    code = fetching.fetch_runs(STACK, everything=True)
    here = _fetched(place, played)
    missing = [path for path, content in wanted if hashlib.sha256(content).hexdigest() not in here]
    played.counts["fetched"] += len(here)
    played.flaws += [f"LOST with exit code {code}: {printable(path)}" for path in missing]
    if code:
        played.flaws.append(f"fetch --everything ended with {code}")
    asked = unsaved_work.what_would_be_lost(STACK)
    if asked and not missing:
        played.flaws.append(f"all is here, and yet it asks: {'; '.join(asked)}")


def _fetched(place: Path, played: Played) -> Mapping[str, str]:
    """Return {hash: path there} of the files that are here, each compared with the manifest."""
    found = {}
    for manifest in (place / "artifacts").glob("*/*/manifest.json"):
        for row in json.loads(manifest.read_text())["files"]:
            content = _content(manifest.parent / (row["here"] or row["path"]))
            if content is None or hashlib.sha256(content).hexdigest() != row["sha256"]:
                played.flaws.append(f"{printable(row['path'])} is not here as the manifest says")
            found[row["sha256"]] = row["path"]
    return found
