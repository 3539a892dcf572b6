"""Answers of machines: JSON of a shape that the caller names, or one sentence."""

import re
from typing import Annotated, Any, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from microcluster.remote.errors import RemoteError

T = TypeVar("T")
Size = Annotated[int, Field(ge=0, lt=10**15)]
"""Bytes of a file or a disk, or a place in one: less than a petabyte."""
SIZE, OBJECT = TypeAdapter(Size), TypeAdapter(dict[str, Any])
LONE_SURROGATE = re.compile(
    r"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
"""Half of a character in JSON, as Python writes a file's name that is no UTF-8; what stands before it is passed over whole."""


def read_answer(kind: TypeAdapter[T], text: str | bytes, doing: str) -> T:
    """Return a machine's answer, checked as ``kind``.

    Args:
        doing: what was done, for the sentence.

    Raises:
        RemoteError: it is of another shape, too deep, or no JSON at all.
    """
    if isinstance(text, str) and "\\u" in text:
        text = LONE_SURROGATE.sub(lambda found: r"\ufffd" if found["lone"] else found[0], text)
    try:
        return kind.validate_json(text)
    except ValidationError as error:
        raise RemoteError(
            f"{doing}: the answer is not what was asked for ({reason_of(error)}). Look at the machine, or run `make down`."
        ) from error


def reason_of(error: ValidationError) -> str:
    """Return the first reason, without what was found."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'/'.join(map(str, first['loc']))[:80]}: {first['msg'][:200]}".removeprefix(": ")
