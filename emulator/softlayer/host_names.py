"""The rule for the names of guests: what the vendor takes as hostname and domain."""

import re
from typing import Any

from emulator.softlayer.faults import Fault, missing

_LABEL = re.compile(r"[A-Za-z0-9]+(-[A-Za-z0-9]+)*")
_TOP_LEVEL = re.compile(r"[A-Za-z]{2,24}")
INVALID_HOSTNAME = "SoftLayer_Exception_InvalidHostname"
LABEL_LENGTH, FULL_NAME_LENGTH = 63, 253


def read_name(guest: dict[str, Any]) -> tuple[str, str]:
    """Hostname and domain of a guest structure."""
    for key in ("hostname", "domain"):
        if not guest.get(key):
            raise missing(key)
    hostname, domain = str(guest["hostname"]), str(guest["domain"])
    *labels, last = f"{hostname}.{domain}".split(".")
    top_level = "." in domain and _TOP_LEVEL.fullmatch(last)
    if not top_level or not all(map(_is_label, labels)) or len(f"{hostname}.{domain}") > FULL_NAME_LENGTH:
        raise invalid_hostname()
    return hostname, domain


def _is_label(text: str) -> bool:
    return bool(_LABEL.fullmatch(text)) and not text.isdigit() and len(text) <= LABEL_LENGTH


def invalid_hostname() -> Fault:
    """Hostname and domain are not a valid name; the text is the vendor's and states the rules."""
    return Fault(
        INVALID_HOSTNAME,
        "The hostname and domain must be alphanumeric strings that may be separated by periods '.'.  The only other "
        "allowable special character is the dash '-'  However the special characters '.' and '-' may not be consecutive.  Each "
        "alphanumeric string separated by a period is considered a label.  Labels must begin and end with an alphanumeric "
        "character.  Each label cannot be solely comprised of digits and must be between 1-63 characters in length.",
    )
