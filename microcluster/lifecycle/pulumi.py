"""The one way to Pulumi's command line: shown by its events while it works, or asked for one answer."""

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from microcluster.core.home import Home
from microcluster.core.plain_text import duration, say
from microcluster.setup.environment import PULUMI, with_account
from microcluster.setup.errors import CommandFailed
from microcluster.setup.process import MISSING, STOPPED_BY_LIMIT, asked, run_in_view

EVENTS = ("--json", "--non-interactive", "--color", "never")
STREAMED = {"PULUMI_ENABLE_STREAMING_JSON_PREVIEW": "true"}
"""Setting with which a preview prints its events, and not one document at its end."""
REPEAT_S = 30
"""Least seconds between two messages of one resource that differ only in numbers."""
NAME_WIDTH, KIND_WIDTH = 32, 17
OPERATIONS = {
    "create": ("+", "create", "created"),
    "update": ("~", "update", "updated"),
    "delete": ("-", "delete", "deleted"),
    "replace": ("+-", "replace", "replaced"),
    "create-replacement": ("++", "create replacement", "created replacement"),
    "delete-replaced": ("--", "delete original", "deleted original"),
}
"""Signs of Pulumi's operations, and the words for what is planned and done."""
STACK, OUR_COMPONENTS = "pulumi:pulumi:Stack", ("microcluster:", "pulumi:pulumi:")
OUTPUT = "microcluster"
"""The stack's output that is for the commands, not for people."""
NUMBERS_AND_STATES = re.compile(r"\d+|\b[A-Z]+(?:_[A-Z]+)+\b")
NOISE = re.compile(
    r"warning: resource plugin command is expected to have version"  # Built from Go modules; see README.
    r"|error: (update|preview|destroy|resource \w+) failed$"  # Gives no reason.
    r'|error: exit status [12]: running "exec \.venv/bin/fab [^"]*":$'  # The command's own message follows.
    r"|\S+: .* \.\.\.$"  # The progress of a step, which was shown before.
)
KILLED = re.compile(r'error: signal: \w+: running "exec \.venv/bin/fab (?P<step>\S+)":')
RECEIPT = "receipt:"
"""Start of the ledger's receipt, which is not shown: `fab down` prints the account's own right after it."""


def run(home: Home, *words: str) -> int:
    """Run a Pulumi command, show its events, and return its exit code.

    Raises:
        KeyboardInterrupt: this process got a signal, which Pulumi got once; it has ended.
    """
    view = View()
    try:
        return run_in_view((str(PULUMI), *words, *EVENTS), with_account(home) | STREAMED, lines_of=view.lines)
    finally:
        say("\n".join(view.end()))


