"""Checks of single values of a ``cluster`` section."""

import difflib
import ipaddress
import re
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StrictInt, StrictStr

from core.plain_text import printable, shown

MAX_NODES = 64
MOST_ADMIN_CIDRS = 40
"""A security group of SoftLayer takes 50 rules."""
MOST_ADMIN_ADDRESSES = 2**24
"""The size of a /8, for all networks together."""
DOCUMENTATION_CIDR = "203.0.113.7/32"


def known(kind: str, known: Iterable[str]) -> AfterValidator:
    """Accept a known word; else name the nearest one."""

    def check(value: str) -> str:
        if value not in known:
            near = difflib.get_close_matches(value[:80], list(known), n=1, cutoff=0.4)
            hint = f"did you mean '{near[0]}'?" if near else f"one of {', '.join(known)}"
            raise ValueError(f"{shown(value)} is not {kind}; {hint}")
        return value

    return AfterValidator(check)


def one_of(kind: str, choices: tuple[int, ...]) -> AfterValidator:
    """Accept one of the choices."""

    def check(value: int) -> int:
        if value not in choices:
            raise ValueError(f"{value} is not {kind}; one of {', '.join(map(str, choices))}")
        return value

    return AfterValidator(check)


def admin_cidr(value: str) -> str:
    """Accept a network from which people may log in, but not the whole internet."""
    try:
        network = ipaddress.IPv4Network(value)
    except ValueError as error:
        why = printable(str(error))
        raise ValueError(f"{shown(value)} is not an IPv4 network ({why}); for example 198.51.100.7/32") from error
    if network.num_addresses > MOST_ADMIN_ADDRESSES:
        raise ValueError(
            f"{shown(value)} opens port 22 to {network.num_addresses:,} addresses; name your own, for example 198.51.100.7/32"
        )
    if network.is_unspecified or network.is_multicast or network.is_loopback or network.is_link_local:
        raise ValueError(f"{shown(value)} is not a usable address; name your own, for example 198.51.100.7/32")
    return str(network)


def few_addresses(cidrs: list[str]) -> list[str]:
    """Accept networks that together are not too large."""
    whole = sum(net.num_addresses for net in ipaddress.collapse_addresses(map(ipaddress.IPv4Network, cidrs)))
    if whole > MOST_ADMIN_ADDRESSES:
        raise ValueError(
            f"together they open port 22 to {whole:,} addresses; name your own, for example 198.51.100.7/32"
        )
    return cidrs


def account_image(value: str) -> str:
    """Accept the id or the global identifier of an image in the account."""
    if not re.fullmatch(r"[1-9][0-9]{0,9}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", value):
        raise ValueError(f"{shown(value)} is not the id or the global identifier of an image; for example '2263543'")
    return value


def problem_of_example(cidrs: Any, *, ordering: bool) -> list[str]:
    """Refuse to order with the address of the documentation."""
    if not (ordering and isinstance(cidrs, list) and DOCUMENTATION_CIDR in cidrs):
        return []
    return [
        f"cluster/adminCidrs: {DOCUMENTATION_CIDR} is the documentation's address; use your own, which `curl ifconfig.me` prints"
    ]


Nodes = Annotated[StrictInt, Field(ge=1, le=MAX_NODES)]
AdminCidrs = Annotated[
    list[Annotated[StrictStr, AfterValidator(admin_cidr)]],
    Field(min_length=1, max_length=MOST_ADMIN_CIDRS),
    AfterValidator(few_addresses),
]
