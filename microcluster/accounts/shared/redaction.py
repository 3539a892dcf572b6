"""Texts without secrets: whatever comes from the wire may quote a key, plain or encoded."""

import base64
import html
import json
import re
from urllib.parse import quote, quote_plus

from microcluster.core.plain_text import lines

SHORTEST_SECRET = 12
LONGEST_TEXT = 400
PRIVATE_KEYS = re.compile(
    # The second form is the same beginning in base64.
    r"-----BEGIN.*?(?:-----END[^-]*-----|$)|LS0tLS1CRUdJTi[A-Za-z0-9+/=_-]*",
    re.DOTALL,
)


def redacted(text: str, *secrets: str) -> str:
    """Take secrets, private keys and control characters out of a text, and cut it to a size that fits a message."""
    text = without_secrets(text, *secrets)
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."


def without_secrets(text: str, *secrets: str) -> str:
    """Take secrets, private keys and control characters out of a text."""
    text = lines(text)  # First, so that no control character splits a secret.
    for secret in secrets:
        # A key as short as the local account's is a word of the language; replacing it would garble every message.
        for form in forms(secret) if len(secret) >= SHORTEST_SECRET else ():
            text = text.replace(form, "(secret)")
    return PRIVATE_KEYS.sub("(private key)", text)


def forms(secret: str) -> tuple[str, ...]:
    """List how a secret looks in texts: plain, escaped for URLs, JSON and XML, and inside base64."""
    escaped = {secret, quote(secret, safe=""), quote(secret), quote_plus(secret), json.dumps(secret)[1:-1]}
    escaped |= {html.escape(secret), html.escape(secret, quote=False)}
    raw = secret.encode()
    coded = {core for shift in range(3) for core in _base64_cores(raw, shift)}
    return tuple(sorted(escaped | coded, key=len, reverse=True))


def _base64_cores(raw: bytes, shift: int) -> tuple[str, str]:
    """Encode it as it stands ``shift`` bytes into something longer, without the edges that its neighbours share."""
    whole = (len(raw) + shift) // 3 * 3
    coded = base64.b64encode((b"\0" * shift + raw)[:whole]).decode()
    core = coded[4 if shift else 0 :]
    return core, core.replace("+", "-").replace("/", "_")
