"""An operation of the API, and one call of it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from emulator.paperspace.fields import INTEGER, Field, Fields

if TYPE_CHECKING:
    from emulator.paperspace.account import Account

LARGEST_PAGE = 120
ASCENDING, DESCENDING = "asc", "desc"
Handler = Callable[["Account", "Call"], Any]


@dataclass(frozen=True)
class Operation:
    """One method of one path; ``name`` is its id in the vendor's OpenAPI document."""

    name: str
    method: str
    path: str
    handler: Handler
    fields: Fields = field(default_factory=dict)
    order_by: tuple[str, ...] = ()  # of a list: what it can be ordered by, the default first
    needs_key: bool = True
    for_members: bool = False  # whether a team member who is no administrator may call it


@dataclass(frozen=True)
class Call:
    """A call that has the form of its operation."""

    operation: Operation
    path: Mapping[str, str]
    input: Mapping[str, Any]
    key: str | None

    @property
    def name(self) -> str:
        return self.operation.name

    @property
    def identifier(self) -> str | None:
        return next(iter(self.path.values()), None)

    @property
    def detail(self) -> str:
        """The input: what tells calls apart that are about nothing with a name."""
        return json.dumps(dict(self.input), sort_keys=True, default=str)

    @property
    def is_read(self) -> bool:
        return self.operation.method == "GET"

    @property
    def is_list(self) -> bool:
        return bool(self.operation.order_by)

    @property
    def is_create(self) -> bool:
        """Whether the call makes something that is paid for."""
        return self.operation.method == "POST" and self.operation.path.count("/") == 1


def list_fields(*order_by: str, **filters: Field) -> dict[str, Field]:
    """The input of a list."""
    return {
        "after": Field(),
        "limit": Field(INTEGER, least=1, most=LARGEST_PAGE),
        "orderBy": Field(one_of=order_by),
        "order": Field(one_of=(ASCENDING, DESCENDING)),
        **filters,
    }