def answer(
    home: Home, *words: str, limit_s: float, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a Pulumi command without showing it, and return what it printed.

    Raises:
        CommandFailed: it is missing, or gave no answer within the limit.
    """
    completed = asked((str(PULUMI), *words, "--non-interactive"), limit_s, environment or with_account(home))
    if completed.returncode in (MISSING, STOPPED_BY_LIMIT):
        way = "Run: make setup, then" if completed.returncode == MISSING else "Run"
        raise CommandFailed(f"`pulumi {' '.join(words)}`: {completed.stderr}. {way} the same command again.")
    return completed


def reason(done: subprocess.CompletedProcess[str]) -> str:
    """Return why a command failed."""
    printed = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    errors = [line for line in printed if "error:" in line]
    return (errors or printed or ["no reason given"])[-1].removeprefix("error: ")


@dataclass
class View:
    """Turns Pulumi's events into lines for people."""

    now: Callable[[], float] = time.monotonic
    _begun: dict[str, float] = field(default_factory=dict)
    _shown_at: dict[str, float] = field(default_factory=dict)
    _reasons: dict[str, list[str]] = field(default_factory=dict)
    _outputs: Mapping[str, Any] = field(default_factory=dict)
    _summary: Mapping[str, Any] | None = None

    def lines(self, line: str) -> list[str]:
        """Return the lines to show for a line of Pulumi; a line that is no known event stays as it is."""
        readers = {
            "resourcePreEvent": self._begin,
            "resOutputsEvent": self._done,
            "resOpFailedEvent": self._failed,
            "diagnosticEvent": self._message,
        }
        try:
            event = json.loads(line)
            self._summary = event.get("summaryEvent", self._summary)
            return [text for kind, read in readers.items() if kind in event for text in read(event[kind])]
        except (ValueError, LookupError, TypeError, AttributeError):
            return [line.rstrip()]

    def end(self) -> list[str]:
        """Return the last lines: reasons of failures, outputs of a preview, and counts of resources."""
        lines = ["Diagnostics:"] if any(self._reasons.values()) else []
        for of, reasons in self._reasons.items():
            lines += [f"  {of}:", *(f"    {line}" for line in reasons), ""] if reasons else []
        if self._summary is None:
            return lines
        width = max(map(len, self._outputs), default=0)
        outputs = [
            text for name, value in self._outputs.items() if name != OUTPUT for text in _output(name, value, width)
        ]
        lines += ["Outputs:", *outputs, ""] if outputs else []
        planned = self._summary.get("isPreview")
        counts = self._summary.get("resourceChanges") or {}
        return [*lines, "Resources:", *(_count(op, number, planned=planned) for op, number in counts.items()), ""]

    def _begin(self, event: Mapping[str, Any]) -> Iterator[str]:
        metadata = event["metadata"]
        self._begun[metadata["urn"]] = self.now()
        if event.get("planning") and metadata["op"] in OPERATIONS and metadata["type"] != STACK:
            _, word, _ = OPERATIONS[metadata["op"]]
            diff = f" [diff: {', '.join(metadata['diffs'])}]" if metadata.get("diffs") else ""
            yield _row(metadata, f"{metadata['type'].rpartition(':')[2]:<{KIND_WIDTH}} {word}{diff}")

    def _done(self, event: Mapping[str, Any]) -> Iterator[str]:
        metadata = event["metadata"]
        if event.get("planning"):
            if metadata["type"] == STACK:
                self._outputs = (metadata.get("new") or {}).get("outputs") or {}
        elif metadata["op"] in OPERATIONS and not metadata["type"].startswith(OUR_COMPONENTS):
            _, _, word = OPERATIONS[metadata["op"]]
            seconds = self.now() - self._begun.get(metadata["urn"], self.now())
            yield _row(metadata, f"{word} ({duration(seconds)})")

    def _failed(self, event: Mapping[str, Any]) -> Iterator[str]:
        what = event["metadata"]
        yield _row(what, f"{what['op']} failed; the reason is at the end")

    def _message(self, event: Mapping[str, Any]) -> Iterator[str]:
        """Show a message at once, and keep it for the end unless it is progress; an error is shown at the end only."""
        text = f"{event.get('prefix', '')}{event['message']}"
        if event["severity"] == "debug" or text.startswith(RECEIPT):
            return
        _, _, kind, name = event["urn"].split("::") if event.get("urn") else ("", "", "", "")
        rows = [_in_words(line) for line in text.splitlines() if line.strip() and not NOISE.match(line.strip())]
        if not event.get("ephemeral"):
            self._reasons.setdefault(f"{kind.rpartition('$')[2]} ({name})" if name else "pulumi", []).extend(rows)
        if event["severity"] == "error":
            return
        for row in text.splitlines():
            # With a sentence a command fails, and Pulumi repeats it as the reason.
            is_reason = kind.endswith("command:local:Command") and row[:1].isupper()
            if name and row.strip() and not is_reason and self._is_news(name, row):
                yield f"    {name:<{NAME_WIDTH}} {row}"

    def _is_news(self, name: str, message: str) -> bool:
        key = f"{name} {NUMBERS_AND_STATES.sub('', message)}"
        if self.now() - self._shown_at.get(key, -REPEAT_S) < REPEAT_S:
            return False
        self._shown_at[key] = self.now()
        return True


def _row(what: Mapping[str, Any], text: str) -> str:
    """Return a line on one resource."""
    sign = OPERATIONS[what["op"]][0] if what["op"] in OPERATIONS else ""
    name = what["urn"].rpartition("::")[2]
    return f" {sign:<2} {name:<{NAME_WIDTH}} {text}"


def _in_words(line: str) -> str:
    killed = KILLED.match(line.strip())
    return f"{killed['step']} was killed before it was done; repeat the command to continue" if killed else line


def _count(operation: str, number: int, *, planned: bool | None) -> str:
    if operation not in OPERATIONS:
        return f"    {number} {'unchanged' if operation == 'same' else operation}"
    sign, word, done = OPERATIONS[operation]
    return f"    {sign} {number} {f'to {word}' if planned else done}"


def _output(name: str, value: Any, width: int) -> list[str]:
    """Return the lines of one output of the stack; each text of a list has its own."""
    first, *others = value if isinstance(value, list) and value else [value]
    return [f"    {name:<{width}}: {first}", *(f"    {'':<{width}}  {other}" for other in others)]
