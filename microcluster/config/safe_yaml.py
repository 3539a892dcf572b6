"""Reads a stack file as plain YAML: no tags, anchors or duplicate keys; limited depth and size."""

import re
from typing import Any, NoReturn

import yaml

from microcluster.core.plain_text import printable, shown

LARGEST_BYTES = 64 * 1024
DEEPEST = 8
"""A stack file has three levels; the library's composer recurses for each."""
PLAIN_TAGS = (None, "!")
NUMBER_TAGS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
TEXT_TAG = "tag:yaml.org,2002:str"
NUMBER = re.compile(r"[-+]?(0|[1-9][0-9_]{0,17}|[0-9]*\.[0-9]*([eE][-+][0-9]{1,3})?|\.(inf|nan))", re.IGNORECASE)
"""Numbers as people write them; YAML's 0x1F, 0b1, 017 and 1:30 (90) stay text."""


class TextProblem(Exception):
    """The text is no stack file; the message begins with the key's path or the line."""


class _Plain(yaml.SafeLoader):
    """Refuses all but plain values, and reads dates as text; no key of a stack file takes one."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.path: list[str] = []

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose a value, whose index is the key's node or a number, or a key, which has none."""
        event, depth = self.peek_event(), len(self.path)
        if index is not None:
            self.path.append(index.value if isinstance(index, yaml.Node) else str(index))
        if event.anchor:
            self.refuse("anchors and aliases (& and *) are not used here; write the value out")
        if event.tag not in PLAIN_TAGS:
            self.refuse(f"the tag {shown(event.tag)} is not used here; write a plain value")
        if isinstance(parent, yaml.MappingNode) and index is None:
            self.look_at_key(parent, event)
        elif len(self.path) == DEEPEST and isinstance(event, yaml.CollectionStartEvent):
            self.refuse(f"nested more than {DEEPEST} deep")
        node = super().compose_node(parent, index)
        if node.tag in NUMBER_TAGS and not NUMBER.fullmatch(node.value):
            node.tag = TEXT_TAG  # No number as people write one, and refused where one is wanted: make down reads the file too.
        del self.path[depth:]
        return node

    def look_at_key(self, mapping: yaml.MappingNode, key: yaml.NodeEvent) -> None:
        if not isinstance(key, yaml.ScalarEvent):
            self.refuse("a key is a list or a mapping; a key is a word")
        if key.value == "<<":
            self.refuse("merging with << is not used here; write the values out")
        if key.value in [known.value for known, _ in mapping.value]:
            self.path.append(key.value)
            self.refuse("written twice; keep one of them")

    def refuse(self, why: str) -> NoReturn:
        raise TextProblem(f"{'/'.join(map(printable, self.path)) or 'the file'}: {why}")


def read(content: bytes) -> Any:
    """Parse ``content``.

    Raises:
        TextProblem: it is not plain YAML.
    """
    if len(content) > LARGEST_BYTES:
        raise TextProblem(f"it has {len(content):,} bytes; a stack file has fewer than {LARGEST_BYTES:,}")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TextProblem(f"byte {error.start} is no UTF-8") from error
    try:
        return yaml.load(text, Loader=_Plain)  # noqa: S506 - a safe loader
    except yaml.YAMLError as error:
        raise TextProblem(_where(error)) from error


def _where(error: yaml.YAMLError) -> str:
    """Return place and reason of a syntax error."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return printable(" ".join(str(error).split()))
    mark = error.problem_mark
    return f"line {mark.line + 1}, column {mark.column + 1}: {printable(error.problem or 'unreadable')}"
