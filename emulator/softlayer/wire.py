"""SoftLayer's two protocols: XML-RPC, and REST in the style of the Python client."""

import json
import re
import xmlrpc.client
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any
from xml.parsers.expat import ExpatError

from emulator.softlayer.calls import Answer, Call, Credentials, full_name
from emulator.softlayer.faults import BAD_REQUEST, NOT_WELL_FORMED, Fault

# The prolog declares iso-8859-1 although clients send UTF-8; a parser that used it would break every umlaut.
_PROLOG = re.compile(r"^\s*<\?xml[^>]*\?>")
_NOT_XML = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff]")
INT32 = range(-(2**31), 2**31)


def read_xmlrpc(service: str, body: bytes, basic: Credentials | None) -> Call:
    """The call in a request body; ``basic`` are the credentials of the HTTP header, if it had any."""
    try:
        text = _PROLOG.sub("", body.decode("utf-8"))
        parameters, method = xmlrpc.client.loads(text, use_builtin_types=True)
    except (UnicodeDecodeError, ExpatError, xmlrpc.client.Error, ValueError, TypeError) as broken:
        raise Fault(NOT_WELL_FORMED, f"parse error. not well formed: {broken}") from broken
    headers = _headers(parameters)
    limit = headers.get("resultLimit") or {}
    parameter = _by_suffix(headers, "InitParameters") or {}
    return Call(
        service=full_name(service),
        method=method or "",
        arguments=tuple(_plain(each) for each in parameters[1:]),
        identifier=parameter.get("id"),
        mask=(_by_suffix(headers, "ObjectMask") or {}).get("mask"),
        filter=_by_suffix(headers, "ObjectFilter"),
        limit=int(limit.get("limit") or 0) or None,
        offset=int(limit.get("offset") or 0),
        credentials=_credentials(headers.get("authenticate")) or basic,
    )


def write_xmlrpc_answer(answer: Answer) -> bytes:
    """The response body of an answer."""
    return _encoded(xmlrpc.client.dumps((_wire(answer.value),), methodresponse=True, allow_none=True))


def write_xmlrpc_fault(fault: Fault) -> bytes:
    """The response body of a fault; its code has to be a string, or clients do not know it."""
    return _encoded(
        xmlrpc.client.dumps(xmlrpc.client.Fault(fault.code, fault.text), methodresponse=True, allow_none=True)
    )


def _encoded(text: str) -> bytes:
    """Write characters that XML 1.0 forbids as references, as PHP does; strict parsers refuse them, too."""
    return _NOT_XML.sub(lambda found: f"&#{ord(found[0])};", text).encode()


def _headers(parameters: tuple[Any, ...]) -> dict[str, Any]:
    first = parameters[0] if parameters else None
    headers = first.get("headers") if isinstance(first, dict) else None
    if not isinstance(headers, dict):
        raise Fault(NOT_WELL_FORMED, "The first parameter has to be a structure with the member 'headers'.")
    return headers


def _by_suffix(headers: dict[str, Any], suffix: str) -> dict[str, Any] | None:
    found = next((value for name, value in headers.items() if name.endswith(suffix)), None)
    return found if isinstance(found, dict) else None


def _credentials(authenticate: Any) -> Credentials | None:
    if not isinstance(authenticate, dict) or "username" not in authenticate:
        return None
    return Credentials(str(authenticate["username"]), str(authenticate.get("apiKey")))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value.isoformat() if isinstance(value, datetime) else value


def _wire(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _wire(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_wire(each) for each in value]
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, int) and not isinstance(value, bool) and value not in INT32:
        return float(value)
    return value


def read_rest(path: str, query: Mapping[str, str], body: bytes, credentials: Credentials | None) -> Call:
    """The call that a request stands for; ``path`` is what follows the API's root."""
    service, identifier, method = _route(path)
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


def write_rest_answer(answer: Answer) -> bytes:
    """The response body of an answer."""
    return json.dumps(answer.value, default=_number).encode()


def write_rest_fault(fault: Fault) -> bytes:
    """The response body of a fault."""
    return json.dumps({"error": fault.text, "code": fault.code}).encode()


def _route(path: str) -> tuple[str, str | None, str]:
    """Service, id and method, as the Python client names them in the path."""
    match [part for part in path.removesuffix(".json").split("/") if part]:
        case [service, identifier, method]:
            return service, identifier, method
        case [service, method]:
            return service, None, method
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
