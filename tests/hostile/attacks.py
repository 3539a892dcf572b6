"""What a hostile machine does to one answer: a seeded choice of a kind and of its details."""

import base64
import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

from tests.hostile.truth import Answer, as_json
from tests.hostile.values import SIZES, WRONG, Scene, hostile_names, twins

RAW = "@@raw-{}@@"
"""Stands in a JSON text where something is written that no encoder would write."""
DEEP, DIGITS, LISTED, SMALL_FILES = 10**5, 10**5, 10**6, 20_001
CODES = (-1, 1, 2, 41, 126, 127, 130, 137, 255, 256, 2**31 - 1, 2**31, 2**32 - 1)


# Of one answer as text.


def _text(scene: Scene, answer: Answer) -> Answer:
    put = scene.text.encode("utf-8", "surrogatepass")
    return scene.chance.choice(
        (
            Answer(put, answer.stderr, answer.code),
            Answer(answer.stdout + put, answer.stderr, answer.code),
            Answer(put + b"\n" + answer.stdout, put, answer.code),
            Answer(answer.stdout, put, scene.chance.choice((1, 2, 255))),
            Answer(put, put, 1),
        )
    )


def _many_lines(scene: Scene, answer: Answer) -> Answer:
    return Answer(b"line\n" * LISTED, answer.stderr, scene.chance.choice((0, 1)))


def _long_line(scene: Scene, answer: Answer) -> Answer:
    return Answer(b"x" * scene.chance.choice((10**5, 5 * 10**6)), b"y" * 10**5, scene.chance.choice((0, 1)))


def _cut(scene: Scene, answer: Answer) -> Answer:
    return Answer(answer.stdout[: scene.chance.randrange(len(answer.stdout) + 1)], b"", answer.code)


def _empty(scene: Scene, answer: Answer) -> Answer:
    return Answer(b"", b"", scene.chance.choice((0, 1)))


def _bytes(scene: Scene, answer: Answer) -> Answer:
    return Answer(scene.chance.randbytes(scene.chance.choice((10, 1000, 100_000))), answer.stderr, answer.code)


def _not_utf8(scene: Scene, answer: Answer) -> Answer:
    at = scene.chance.randrange(len(answer.stdout) + 1)
    return Answer(answer.stdout[:at] + b"\xff\xfe\xc0\x80\xed\xa0\x80" + answer.stdout[at:], answer.stderr, answer.code)


def _numbers(scene: Scene, answer: Answer) -> Answer:
    """Put other numbers in place of those that are there."""
    other = scene.chance.choice(
        (b"-1", b"9" * 5000, b"9" * DIGITS, b"1e999", b"nan", b"0x10", b"", b"1_000", "\u0661\u0662".encode())
    )
    return Answer(re.sub(rb"\d+", other, answer.stdout, count=scene.chance.choice((1, 50))), answer.stderr, answer.code)


def _code(scene: Scene, answer: Answer) -> Answer:
    return Answer(answer.stdout, scene.text.encode("utf-8", "surrogatepass"), scene.chance.choice(CODES))


def _log(scene: Scene, answer: Answer) -> Answer | None:
    """Send other bytes of a log than there are; None for what is no piece of a log."""
    found = re.fullmatch(rb'\[(\d+), "[A-Za-z0-9+/=]*"\]\n', answer.stdout)
    if not found:
        return None
    text = scene.chance.choice(
        (scene.text.encode("utf-8", "surrogatepass"), scene.chance.randbytes(5000), b"\r" * 10**6, b"x" * 10**7)
    )
    offset = scene.chance.choice((b"0", b"-5", b"9" * 30, found[1], b"x"))
    return Answer(b"[" + offset + b', "' + base64.b64encode(text) + b'"]\n')


def _events(scene: Scene, answer: Answer) -> Answer | None:
    """Put other lines into a file of events; None for what is none."""
    if b'{"event": ' not in answer.stdout[:60]:  # A line with the file's length is before.
        return None
    lines = answer.stdout.splitlines()
    for _ in range(scene.chance.choice((1, 5, 50))):
        at = scene.chance.randrange(len(lines))
        changed = _changed(scene, json.loads(lines[at])) if lines[at].startswith(b"{") else ""
        lines[at] = changed.encode("utf-8", "surrogatepass")
    return Answer(b"\n".join(lines), answer.stderr, answer.code)


