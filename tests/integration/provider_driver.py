"""A provider process, started and asked as the engine does it."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from tools.chaos.fork_server import PROVIDER, Process, fork
from tools.chaos.provider import Failed, Provider, Resource

__all__ = ["Driver", "Failed", "Resource"]
EXECUTABLE = Path(__file__).parents[2] / "providers" / "pulumi-resource-softlayer"


class Child(Process):
    """A provider that is started here, as the engine does it: with a process group of its own, and pipes at both ends."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        stdin, stdout = os.pipe(), os.pipe()
        self._child = subprocess.Popen(argv, stdin=stdin[0], stdout=stdout[1], env=environment, start_new_session=True)
        os.close(stdin[0])
        os.close(stdout[1])
        super().__init__(self._child.pid, stdin[1], stdout[0])

    def release(self) -> None:
        self._child.poll()  # An ended child stays a zombie until somebody asks.
        super().release()


class Driver(Provider):
    """One provider process, configured."""

    def __init__(
        self,
        config_file: Path | str,
        time_scale: float = 0.02,
        environment: Mapping[str, str] = {},
        started_by: tuple[str, ...] = (),
        **settings: str,
    ) -> None:
        """Start a provider; with ``started_by``, a command that starts a command, it is the executable itself."""
        # A home beside the account's own files: what one driver wrote down, the next one over the same account reads.
        home = {"MICROCLUSTER_HOME": str(Path(config_file).parent / "home")}

        def start(engine_address: str) -> Process:
            variables = {**os.environ, **home, **environment}
            if started_by:
                return Child([*started_by, str(EXECUTABLE), engine_address], variables)
            return fork(PROVIDER, [engine_address], variables, Path("/dev/stderr"))

        super().__init__(start, time_scale, configFile=str(config_file), **settings)

    def said(self) -> str:
        """Return all that it has told the engine."""
        return "\n".join(self.ears.said)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()
