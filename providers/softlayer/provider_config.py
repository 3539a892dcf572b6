"""The provider's settings in a stack file: which there are, and above all that no key is among them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from providers.grpc.spec import Problem
from providers.rental.errors import ProviderError

SETTINGS = ("configFile", "timeScale")
ENGINES_OWN = ("version", "pluginDownloadURL", "__internal")
CREDENTIAL_NAMES = ("apiKey", "username", "password", "api_key", "key")


def problems(given: Mapping[str, Any]) -> list[Problem]:
    """Say which settings are none."""
    return [_problem(key) for key in given if key not in (*SETTINGS, *ENGINES_OWN)]


def time_scale(given: Mapping[str, Any]) -> float:
    """Read the unit of all waits, in seconds; 1 unless it is set.

    Raises:
        ProviderError: it is no number above 0.
    """
    value = given.get("timeScale")
    try:
        scale = float(value if value not in (None, "") else 1)
    except ValueError:
        scale = 0
    if not 0 < scale < math.inf:
        raise ProviderError(f"reading softlayer:timeScale: '{value}' is no number above 0. Correct the stack file.")
    return scale


def _problem(key: str) -> Problem:
    if key in CREDENTIAL_NAMES:
        # The engine prints the value of a property that fails, so that a key is refused without naming its property.
        return Problem(
            "",
            f"softlayer:{key} does not belong into a stack file. Put user and key into a 0600 file and name it "
            "in softlayer:configFile, or export SL_USERNAME and SL_API_KEY.",
        )
    return Problem(key, f"is no setting of this provider; it has {', '.join(SETTINGS)}")
