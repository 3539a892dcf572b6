"""The commands that ask machines, with what they are given, their limits, and how a seeded case chooses one and an attack."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tests.hostile.attacks import CHANGES, FILES, LOGINS, MANNERS, OF_LISTS, OF_LOGS, OF_RECORDS, UPLOADS, Attack

COMMON = tuple(kind for kind in CHANGES if kind not in (*OF_LISTS, *OF_LOGS, *OF_RECORDS, "alive", "failed", "word"))
STATE = ("alive", "failed", "word")


@dataclass(frozen=True)
class Command:
    """One command as a person types it, after `fab`.

    Attributes:
        limit_s: how long it may take, with the product's own limits shortened as `driver.hurry` does.
        weight: how often it is chosen.
        questions: about how many it asks of well-behaved machines.
        both: whether it asks the second machine too.
        kinds: of what it reads beside the kinds that fit every answer.
        files: whether it reads files.
        sends: whether it sends files.
        rents: whether machines of its own are in the account, which have to be cancelled.
        given: whether the cluster's facts are its standard input.
        patient: whether it may wait for hours, as for the hash of a large file.
        raw: whether what the machine prints is shown as it is, by ssh.
        interrupted: whether a person ends it with Ctrl-C.
        asks: whether it asks a machine at all.
        queued: whether the stack is before a queue, whose login host OpenSSH reaches.
    """

    words: tuple[str, ...]
    limit_s: float
    weight: int = 2
    questions: int = 1
    both: bool = False
    kinds: tuple[str, ...] = STATE
    files: bool = False
    sends: bool = False
    rents: bool = False
    given: bool = False
    patient: bool = False
    raw: bool = False
    interrupted: bool = False
    asks: bool = True
    queued: bool = False

    @property
    def name(self) -> str:
        return " ".join((*self.words, *(("(queue)",) if self.queued else ())))


SHORT_S, LONG_S, END_S = 30.0, 90.0, 90.0
FETCHES = {
    "kinds": (*OF_LISTS, *OF_LISTS, *OF_LISTS, *OF_LISTS, *STATE, "lines"),
    "patient": True,
    "questions": 2,
    "both": True,
}
BRINGS = {**FETCHES, "questions": 13, "kinds": (*FETCHES["kinds"], *OF_RECORDS, *OF_RECORDS)}
"""The report follows what is fetched."""
STEP = {"given": True, "kinds": (), "weight": 1}
COMMANDS: tuple[Command, ...] = (
    Command(("status",), SHORT_S, weight=5),
    Command(("status", "--json"), SHORT_S, weight=3),
    Command(("status", "--preflight"), SHORT_S),
    Command(("watch",), SHORT_S, weight=4),
    Command(
        ("follow",),
        END_S,
        weight=3,
        questions=8,
        kinds=(*STATE, *OF_LISTS, *OF_RECORDS, "lines"),
        files=True,
        patient=True,
    ),
    Command(("logs",), SHORT_S, questions=2, weight=3, kinds=(*STATE, *OF_LOGS, *OF_LOGS)),
    Command(("logs", "--follow"), SHORT_S, questions=3, weight=3, kinds=(*STATE, *OF_LOGS, *OF_LOGS)),
    Command(("fetch",), LONG_S, weight=10, files=True, **BRINGS),
    Command(("fetch", "--everything"), LONG_S, weight=6, files=True, **BRINGS),
    Command(("fetch", "--json"), LONG_S, weight=4, files=True, **BRINGS),
    Command(("fetch", "--unfetched"), LONG_S, weight=3, **FETCHES),
    Command(("fetch", "--unfetched", "--json"), LONG_S, weight=2, **FETCHES),
    Command(
        ("report",), LONG_S, weight=5, questions=11, kinds=(*STATE, *OF_RECORDS, *OF_RECORDS, "lines"), patient=True
    ),
    Command(("report", "--json"), LONG_S, weight=3, questions=11, kinds=(*STATE, *OF_RECORDS, "lines"), patient=True),
    Command(("stop",), SHORT_S, both=True, weight=3, kinds=()),
    Command(("stop", "--json"), SHORT_S, both=True, kinds=()),
    Command(("resume",), LONG_S, weight=3, questions=12, both=True, patient=True),
    Command(("tensorboard", "--port", "PORT"), SHORT_S, weight=2, questions=1, kinds=(), interrupted=True),
    Command(("translate", "SENTENCES"), LONG_S, weight=3, questions=16, kinds=(*STATE, *OF_LISTS), patient=True),
    Command(
        ("translate", "SENTENCES", "--model", "FETCHED"),
        LONG_S,
        weight=2,
        questions=20,
        kinds=STATE,
        patient=True,
        sends=True,
    ),
    Command(("ssh", "gpu-0", "--", "true"), SHORT_S, weight=1, questions=1, kinds=(), raw=True, interrupted=True),
    Command(("trust", "gpu-1", "--yes"), SHORT_S, weight=2, questions=0, kinds=()),
    Command(("receipt",), SHORT_S, weight=1, questions=0, kinds=(), asks=False),
    Command(("plan", "--stack", "STACK"), SHORT_S, weight=1, questions=0, kinds=(), asks=False),
    Command(
        ("guard",), END_S, weight=9, questions=11, both=True, kinds=(*STATE, *OF_LISTS, "lines"), files=True, rents=True
    ),
    Command(
        ("guard", "--json"),
        END_S,
        weight=2,
        questions=11,
        both=True,
        kinds=(*STATE, *OF_LISTS, "lines"),
        files=True,
        rents=True,
    ),
    Command(
        ("down", "--discard"), END_S, weight=4, questions=5, both=True, kinds=(*STATE, *OF_LISTS, "lines"), rents=True
    ),
    Command(
        ("down",), END_S, weight=2, questions=4, both=True, kinds=(*STATE, *OF_LISTS, "lines"), rents=True, patient=True
    ),
    Command(("status",), LONG_S, weight=3, questions=6, queued=True),
    Command(("fetch",), LONG_S, weight=3, files=True, queued=True, **{**FETCHES, "both": False}),
    Command(("step.leave-queue",), LONG_S, weight=2, questions=4, queued=True, patient=True, given=True, kinds=()),
    Command(("step.prepare-node",), LONG_S, questions=10, patient=True, **STEP),
    Command(("step.mount-volume",), LONG_S, questions=25, patient=True, **STEP),
    Command(("step.bring-image",), LONG_S, questions=3, both=True, patient=True, **STEP),
    Command(("step.start-container",), LONG_S, questions=18, patient=True, **STEP),
    Command(("step.start-job",), LONG_S, questions=10, both=True, patient=True, **STEP),
    Command(("step.stop-job",), SHORT_S, given=True, kinds=(), both=True, weight=2),
)


@dataclass(frozen=True)
class Case:
    """One command and one attack, by a seed and a number."""

    seed: int
    number: int
    command: Command
    attack: Attack | None

    def __str__(self) -> str:
        return f"--seed {self.seed} --case {self.number}: fab {self.command.name}; {self.attack}"


def case_of(seed: int, number: int, commands: Sequence[Command] = COMMANDS) -> Case:
    """Choose command and attack."""
    chance = Random(f"{seed}-{number}")  # noqa: S311 - a test's own chance
    command = chance.choices(commands, [each.weight for each in commands])[0]
    if not command.asks:
        return Case(seed, number, command, None)
    asks = bool(command.questions)
    weights = {"answer": 8 * asks, "manner": 3 * asks, "login": 1, "files": 4 * command.files}
    weights["uploads"] = 12 * command.sends
    group = chance.choices(list(weights), list(weights.values()))[0]
    kinds = {
        "answer": (*COMMON, *command.kinds, *command.kinds),
        **{"manner": MANNERS, "login": LOGINS, "files": FILES, "uploads": UPLOADS},
    }[group]
    kind = chance.choice(kinds)
    at = chance.choice((0, 0, chance.randrange(max(command.questions, 1))))
    if group in ("login", "files", "uploads") or kind in (
        *STATE,
        *OF_LISTS,
        *OF_LOGS,
        *OF_RECORDS,
        "json",
        "json root",
    ):
        at = 0  # They fit few questions.
    lasts, on = chance.random() < 0.5, chance.choice((None, 0, 1)) if command.both and group == "answer" else None
    return Case(seed, number, command, Attack(group, kind, at, lasts, on, f"{seed}-{number}"))