# Of one answer as JSON.


def _places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*above, key)
        yield from _places(one, (*above, key))


def _put(value: Any, where: tuple[Any, ...], change: Callable[[Any, Any], None]) -> Any:
    for key in where[:-1]:
        value = value[key]
    change(value, where[-1])
    return value


def _raws(scene: Scene) -> dict[str, str]:
    """Return what no encoder would write, by what it is."""
    return {
        "deep lists": "[" * DEEP + "]" * DEEP,
        "deep objects": '{"a":' * DEEP + "1" + "}" * DEEP,
        "open": "[" * DEEP,
        "digits": "9" * DIGITS,
        "negative digits": "-" + "9" * 5000,
        "exponent": "1e" + "9" * 20,
        "number": "Infinity",
        "no number": "NaN",
        "long list": "[" + "1," * LISTED + "1]",
        "long object": "{" + ",".join(f'"{n}":{n}' for n in range(100_000)) + "}",
        "long text": '"' + "x" * 10**6 + '"',
        "twice": '1, "event": "phase", "phase": "training"',
        "half": '"\\ud8',
        "escaped": '"\\u001b[2J\\u009b\\u202e\\u0000"',
    }


def _changed(scene: Scene, value: Any) -> str:
    """Return JSON with one to three changes at random places."""
    chance, raws = scene.chance, {}
    for number in range(chance.choice((1, 1, 1, 2, 3))):
        places = list(_places(value))
        if not places:
            break
        # Near the root there is most to be believed.
        where = chance.choice([one for one in places if len(one) <= chance.choice((1, 2, 3, 9))] or places)
        kind = chance.choice(("wrong", "wrong", "wrong", "raw", "missing", "more", "text", "text"))
        if kind == "wrong":
            scene.made.append(f"{where} wrong")
            wrong = chance.choice(WRONG)
            _put(value, where, lambda inner, key, wrong=wrong: inner.__setitem__(key, wrong))
        elif kind == "text":
            scene.made.append(f"{where} text")
            text = scene.text
            _put(value, where, lambda inner, key, text=text: inner.__setitem__(key, text))
        elif kind == "raw":
            name = chance.choice(sorted(_raws(scene)))
            scene.made.append(f"{where} {name}")
            raws[RAW.format(number)] = name
            _put(value, where, lambda inner, key, number=number: inner.__setitem__(key, RAW.format(number)))
        elif kind == "missing":
            scene.made.append(f"{where} missing")
            _put(value, where, lambda inner, key: inner.__delitem__(key))
        else:
            scene.made.append(f"{where} more")
            _put(
                value,
                where,
                lambda inner, key: (
                    inner.update({scene.text[:50]: None}) if isinstance(inner, dict) else inner.append(None)
                ),
            )
    text = json.dumps(value)
    for mark, name in raws.items():
        text = text.replace(json.dumps(mark), _raws(scene)[name])
    return text


def _json(scene: Scene, answer: Answer) -> Answer | None:
    value = as_json(answer)
    if value is None:
        return None
    return Answer(_changed(scene, value).encode("utf-8", "surrogatepass") + b"\n", b"", 0)


def _root(scene: Scene, answer: Answer) -> Answer | None:
    """Answer with another value than an object."""
    if as_json(answer) is None:
        return None
    raws = _raws(scene)
    text = scene.chance.choice((*(json.dumps(each) for each in WRONG), *raws.values(), answer.stdout.decode() * 2))
    return Answer(text.encode("utf-8", "surrogatepass"))


def _alive(scene: Scene, answer: Answer) -> Answer | None:
    """Say that the run is at work, in some phase."""
    value = as_json(answer)
    if not isinstance(value, dict) or "alive" not in value:
        return None
    phase = scene.chance.choice(("training", "preparing", "preflight", scene.text[:200], None, 7))
    value |= {
        "alive": True,
        "exit_code": None,
        "phase": phase,
        "silent_s": scene.chance.choice((None, 0.0, 1e9, -1, "x")),
    }
    return Answer(_changed(scene, value).encode("utf-8", "surrogatepass"))


def _failed(scene: Scene, answer: Answer) -> Answer | None:
    """Say that the run has failed, for a reason that is no sentence."""
    value = as_json(answer)
    if not isinstance(value, dict) or "alive" not in value:
        return None
    lines = [scene.text for _ in range(scene.chance.choice((1, 20)))]
    value |= {
        "exit_code": scene.chance.choice(CODES),
        "failure": {"cause": scene.text, "sentence": scene.text, "lines": lines},
    }
    return Answer(json.dumps(value).encode())


