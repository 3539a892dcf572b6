"""Runs Pulumi, with its output filtered and shortened, and the Fabric commands for make."""

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from core.home import Home
from microcluster.setup.environment import FAB, PART_OF_MAKE, PULUMI, with_account
from microcluster.setup.process import output_of, run_filtered, run_in_view

PULUMI_OPTIONS = ("--non-interactive", "--color", "never", "--suppress-permalink=true")
"""Plain lines, without a link to a file."""
NO_OUTPUTS = "--suppress-outputs"
"""The outputs are JSON for the verbs, not for people."""
STATUS_LIMIT_S, LIST_LIMIT_S = 60, 300
REPEAT_S = 30
"""Least seconds between two messages of one resource that differ only in numbers."""
NAME_WIDTH = 32
KIND_WIDTH = 14
RESOURCE = re.compile(r"\s*(?P<sign>[-+~]{0,2})\s+(?P<kind>[\w-]+:[\w/-]+:\w+) (?P<name>[^\s(]\S*) ?(?P<rest>.*)")
ACTION = re.compile(r"(?P<verb>(?:\w+ )?\w+) \((?P<seconds>[\d.]+s)\) ?(?P<message>.*)")
ACTIONS_DONE = ("created", "deleted", "updated", "replaced", "created replacement", "deleted original")
PLANNED = re.compile(r"(create|update|delete|replace)( replacement| original)?( \[.*\])?")
OUR_COMPONENTS = ("microcluster:", "pulumi:pulumi:Stack")
DOTS = re.compile(r"@ [\w ]+\.+")
NUMBERS_AND_STATES = re.compile(r"\d+|\b[A-Z]+(?:_[A-Z]+)+\b")
HEADING = re.compile(r"Diagnostics:|  [\w-]+:[\w/-]+:\w+ \(\S+\):")
NOISE = re.compile(
    r"\s*warning: resource plugin command is expected to have version"  # Built from Go modules; see README.
    r"|\s+microcluster: \[unknown\]"  # The output for the verbs.
    r"|The resources in the stack have been deleted, but the history|If you want to remove the stack completely, run"
    r"|    error: (update|preview|destroy|resource \w+) failed$"  # Gives no reason.
    r'|    error: exit status [12]: running "exec \.venv/bin/fab [^"]*":$'  # The verb's own message follows.
    r"|    \S+: .* \.\.\.$"  # The progress of a step, which was shown before.
)
KILLED = re.compile(r'    error: signal: \w+: running "exec \.venv/bin/fab (?P<step>\S+)":')
FAILED_ACTION = re.compile(r"\*\*(?P<what>\w+ failed)( \([\d.]+s\))?\*\*")
RECEIPT = "    receipt:"
"""The ledger's receipt; `make down` prints the account's right after it."""


def pulumi(home: Home, *words: str) -> int:
    """Run a Pulumi command with filtered output; return its exit code."""
    return run_filtered((str(PULUMI), *words, *PULUMI_OPTIONS), with_account(home), View().shown)


def fab(home: Home, verb: str, stack: str, *options: str, limit_s: float | None = None) -> int:
    """Run a verb on this screen and return its exit code; make prints the next command."""
    argv = (str(FAB), verb, "--stack", stack, *options)
    return run_in_view(argv, with_account(home) | {PART_OF_MAKE: "1"}, limit_s)


def status(home: Home, stack: str) -> dict[str, Any] | None:
    """Return `fab status --json`, or None where it fails."""
    answer = output_of((str(FAB), "status", "--stack", stack, "--json"), with_account(home), STATUS_LIMIT_S)
    return json.loads(answer) if answer else None


def unfetched(home: Home, stack: str) -> list[dict[str, Any]] | None:
    """Return `fab fetch --unfetched --json`, or None where it fails."""
    argv = (str(FAB), "fetch", "--stack", stack, "--unfetched", "--json")
    answer = output_of(argv, with_account(home), LIST_LIMIT_S)
    return json.loads(answer) if answer else None


@dataclass
class View:
    """Decides for each line whether and how it is shown."""

    now: Callable[[], float] = time.monotonic
    _shown_at: dict[str, float] = field(default_factory=dict)
    _headings: list[str] = field(default_factory=list)
    _in_receipt: bool = False

    def shown(self, line: str) -> str | None:
        """Return ``line`` as it is shown, or None to drop it."""
        plain = line.rstrip()
        if DOTS.fullmatch(plain.strip()) or NOISE.match(plain):
            return None
        if resource := RESOURCE.fullmatch(plain):
            return None if resource["kind"].startswith(OUR_COMPONENTS) else self._resource(resource)
        return self._block(line, plain)

    def _block(self, line: str, plain: str) -> str | None:
        """Keep a heading back until a line follows it."""
        self._in_receipt = plain == RECEIPT or (self._in_receipt and plain != "")
        if self._in_receipt:
            return None
        if HEADING.fullmatch(plain):
            self._headings.append(line)
            return None
        if not plain and self._headings:
            self._headings = self._headings[:1] if self._headings[0].startswith("Diagnostics") else []
            return None
        if killed := KILLED.fullmatch(plain):
            line = f"    {killed['step']} was killed before it was done; repeat the command to continue\n"
        above = "".join(self._headings) if plain.startswith(" ") else ""
        self._headings = []
        return above + line

    def _resource(self, found: re.Match[str]) -> str | None:
        sign, name, rest = found["sign"], found["name"], found["rest"].strip()
        if failed := FAILED_ACTION.match(rest):
            return f" {sign or ' ':<2} {name:<{NAME_WIDTH}} {failed['what']}; the reason is at the end\n"
        if PLANNED.fullmatch(rest):
            return f" {sign:<2} {name:<{NAME_WIDTH}} {found['kind'].rpartition(':')[2]:<{KIND_WIDTH}} {rest}\n"
        action = ACTION.fullmatch(rest)
        if action is None:
            return None
        if action["verb"] in ACTIONS_DONE:
            return f" {sign:<2} {name:<{NAME_WIDTH}} {action['verb']} ({action['seconds']})\n"
        message = action["message"]
        silent = message in ("", RECEIPT.strip()) or _is_reason(found["kind"], message)
        return None if silent or not self._is_news(name, message) else f"    {name:<{NAME_WIDTH}} {message}\n"

    def _is_news(self, name: str, message: str) -> bool:
        kind = f"{name} {NUMBERS_AND_STATES.sub('', message)}"
        if self.now() - self._shown_at.get(kind, -REPEAT_S) < REPEAT_S:
            return False
        self._shown_at[kind] = self.now()
        return True


def _is_reason(kind: str, message: str) -> bool:
    """Whether Pulumi tells ``message`` again at its end: an error, or the sentence with which a verb of ours failed."""
    return message.startswith("error: ") or (kind.startswith("command:") and message[:1].isupper())
