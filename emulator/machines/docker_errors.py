"""Errors and silence of the Docker daemon, as one sentence."""

from collections.abc import Iterator
from contextlib import contextmanager

import docker
from docker.errors import APIError, DockerException, ImageNotFound
from requests.exceptions import RequestException

from emulator.machines.spec import MachineError

SILENT = "the Docker daemon does not answer. Start it (`make setup` does), or use `--machines none`."
API_TIMEOUT_S = 120
CONNECTIONS = 64


def connect() -> docker.DockerClient:
    """A client of the local daemon that many threads may use at once."""
    with docker_doing("Connecting to Docker"):
        client = docker.from_env(timeout=API_TIMEOUT_S, max_pool_size=CONNECTIONS)
        client.ping()
        return client


@contextmanager
def docker_doing(doing: str) -> Iterator[None]:
    """Turn what Docker raises into a MachineError that begins with ``doing``."""
    try:
        yield
    except ImageNotFound as missing:
        raise MachineError(f"{doing}: {_reason(missing)}. Run `make images`.") from missing
    except APIError as refused:
        raise MachineError(f"{doing}: Docker refused: {_reason(refused)}.") from refused
    except (DockerException, RequestException) as silent:
        raise MachineError(f"{doing}: {SILENT}") from silent


def _reason(error: APIError) -> str:
    return " ".join(str(error.explanation or error).split()).rstrip(".")
