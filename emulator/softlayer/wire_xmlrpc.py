"""SoftLayer's XML-RPC: request bodies to calls, answers and faults to response bodies."""

import re
import xmlrpc.client
from datetime import datetime
from decimal import Decimal
from typing import Any
from xml.parsers.expat import ExpatError

from emulator.softlayer.calls import Answer, Call, Credentials, full_name
from emulator.softlayer.faults import NOT_WELL_FORMED, Fault

# The prolog declares iso-8859-1 although clients send UTF-8; a parser that used it would break every umlaut.
_PROLOG = re.compile(r"^\s*<\?xml[^>]*\?>")
_NOT_XML = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff]")
INT32 = range(-(2**31), 2**31)


def read_call(service: str, body: bytes, basic: Credentials | None) -> Call:
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


def write_answer(answer: Answer) -> bytes:
    """The response body of an answer."""
    return _encoded(xmlrpc.client.dumps((_wire(answer.value),), methodresponse=True, allow_none=True))


def write_fault(fault: Fault) -> bytes:
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
