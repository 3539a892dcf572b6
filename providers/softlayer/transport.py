"""The official client's connection: a request is sent once, to the account alone, and ends in time."""

import json
import os
import re
from collections.abc import Callable
from typing import Any

import SoftLayer
from requests import Response

from providers.rental.http_once import OnceAdapter, retry_after_s
from providers.softlayer.credentials import Credentials

CONNECT_TIMEOUT_S = 10.0
LONGEST_ORDER_S = 300.0
"""An order's answer is awaited for so long, and by then the service has carried the order out, whether or not its caller waits.

Users of the vendor's clients saw placeOrder take more than one minute, and orders that were cut off after 60 s carried out
all the same (softlayer/softlayer-go issue 47, IBM-Cloud/terraform-provider-ibm issue 547).
"""
UNREADABLE = re.compile(
    rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]|\xed[\xa0-\xbf][\x80-\xbf]"  # C0, U+FFFE, U+FFFF, surrogates
    rb"|&#(?:x([0-9a-fA-F]{1,9})|([0-9]{1,9}));"
)
INSTEAD = b"&#xFFFD;"
OTHER_ENCODING = re.compile(rb"""<\?xml[^>]*encoding=["'](?!utf-8)""", re.IGNORECASE)


def new_client(credentials: Credentials, hold: Callable[[float], None] = lambda _: None) -> SoftLayer.BaseClient:
    """Build an official client from these settings alone: it reads no file and, for a local account, no environment.

    Args:
        hold: called with the seconds for which an answer asks not to be called again.
    """
    is_rest = "/rest" in credentials.endpoint
    make = SoftLayer.RestTransport if is_rest else SoftLayer.XmlRpcTransport
    transport = make(
        endpoint_url=credentials.endpoint,
        # How long a whole call may take depends on the call, and ``Api.once`` sees to it.
        timeout=(min(CONNECT_TIMEOUT_S, credentials.timeout_s), LONGEST_ORDER_S),
        proxy=None if credentials.is_local else credentials.proxy,
        verify=credentials.authority or True,
    )
    session = transport.client
    for scheme in ("http://", "https://"):
        session.mount(scheme, OnceAdapter())
    # A redirected order would be sent twice, with the key, to whatever address an answer names.
    session.max_redirects = 0
    session.trust_env = not credentials.is_local

    readable = readable_json if is_rest else readable_xml

    def prepare(response: Response, *_: Any, **__: Any) -> None:
        hold(retry_after_s(response.headers))
        response._content = readable(response.content)  # The client parses it in the call that has read it.

    session.hooks["response"].append(prepare)
    sign = SoftLayer.BasicHTTPAuthentication if is_rest else SoftLayer.BasicAuthentication
    # The client reads ~/.softlayer unless it is given another file.
    auth = sign(credentials.username, credentials.api_key)
    return SoftLayer.BaseClient(auth=auth, transport=transport, config_file=os.devnull)


def readable_xml(body: bytes) -> bytes:
    """Put U+FFFD where a text holds what XML 1.0 forbids (its section 2.2), so that one name does not hide a whole list."""
    body = UNREADABLE.sub(_allowed, body)
    if OTHER_ENCODING.match(body):
        return body
    return body.decode("utf-8", "replace").encode()


def readable_json(body: bytes) -> bytes:
    """Put a question mark where a text holds half a surrogate pair, which nothing can write again."""
    if b"\\ud" not in body.lower():
        return body
    try:
        return json.dumps(json.loads(body), ensure_ascii=False).encode("utf-8", "replace")
    except ValueError:
        return body


def _allowed(found: re.Match[bytes]) -> bytes:
    digits, base = (found[1], 16) if found[1] else (found[2], 10)
    return found[0] if digits and _is_character(int(digits, base)) else INSTEAD


def _is_character(number: int) -> bool:
    return (
        number in (0x9, 0xA, 0xD)
        or 0x20 <= number <= 0xD7FF
        or 0xE000 <= number <= 0xFFFD
        or 0x10000 <= number <= 0x10FFFF
    )
