"""SoftLayer's two protocols: XML-RPC, and REST in the style of the Python client."""

import json
import re
import xmlrpc.client
from collections.abc import Mapping
from typing import Any
from xml.parsers.expat import ExpatError

from emulator.softlayer.calls import Answer, Call, Credentials
from emulator.softlayer.faults import BAD_REQUEST, NOT_WELL_FORMED, Fault

# The prolog declares iso-8859-1 although clients send UTF-8; a parser that used it would break every umlaut.
_PROLOG = re.compile(r"^\s*<\?xml[^>]*\?>")
_NOT_XML = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff]")


def read_xmlrpc(service: str, body: bytes) -> Call:
    """The call in a request body."""
    try:
        text = _PROLOG.sub("", body.decode("utf-8"))
        parameters, method = xmlrpc.client.loads(text)
    except (UnicodeDecodeError, ExpatError, xmlrpc.client.Error, ValueError, TypeError) as broken:
        raise Fault(NOT_WELL_FORMED, f"parse error. not well formed: {broken}") from broken
    headers = _headers(parameters)
    user, limit = _by_suffix(headers, "authenticate"), _by_suffix(headers, "resultLimit")
    return Call(
        service=service,
        method=method,
        arguments=tuple(parameters[1:]),
        identifier=_by_suffix(headers, "InitParameters").get("id"),
        mask=_by_suffix(headers, "ObjectMask").get("mask"),
        filter=_by_suffix(headers, "ObjectFilter"),
        limit=int(limit.get("limit") or 0) or None,
        offset=int(limit.get("offset") or 0),
        credentials=Credentials(str(user.get("username")), str(user.get("apiKey"))),
    )


def write_xmlrpc(result: Answer | Fault) -> bytes:
    """The response body; a fault's code has to be a string, or clients do not know it."""
    value = xmlrpc.client.Fault(result.code, result.text) if isinstance(result, Fault) else (result.value,)
    return _encoded(xmlrpc.client.dumps(value, methodresponse=True, allow_none=True))


def _encoded(text: str) -> bytes:
    """Write characters that XML 1.0 forbids as references, as PHP does; strict parsers refuse them, too."""
    return _NOT_XML.sub(lambda found: f"&#{ord(found[0])};", text).encode()


def _headers(parameters: tuple[Any, ...]) -> dict[str, Any]:
    first = parameters[0] if parameters else None
    headers = first.get("headers") if isinstance(first, dict) else None
    if not isinstance(headers, dict):
        raise Fault(NOT_WELL_FORMED, "The first parameter has to be a structure with the member 'headers'.")
    return headers


def _by_suffix(headers: dict[str, Any], suffix: str) -> dict[str, Any]:
    """A header of a call; clients write the service before some of the names."""
    return next((value for name, value in headers.items() if name.endswith(suffix)), {})


def read_rest(path: str, query: Mapping[str, str], body: bytes, credentials: Credentials) -> Call:
    """The call that a request stands for; ``path`` is what follows the API's root."""
    service, identifier, method = _route(path)
    limit, offset = _limits(query.get("resultLimit", "0,0"))
    return Call(
        service=service,
        method=method,
        arguments=_arguments(body),
        identifier=identifier,
        mask=query.get("objectMask"),
        filter=_json(query.get("objectFilter", "{}"), "objectFilter"),
        limit=limit,
        offset=offset,
        credentials=credentials,
    )


def write_rest(result: Answer | Fault) -> bytes:
    """The response body."""
    value = {"error": result.text, "code": result.code} if isinstance(result, Fault) else result.value
    return json.dumps(value).encode()


def _route(path: str) -> tuple[str, str | None, str]:
    """Service, id and method, as the Python client names them in the path."""
    match path.removesuffix(".json").split("/"):
        case [service, identifier, method]:
            return service, identifier, method
        case [service, method]:
            return service, None, method
    raise Fault(BAD_REQUEST, f"The path '{path}' names no service, object and method.")


def _limits(text: str) -> tuple[int | None, int]:
    """``offset,limit``; ``offset,0`` is an offset without a limit."""
    try:
        offset, limit = map(int, text.split(","))
    except ValueError as wrong:
        raise Fault(BAD_REQUEST, f"resultLimit '{text}' is not 'offset,limit'.") from wrong
    return limit or None, offset


def _arguments(body: bytes) -> tuple[Any, ...]:
    content = _json(body.decode("utf-8") or '{"parameters": []}', "body")
    parameters = content.get("parameters") if isinstance(content, dict) else None
    if not isinstance(parameters, list):
        raise Fault(BAD_REQUEST, "The body has to be an object with the list 'parameters'.")
    return tuple(parameters)


def _json(text: str, what: str) -> Any:
    """Read JSON as PHP does: half a surrogate pair is an error (JSON_ERROR_UTF16)."""
    try:
        value = json.loads(text)
        json.dumps(value, ensure_ascii=False).encode()
    except ValueError as broken:
        raise Fault(BAD_REQUEST, f"The {what} is not JSON: {broken}.") from broken
    return value