# Of a list of files: a row of facts about the run, then a row for each file, with names as percent-encoded bytes.


def _rows(answer: Answer) -> list[dict[str, Any]] | None:
    """Return the rows of a list of files; None for every other answer."""
    lines = answer.stdout.splitlines()
    if len(lines) < 3 or b'"list": ' not in lines[1]:
        return None
    return [json.loads(line) for line in lines]


def _listed(rows: Sequence[Mapping[str, Any]]) -> Answer:
    return Answer("".join(f"{json.dumps(row)}\n" for row in rows).encode())


def _encoded(scene: Scene, name: str) -> str:
    """Return a name as an agent prints it, or as it is."""
    return scene.chance.choice(
        (quote(name.encode("utf-8", "surrogatepass")), quote(name.encode("utf-8", "surrogatepass")), name)
    )


def _of_files(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row.get("list") == "files"]


def _name(scene: Scene, answer: Answer) -> Answer | None:
    rows = _rows(answer)
    if not rows:
        return None
    names = hostile_names(scene)
    for _ in range(scene.chance.choice((1, 1, 3, 9))):
        kind = scene.chance.choice(sorted(names))
        scene.made.append(kind)
        one = scene.chance.choice(_of_files(rows))
        name = _encoded(scene, names[kind])
        rows.append({**one, "path": name, "list": scene.chance.choice(("files", "files", "files", "left"))})
        if scene.chance.random() < 0.3:
            rows.append({"list": "links", "path": name, "target": _encoded(scene, f"{scene.place}/{scene.bait}")})
            rows.append({**one, "path": f"{name}/inner"})
    return _listed(rows)


def _twins(scene: Scene, answer: Answer) -> Answer | None:
    rows = _rows(answer)
    if not rows:
        return None
    one, other = scene.chance.sample(_of_files(rows), 2)
    names = twins(scene)
    scene.made.append(str(names))
    return _listed([*rows, {**one, "path": _encoded(scene, names[0])}, {**other, "path": _encoded(scene, names[1])}])


def _size(scene: Scene, answer: Answer) -> Answer | None:
    rows = _rows(answer)
    if not rows:
        return None
    one = scene.chance.choice(_of_files(rows))
    key, wrong = (
        scene.chance.choice(("size", "size", "size", "written", "sha256", "what", "source", "list")),
        scene.chance.choice(SIZES),
    )
    if key in ("what", "source", "list"):
        wrong = scene.chance.choice((scene.text, scene.bait, *SIZES))
    scene.made.append(f"{one['path']} {key} {str(wrong)[:30]!r}")
    one[key] = wrong
    return _listed(rows)


def _count(scene: Scene, answer: Answer) -> Answer | None:
    """List more files than any run has."""
    rows = _rows(answer)
    if not rows:
        return None
    smallest = min(_of_files(rows), key=lambda one: one["size"])
    # As many as a person may keep come one by one; of all others only so many.
    kinds = ((SMALL_FILES, "files", "small file"), (SMALL_FILES, "left", "kept"), (SMALL_FILES, "links", "record"))
    more_than_any = tuple((200_000, listed, "kept") for listed in ("files", "left", "links", "other"))
    number, listed, kind = scene.chance.choice((*kinds, *more_than_any))
    scene.made.append(f"{number} {listed}")
    what = {**smallest, "what": kind, "target": "x", "list": listed}
    row = json.dumps({**what, "path": RAW})
    more = "".join(row.replace(RAW, f"logdir/{place}") + "\n" for place in range(number))
    return Answer(answer.stdout + more.encode())


def _word(scene: Scene, answer: Answer) -> Answer | None:
    """Name another folder than the run's own."""
    rows = _rows(answer)
    if rows:
        rows[0]["word"] = _other_word(scene)
        return _listed(rows)
    value = as_json(answer)
    holder = value.get("job") if isinstance(value, dict) else None
    if not isinstance(holder, dict) or "word" not in holder:
        return None
    holder["word"] = _other_word(scene)
    return Answer(json.dumps(value).encode() + b"\n")


