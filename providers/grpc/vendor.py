"""One vendor's provider: its resources, and its settings in a stack file, of which above all no key is one."""

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from providers.grpc.declared import Declared
from providers.rental.account import Market
from providers.rental.errors import ProviderError
from providers.rental.operation import Session
from providers.rental.resource import Managed
from providers.rental.spec import Problem, Values

TIME_SCALE = "timeScale"
ENGINES_OWN = ("version", "pluginDownloadURL", "__internal")


@dataclass(frozen=True)
class Vendor:
    """What the servicer has to know of a vendor."""

    name: str
    resources: Sequence[tuple[type[Declared], Managed]]
    """Each as the program declares it, and as the provider carries it out."""
    open_market: Callable[[str | None, threading.Event, float], Market]
    """Makes the account from the file of its key, the engine's wish to stop, and the unit of all waits; it calls nobody yet."""
    key_file: str
    """The setting that names the file of the key."""
    credential_names: tuple[str, ...]
    """What a person may take for a setting, and holds a secret."""
    where_instead: str
    """Where a key belongs, as a sentence."""
    version: str = "0.1.0"

    def resource(self, token: str) -> Managed:
        """Return the resource of a type."""
        known = {declared.TOKEN: managed for declared, managed in self.resources}
        if token not in known:
            raise ProviderError(
                f"looking for resource type {token}: the provider has {', '.join(known)}. Correct the program."
            )
        return known[token]

    def session(self, settings: Values, stop: threading.Event) -> Session:
        """Remember the settings; the first operation that needs the account opens it, so that a preview needs none."""
        scale, key_file = self.time_scale(settings), settings.get(self.key_file)
        return Session(lambda: self.open_market(key_file, stop, scale), scale, stop)

    def problems(self, settings: Values) -> list[Problem]:
        """Say which settings are none."""
        return [self._problem(key) for key in settings if key not in (self.key_file, TIME_SCALE, *ENGINES_OWN)]

    def time_scale(self, settings: Values) -> float:
        """Read the unit of all waits, in seconds; 1 unless it is set.

        Raises:
            ProviderError: it is no number above 0.
        """
        value = settings.get(TIME_SCALE)
        try:
            scale = float(value if value not in (None, "") else 1)
        except ValueError:
            scale = 0
        if not 0 < scale < math.inf:
            raise ProviderError(
                f"reading {self.name}:{TIME_SCALE}: '{value}' is no number above 0. Correct the stack file."
            )
        return scale

    def _problem(self, key: str) -> Problem:
        if key in self.credential_names:
            # The engine prints the value of a property that fails, so that a key is refused without naming its property.
            return Problem("", f"{self.name}:{key} does not belong into a stack file. {self.where_instead}")
        return Problem(key, f"is no setting of this provider; it has {self.key_file}, {TIME_SCALE}")
