"""What must hold after a command: what it has made and left alone on this computer, and what it has said."""

import contextlib
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.hostile.commands import Command

LONGEST_TEXT, LONGEST_END = 100_000, 4_000
"""Characters: of all that a command prints about a failure, and of its last line."""
FORBIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""What acts on a terminal, or changes the order of what is read."""
NEXT = re.compile(r"\bfab |\bmake |\bpulumi up|same command again|[Tt]ry again|[Rr]epeat|Run it again")
CODES = (0, 1, 2, 3)
MISTAKE, TRACEBACK = "This is a mistake in the program", "Traceback (most recent call last)"
STATE = ("home/locks/", "home/receipts/", "home/cache/", "home/journal", "home/ssh/", "home/keys/{}/guards/")
STATE_FILES = ("home/keys/{}/pinned_hosts", "home/keys/{}/trusted_hosts.json")
"""Where the product keeps what it knows, by the stack."""
RENEWED = ("home/keys/{}/rank_ed25519", "home/keys/{}/rank_ed25519.pub")
"""Made anew at the end of a rental."""
OWN = ("stacks", "stdout", "stderr", "machines.log", "machines.err", "strayed", "site")
"""What the test itself writes meanwhile."""


@dataclass(frozen=True)
class Seen:
    """A command that has ended, and where."""

    place: Path
    stack: str
    run: str
    command: Command
    code: int | None
    is_killed: bool = False
    """Whether it was too slow or too large, so that it could not say anything."""

    @cached_property
    def out(self) -> bytes:
        return (self.place / "stdout").read_bytes()

    @cached_property
    def errors(self) -> bytes:
        return (self.place / "stderr").read_bytes()

    @property
    def said(self) -> str:
        """The end of both, for people."""
        return (self.out[-3000:] + b"\n--\n" + self.errors[-3000:]).decode("utf-8", "backslashreplace")

    @property
    def runs(self) -> Path:
        """Where the runs of its stack are fetched to."""
        return self.place / "project" / "artifacts" / self.stack


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
    """Yield all below a folder."""
    for where, folders, files in os.walk(folder, onerror=lambda _: None):
        for name in (*folders, *files):
            with contextlib.suppress(OSError):
                path = Path(where, name)
                path.lstat()
                yield path


def changes(seen: Seen, before: Mapping[str, tuple[str, str]]) -> list[str]:
    """Say what was made, changed or removed outside the run's folder and the known places of the product's state."""
    after, failures = snapshot(seen.place), []
    of_run = re.compile(rf"project/artifacts/{seen.stack}/{seen.run}-[0-9a-f]*(/|$)")
    # Beside it lie the lock of a fetch, and what has not arrived whole.
    beside = re.compile(rf"project/artifacts/{seen.stack}/\.{seen.run}-[0-9a-f]*\.(lock|partial(/[0-9a-f]{{32}})?)$")
    parents = {f"project/artifacts/{seen.stack}", "project/artifacts", f"home/keys/{seen.stack}"}
    for name in sorted(before.keys() | after.keys()):
        if (
            before.get(name) == after.get(name)
            or name in OWN
            or name in parents
            or beside.match(name)
            or name.startswith("project/__pycache__")
        ):
            continue
        what = "was made" if name not in before else "was removed" if name not in after else "was changed"
        if of_run.match(name):
            failures += [f"{name[-200:]!r} {why}" for why in flaws(name, after.get(name))]
        elif not _is_state(name, seen):
            failures.append(f"{name[:200]!r} {what} outside the run's folder")
    with contextlib.suppress(FileNotFoundError):
        failures += [f"it would have written {line}" for line in (seen.place / "strayed").read_text().splitlines()[:3]]
    return failures[:5]


def _is_state(name: str, seen: Seen) -> bool:
    places = [each.format(seen.stack) for each in STATE]
    if any(name.startswith(each) or name == each.rstrip("/") for each in places):
        return True
    if seen.command.rents and name.startswith("home/state/.pulumi/"):
        return True
    files = (*STATE_FILES, *RENEWED) if seen.command.rents else STATE_FILES
    return name in [each.format(seen.stack) for each in files]


def flaws(name: str, known: tuple[str, str] | None) -> Iterator[str]:
    """Say what is wrong with something in the run's folder."""
    if known and known[0] not in ("file", "folder"):
        yield f"is a {known[0]}"
    if FORBIDDEN.search(name) or "\n" in name or "\t" in name:
        yield "has control characters in its name"
    if ".git" in name.split("/"):
        yield "is of a git repository"


def reserved(seen: Seen) -> list[str]:
    """Say which file of ours a machine has written in the run's folder."""
    failures = []
    for folder in seen.runs.glob("*") if seen.runs.is_dir() else ():
        for name, ours in (("manifest.json", "fetched"), ("report.json", "read")):
            if (folder / name).is_file():
                try:
                    known = json.loads((folder / name).read_text())
                except (ValueError, RecursionError):
                    known = None
                if not isinstance(known, dict) or ours not in known:
                    failures.append(f"{name} was written by the machine")
        page = folder / "report.html"
        if page.is_file() and "<title>Run " not in page.read_text(errors="replace")[:400]:
            failures.append("report.html was written by the machine")
    return failures


def words(seen: Seen) -> list[str]:
    """Say what is wrong with what the command has printed, and with its exit code."""
    texts, failures = {}, []
    for name, content in (("output", seen.out), ("errors", seen.errors)):
        texts[name] = content.decode("utf-8", "replace")
        failures += [f"its {name} {what}" for what in _flaws_of_text(content, texts[name], is_raw=seen.command.raw)]
    if seen.is_killed or seen.command.raw:
        return failures
    if seen.code not in CODES:
        failures.append(f"its exit code is {seen.code}")
    if seen.code and not ("--json" in seen.command.words and _is_json(seen.out)):  # Then that is its answer.
        failures += _flaws_of_end(texts["output"], texts["errors"])
    return failures


def _flaws_of_text(content: bytes, text: str, *, is_raw: bool) -> Iterator[str]:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        if not is_raw:
            yield f"are not UTF-8 ({error.reason})"
    if not is_raw and (found := FORBIDDEN.search(text)):
        yield f"have the control character {found[0]!r}"
    if MISTAKE in text:
        yield f"call it a mistake in the program: {_line_with(MISTAKE, text)}"
    if TRACEBACK in text:
        yield f"have a traceback, and end with: {' | '.join(text.strip().splitlines()[-4:])[:600]}"


def _flaws_of_end(output: str, errors: str) -> Iterator[str]:
    """Say what is wrong with the end of a command that has failed."""
    if len(errors) > LONGEST_TEXT:
        yield f"it printed {len(errors):,} characters about its failure"
    last = [line for line in (errors or output).strip().split("\n") if line.strip()][-20:]
    if not last:
        yield "it failed without a word"
        return
    if len(last[-1]) > LONGEST_END:
        yield f"its last line has {len(last[-1]):,} characters"
    if not any(NEXT.search(line) for line in (*last, *output.strip().split("\n")[-20:])):
        yield f"it failed without a next command: {last[-1][:300]!r}"


def _is_json(content: bytes) -> bool:
    try:
        return bool(content) and json.loads(content) is not None
    except (ValueError, RecursionError):
        return False


def _line_with(mark: str, text: str) -> str:
    return next(line for line in text.split("\n") if mark in line)[:600]
