"""Checks of single values of a stack file."""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Iterable
from pathlib import Path

from pydantic import AfterValidator

from microcluster.config.errors import EXAMPLES
from microcluster.config.safe_yaml import printable, shown

MOST_ADMIN_ADDRESSES = 2**24
"""The size of a /8, for all networks together."""
COMPONENT = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
IMAGE = re.compile(
    rf"(?=[^/]*\.)[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{{1,5}})?(?:/{COMPONENT})+"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)
LONGEST_IMAGE = 255
PATH_BEGINNING = re.compile(r"(~|\$(MICROCLUSTER_HOME|HOME)|\$\{(MICROCLUSTER_HOME|HOME)\})?/")
LONGEST_PATH = 1024
FORBIDDEN_IN_PATHS = "$`\\\"'<>|;&*?{}"


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


def key_file(value: str) -> str:
    """Accept the path of a key file."""
    problem = problem_of_path(value)
    if problem:
        raise ValueError(problem)
    return value


def image_reference(value: str) -> str:
    """Accept a container image reference with its registry."""
    if len(value) > LONGEST_IMAGE or not IMAGE.fullmatch(value):
        raise ValueError(f"{shown(value)} is not a full image reference; for example {EXAMPLES['container/image']}")
    return value


def run_or_reason(value: str) -> str:
    """Accept "run", or "skip: " with a reason."""
    if not re.fullmatch(r"run|skip: [^\s][ -~]{7,199}", value):
        raise ValueError(f"{shown(value)} is neither 'run' nor 'skip: ' with a reason of 8 to 200 characters")
    return value


def problem_of_path(path: object) -> str | None:
    """Return why this is no path of a file; the value is never repeated, since it may be a key."""
    begins = PATH_BEGINNING.match(path) if isinstance(path, str) else None
    if not isinstance(path, str) or not begins:
        return "is not the path of a file; begin with ~/, / or $MICROCLUSTER_HOME/, for example ~/.microcluster/ngc_key"
    rest = path[begins.end() :]
    if not rest.isprintable() or any(character in rest for character in FORBIDDEN_IN_PATHS) or ".." in Path(path).parts:
        return "has '..' or special characters in it; write the path out"
    return None if len(path) <= LONGEST_PATH else f"is longer than {LONGEST_PATH} characters"
