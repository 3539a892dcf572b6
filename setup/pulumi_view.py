"""Pulumi's lines in the words of this project: what happened to which thing, and nothing that only tells that time goes by."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

REPEAT_S = 30
"""How often a thing that waits may say the same again with other numbers."""
NAME_WIDTH = 32
RESOURCE = re.compile(r"\s*(?P<sign>[-+~]{0,2})\s+(?P<kind>[\w-]+:[\w/-]+:\w+) (?P<name>[^\s(]\S*) ?(?P<rest>.*)")
ACTION = re.compile(r"(?P<verb>(?:\w+ )?\w+) \((?P<seconds>[\d.]+s)\) ?(?P<message>.*)")
ACTIONS_DONE = ("created", "deleted", "updated", "replaced", "created replacement", "deleted original")
OUR_COMPONENTS = ("microcluster:", "pulumi:pulumi:Stack")
DOTS = re.compile(r"@ \w+\.+")
NUMBERS_AND_STATES = re.compile(r"\d+|\b[A-Z]+(?:_[A-Z]+)+\b")
PLUGIN_WARNING = re.compile(r"\s*warning: resource plugin command is expected to have version")
PLUGIN_NOTE = "    The command plugin 0.9.2 was built from Go modules; this project is tested with it.\n"


@dataclass
class View:
    """Decides line by line what a person gets to see, and how."""

    now: Callable[[], float] = time.monotonic
    _said: dict[str, float] = field(default_factory=dict)

    def told(self, line: str) -> str | None:
        """Return ``line`` as it is to be shown, or None for nothing at all."""
        plain = line.rstrip()
        if DOTS.fullmatch(plain.strip()):
            return None
        if PLUGIN_WARNING.match(plain):
            return PLUGIN_NOTE
        resource = RESOURCE.fullmatch(plain)
        return self._resource(resource) if resource else line

    def _resource(self, found: re.Match[str]) -> str | None:
        sign, name, rest = found["sign"], found["name"], found["rest"].strip()
        if "fail" in rest or "error" in rest:
            return f" {sign or ' ':<2} {name:<{NAME_WIDTH}} {rest}\n"
        if found["kind"].startswith(OUR_COMPONENTS):
            return None
        action = ACTION.fullmatch(rest)
        if action is None:
            return None
        if action["verb"] in ACTIONS_DONE:
            return f" {sign:<2} {name:<{NAME_WIDTH}} {action['verb']} ({action['seconds']})\n"
        message = action["message"]
        return f"    {name:<{NAME_WIDTH}} {message}\n" if message and self._is_news(name, message) else None

    def _is_news(self, name: str, message: str) -> bool:
        kind = f"{name} {NUMBERS_AND_STATES.sub('', message)}"
        if self.now() - self._said.get(kind, -REPEAT_S) < REPEAT_S:
            return False
        self._said[kind] = self.now()
        return True
