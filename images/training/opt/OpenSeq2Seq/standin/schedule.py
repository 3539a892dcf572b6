"""When something is due: at the first step that is seen, and then each time enough steps have gone by."""

from __future__ import annotations


class Every:
    """Due at once and then every ``steps``; never with None. After a resume it counts from the restored step."""

    def __init__(self, steps: int | None) -> None:
        self._steps, self._last = steps, None

    def due(self, step: int) -> bool:
        """Whether ``step`` is due; it is then taken as done."""
        if self._steps is None or (self._last is not None and step < self._last + self._steps):
            return False
        self._last = step
        return True

    def was(self, step: int) -> bool:
        """Whether ``step`` was the last one that was due."""
        return self._last == step
