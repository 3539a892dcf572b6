"""A provider's settings in a stack file: which there are, and above all that no key is among them."""

import math
from dataclasses import dataclass

from providers.grpc.properties import Problem
from providers.grpc.resource_protocol import Values
from providers.rental.errors import ProviderError

TIME_SCALE = "timeScale"
ENGINES_OWN = ("version", "pluginDownloadURL", "__internal")


@dataclass(frozen=True)
class ProviderSettings:
    """The settings of one vendor's provider."""

    vendor: str
    key_file: str
    """The setting that names the file of the key."""
    credential_names: tuple[str, ...]
    """What a person may take for a setting, and holds a secret."""
    where_instead: str
    """Where a key belongs, as a sentence."""

    def problems(self, given: Values) -> list[Problem]:
        """Say which settings are none."""
        return [self._problem(key) for key in given if key not in (self.key_file, TIME_SCALE, *ENGINES_OWN)]

    def time_scale(self, given: Values) -> float:
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
            raise ProviderError(
                f"reading {self.vendor}:{TIME_SCALE}: '{value}' is no number above 0. Correct the stack file."
            )
        return scale

    def _problem(self, key: str) -> Problem:
        if key in self.credential_names:
            # The engine prints the value of a property that fails, so that a key is refused without naming its property.
            return Problem("", f"{self.vendor}:{key} does not belong into a stack file. {self.where_instead}")
        return Problem(key, f"is no setting of this provider; it has {self.key_file}, {TIME_SCALE}")
