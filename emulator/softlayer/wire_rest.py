"""REST as SoftLayer speaks it, in the style of the Python client and in that of the Go client."""

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from emulator.softlayer.calls import Answer, Call, Credentials, full_name
from emulator.softlayer.faults import BAD_REQUEST, Fault

_GUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_BY_VERB = {"GET": "getObject", "POST": "createObject", "PUT": "editObject", "DELETE": "deleteObject"}


def read_call(verb: str, path: str, query: Mapping[str, str], body: bytes, credentials: Credentials | None) -> Call:
    """The call that a request stands for; ``path`` is what follows the API's root."""
    service, identifier, method = _route(verb, path)
    limit, offset = _limits(query.get("resultLimit"))
    return Call(
        service=full_name(service),
        method=method,
        arguments=_arguments(body),
        identifier=identifier,
        mask=query.get("objectMask"),
        filter=_filter(query.get("objectFilter")),
        limit=limit,
        offset=offset,
        credentials=credentials,
    )


def write_answer(answer: Answer) -> bytes:
    """The response body of an answer."""
    return json.dumps(answer.value, default=_number).encode()


def write_fault(fault: Fault) -> bytes:
    """The response body of a fault."""
    return json.dumps({"error": fault.text, "code": fault.code}).encode()


def _route(verb: str, path: str) -> tuple[str, str | None, str]:
    service, *rest = [part for part in path.removesuffix(".json").split("/") if part]
    match rest:
        case [identifier, method]:
            return service, identifier, method
        case [part] if part.isdigit() or _GUID.fullmatch(part):
            return service, part, _BY_VERB[verb]
        case [method]:
            return service, None, method
        case []:
            lists = verb == "GET" and service != "SoftLayer_Account"
            return service, None, "getAllObjects" if lists else _BY_VERB[verb]
    raise Fault(BAD_REQUEST, f"The path '{path}' names no service, object and method.")


def _limits(text: str | None) -> tuple[int | None, int]:
    """``offset,limit`` or a limit alone; ``offset,0`` is an offset without a limit."""
    if not text:
        return None, 0
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError as wrong:
        raise Fault(BAD_REQUEST, f"resultLimit '{text}' is not 'offset,limit'.") from wrong
    offset, limit = (0, numbers[0]) if len(numbers) == 1 else numbers[:2]
    return limit or None, offset


def _filter(text: str | None) -> Any:
    """The filter, whatever its form; the service does not complain about one that it cannot read."""
    try:
        return _loads(text or "null")
    except ValueError:
        return None


def _arguments(body: bytes) -> tuple[Any, ...]:
    if not body.strip():
        return ()
    content = _json(body.decode("utf-8"), "body")
    parameters = content.get("parameters") if isinstance(content, dict) else None
    if not isinstance(parameters, list):
        raise Fault(BAD_REQUEST, "The body has to be an object with the list 'parameters'.")
    return tuple(parameters)


def _json(text: str, what: str) -> Any:
    try:
        return _loads(text)
    except ValueError as broken:
        raise Fault(BAD_REQUEST, f"The {what} is not JSON: {broken}.") from broken


def _loads(text: str) -> Any:
    """Read JSON as PHP does: half a surrogate pair is an error (JSON_ERROR_UTF16)."""
    value = json.loads(text)
    json.dumps(value, ensure_ascii=False).encode()
    return value


def _number(value: Any) -> float:
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")
