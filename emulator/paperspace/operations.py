"""An operation of the API: its input, one call of it, and the pages of a list."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model

from emulator.paperspace.errors import invalid

if TYPE_CHECKING:
    from emulator.paperspace.account import Account

PAGE_SIZE, LARGEST_PAGE = 20, 120  # the vendor states no default
ASCENDING, DESCENDING = "asc", "desc"
POSITION = TypeAdapter(tuple[str, str])  # of an object in an order: what a cursor is
Size = Annotated[float, Field(gt=0)]
View = dict[str, Any]
Handler = Callable[["Account", "Call"], Any]


def inputs(required: Mapping[str, Any], optional: Mapping[str, Any]) -> type[BaseModel]:
    """The input of an operation: the type of each property; anything else is refused, and null as well."""
    properties = {name: (kind, ...) for name, kind in required.items()}
    properties |= {name: (kind, None) for name, kind in optional.items()}
    return create_model("Input", __config__=ConfigDict(extra="forbid"), **properties)


@dataclass(frozen=True)
class Operation:
    """One method of one path; ``name`` is its id in the vendor's OpenAPI document."""

    name: str
    method: str
    path: str
    handler: Handler
    inputs: type[BaseModel] = inputs({}, {})
    order_by: tuple[str, ...] = ()  # of a list: what it can be ordered by, the default first
    needs_key: bool = True
    for_members: bool = False  # whether a team member who is no administrator may call it

    def read(self, query: Mapping[str, str], body: Mapping[str, Any]) -> View:
        """The input of a call: query and body together, or the refusal with everything that is wrong."""
        try:
            read = self.inputs.model_validate({**query, **body}, strict=bool(body))  # A query has only texts.
        except ValidationError as wrong:
            raise invalid(*(f"{each['loc'][0]}: {each['msg']}" for each in wrong.errors())) from wrong
        return read.model_dump(exclude_unset=True)


def listing(
    name: str,
    path: str,
    handler: Handler,
    order_by: tuple[str, ...],
    filters: Mapping[str, Any] | None = None,
    **callers: bool,
) -> Operation:
    """The operation that lists things by pages; ``callers`` says who else than an administrator may call it."""
    page = {"after": str, "limit": Annotated[int, Field(ge=1, le=LARGEST_PAGE)]}
    order = {"orderBy": Literal[order_by], "order": Literal[ASCENDING, DESCENDING]}
    given = inputs({}, {**page, **order, **(filters or {})})
    return Operation(name, "GET", path, handler, given, order_by, **callers)


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


@dataclass(frozen=True)
class Things:
    """The records of one table, as every operation reads, lists and renames them."""

    table: str
    view: Callable[["Account", Any], View]

    def one(self, account: "Account", call: Call) -> Any:
        """The record with the call's id, to change."""
        return account.find(self.table, call.path["id"])

    def get(self, account: "Account", call: Call) -> View:
        """Answer with one object by its id."""
        return self.view(account, self.one(account, call))

    def list(self, account: "Account", call: Call) -> list[View]:
        """Show all; a filter by name or region is not emulated."""
        return [self.view(account, each) for each in account.store.tables[self.table].values() if not each.is_hidden]

    def rename(self, account: "Account", call: Call) -> View:
        """Give one another name, which is all of it that can change."""
        record = self.one(account, call)
        record.name = call.input.get("name", record.name)
        return self.view(account, record)


def page(views: Sequence[View], call: Call, shuffle: Random | None = None) -> View:
    """One page of a list in the order that is asked for, with the cursor of the next one.

    Args:
        shuffle: an injected fault gives every page another order.
    """
    fields = call.input
    key, is_descending = fields.get("orderBy", call.operation.order_by[0]), fields.get("order") != ASCENDING
    ordered = sorted(views, key=lambda view: _position(view, key), reverse=is_descending)
    if shuffle:
        ordered = shuffle.sample(ordered, len(ordered))
    positions = [_position(view, key) for view in ordered]
    begin = _behind(fields["after"], positions, is_descending=is_descending) if "after" in fields else 0
    items = ordered[begin : begin + fields.get("limit", PAGE_SIZE)]
    end = begin + len(items)
    if end == len(ordered):
        return {"hasMore": False, "items": items}
    return {"hasMore": True, "items": items, "nextPage": POSITION.dump_json(positions[end - 1]).decode()}


def _position(view: View, key: str) -> tuple[str, str]:
    return str(view[key]), str(view.get("id") or view.get("ip"))


def _behind(cursor: str, positions: list[tuple[str, str]], *, is_descending: bool) -> int:
    """The index at which a page begins: behind the cursor's position, even if its object is gone meanwhile."""
    try:
        position = POSITION.validate_json(cursor)
    except ValidationError as wrong:
        raise invalid("after: Invalid cursor") from wrong
    if position in positions:
        return positions.index(position) + 1
    return sum(each > position if is_descending else each < position for each in positions)
