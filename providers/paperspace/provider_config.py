"""The provider's settings in a stack file: which there are, and above all that no key is among them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from providers.grpc.properties import Problem
from providers.paperspace.credentials import VARIABLE
from providers.rental.errors import ProviderError

KEY_FILE, TIME_SCALE = "apiKeyFile", "timeScale"
SETTINGS = (KEY_FILE, TIME_SCALE)
ENGINES_OWN = ("version", "pluginDownloadURL", "__internal")
CREDENTIAL_NAMES = ("apiKey", "api_key", "key", "token", "password")


def problems(given: Mapping[str, Any]) -> list[Problem]:
    """Say which settings are none."""
    return [_problem(key) for key in given if key not in (*SETTINGS, *ENGINES_OWN)]


def time_scale(given: Mapping[str, Any]) -> float:
    """Read the unit of all waits, in seconds; 1 unless it is set.

    Raises:
        ProviderError: it is no number above 0.
    """
    value = given.get(TIME_SCALE)
    try:
        scale = float(value if value not in (None, "") else 1)
    except ValueError:
        scale = 0
    if not 0 < scale < math.inf:
        raise ProviderError(f"reading paperspace:timeScale: '{value}' is no number above 0. Correct the stack file.")
    return scale


def _problem(key: str) -> Problem:
    if key in CREDENTIAL_NAMES:
        # The engine prints the value of a property that fails, so that a key is refused without naming its property.
        return Problem(
            "",
            f"paperspace:{key} does not belong into a stack file. Put the key into a 0600 file and name it in "
            f"paperspace:{KEY_FILE}, or export {VARIABLE}.",
        )
    return Problem(key, f"is no setting of this provider; it has {', '.join(SETTINGS)}")
