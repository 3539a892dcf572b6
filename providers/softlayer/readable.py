"""Answers made readable: a person may have written characters into a name that the protocol's parser refuses."""

from __future__ import annotations

import json
import re

UNREADABLE = re.compile(
    rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]|\xed[\xa0-\xbf][\x80-\xbf]"  # C0, U+FFFE, U+FFFF, surrogates
    rb"|&#(?:x([0-9a-fA-F]{1,9})|([0-9]{1,9}));"
)
INSTEAD = b"&#xFFFD;"
OTHER_ENCODING = re.compile(rb"""<\?xml[^>]*encoding=["'](?!utf-8)""", re.IGNORECASE)


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
