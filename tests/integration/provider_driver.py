"""A provider process, started and asked as the engine does it."""

import os
from collections.abc import Mapping
from pathlib import Path

from tests.integration.fork_servers import fork_server
from tools.chaos.fork_server import Process
from tools.chaos.provider import Failed, Provider, Resource

__all__ = ["Driver", "Failed", "Resource"]
EXECUTABLE = Path(__file__).parents[2] / "providers" / "pulumi-resource-softlayer"


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
                return Process.start([*started_by, str(EXECUTABLE), engine_address], variables)
            return fork_server().fork([engine_address], variables, Path("/dev/stderr"))

        super().__init__(start, time_scale, configFile=str(config_file), **settings)