def _other_word(scene: Scene) -> Any:
    return scene.chance.choice((*hostile_names(scene).values(), "a" * 300, "", None, 7, [], "f" * 5000))


def _row(scene: Scene, answer: Answer) -> Answer | None:
    """Change some rows as any JSON."""
    if not _rows(answer):
        return None
    lines = answer.stdout.splitlines()
    for _ in range(scene.chance.choice((1, 1, 5, 100))):
        at = scene.chance.choice((0, scene.chance.randrange(len(lines))))
        with contextlib.suppress(ValueError, RecursionError):
            value = json.loads(lines[at])
            if isinstance(value, dict):
                lines[at] = _changed(scene, value).encode("utf-8", "surrogatepass")
    more = [scene.text.encode("utf-8", "surrogatepass")] * scene.chance.choice((0, 0, 0, 1, 1000))
    return Answer(b"\n".join([*lines, *more, b""]))


def _lines(scene: Scene, answer: Answer) -> Answer | None:
    """Change the lines of a list of names: of runs, of files with sizes."""
    lines = answer.stdout.split(b"\n")
    if len(lines) < 2 or as_json(answer) is not None:
        return None
    names = [name.encode("utf-8", "surrogatepass") for name in hostile_names(scene).values()]
    chosen = scene.chance.choice(names)
    more = scene.chance.choice(
        (chosen, chosen + b" 5", chosen + b" -1", chosen + b" " + b"9" * 6000, b"5 6 " + chosen, b"x y", b" ")
    )
    return Answer(
        b"\n".join([*lines[:-1], *([more] * scene.chance.choice((1, 1, 20_001))), b""]), answer.stderr, answer.code
    )


CHANGES: Mapping[str, Callable[[Scene, Answer], Answer | None]] = {
    "text": _text,
    "many lines": _many_lines,
    "long line": _long_line,
    "cut off": _cut,
    "empty": _empty,
    "bytes": _bytes,
    "not UTF-8": _not_utf8,
    "numbers": _numbers,
    "exit code": _code,
    "lines": _lines,
    "log": _log,
    "events": _events,
    "json": _json,
    "json root": _root,
    "alive": _alive,
    "failed": _failed,
    "word": _word,
    "row": _row,
    "name": _name,
    "twins": _twins,
    "size": _size,
    "count": _count,
}
MANNERS = (
    *(
        "endless output",
        "endless line",
        "endless errors",
        "endless both",
        "endless list",
        "slow drip",
        "slow whole",
        "silence",
        "late",
    ),
    *(
        "more after exit code",
        "no exit code",
        "signal",
        "closed in the middle",
        "channel refused",
        "command refused",
        "big",
        "garbage",
    ),
    *("endless after answer", "endless rows", "flood of windows"),
)
LOGINS = (
    "no banner",
    "endless banner",
    "long banner",
    "refused",
    "other key",
    "garbage",
    "banner text",
    "closed",
    "slow banner",
    "disconnect text",
)
FILES = (
    *(
        "half",
        "one byte",
        "endless",
        "grows",
        "other bytes",
        "error",
        "error text",
        "gone",
        "too much",
        "silence",
        "slow",
        "closed",
    ),
    *("nothing", "refused", "lying size", "no exit code"),
)
UPLOADS = (
    *(
        "error",
        "error text",
        "silence",
        "lying size",
        "closed",
        "slow",
        "other bytes",
        "half",
        "endless",
        "no exit code",
        "garbage",
        "signal",
        "late",
    ),
)
OF_LISTS, OF_LOGS, OF_RECORDS = ("name", "twins", "size", "count", "row"), ("log",), ("events",)


@dataclass(frozen=True)
class Attack:
    """What the machine does: to which question, as the first that fits is counted from, and to those after it.

    Attributes:
        at: how many questions that fit are answered well before.
        lasts: whether it also does so to all later ones.
        on: the number of the machine, None for both.
    """

    group: str
    kind: str
    at: int
    lasts: bool
    on: int | None
    seed: str

    def scene(self, place: Path, question: int) -> Scene:
        """Return the scene of one question; the same one again for the same question."""
        return Scene(Random(f"{self.seed}/{question}"), place)  # noqa: S311 - a test's own chance

    def __str__(self) -> str:
        where = "" if self.on is None else f" on gpu-{self.on}"
        return f"{self.group}: {self.kind}, from question {self.at}{' on' if self.lasts else ' only'}{where}"
