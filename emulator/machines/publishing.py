"""Put images of the host's Docker into an account's registry, the way NVIDIA fills NGC."""

from __future__ import annotations

import json
import socket
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import docker
import yaml
from filelock import FileLock

from emulator.machines.docker_errors import connect, docker_doing
from emulator.machines.machine_mount import write_private
from emulator.machines.processes import KeptProcess
from emulator.machines.registry import storage_of
from emulator.machines.spec import MachineError
from emulator.machines.waiting import wait_until

LOOPBACK = "127.0.0.1"  # Docker takes plain HTTP from here without being configured for it.
START_S, ANSWER_S = 15, 2


def publish(state: Path, image: str, name: str) -> bool:
    """Publish ``image`` as ``name``, which may have a tag; False when the registry already has it."""
    repository, _, tag = name.partition(":")
    tag = tag or "latest"
    client = connect()
    with docker_doing(f"Publishing {image} as {repository}:{tag}"):
        found = client.images.get(image)
        if found.id in published_ids(storage_of(state), repository, tag):
            return False
        with FileLock(_folder(state) / "publishing.lock"), _writable_registry(state) as port:
            _push(client, image, f"{LOOPBACK}:{port}/{repository}", tag)
    return True


def published_ids(storage: Path, repository: str, tag: str) -> set[str]:
    """The digests of a tag's manifest and configuration; Docker's image id is one of the two."""
    root = storage / "docker/registry/v2"
    link = root / "repositories" / repository / "_manifests/tags" / tag / "current/link"
    if not link.exists():
        return set()
    manifest = link.read_text().strip()
    algorithm, _, digest = manifest.partition(":")
    content = json.loads((root / "blobs" / algorithm / digest[:2] / digest / "data").read_text())
    return {manifest, content.get("config", {}).get("digest", manifest)}


def _push(client: docker.DockerClient, image: str, repository: str, tag: str) -> None:
    client.images.get(image).tag(repository, tag)
    try:
        for line in client.api.push(repository, tag, stream=True, decode=True):
            if "error" in line:
                raise MachineError(f"Publishing {image}: the push failed: {line['error']}. Run it again.")
    finally:
        client.api.remove_image(f"{repository}:{tag}", noprune=True)


@contextmanager
def _writable_registry(state: Path) -> Iterator[int]:
    """A second registry over the same images, without TLS and password, on loopback, for a moment."""
    folder, port = _folder(state), _free_port()
    process = KeptProcess(folder / "publishing.pid", folder / "publishing.log")
    process.stop()  # One that a killed publication left behind.
    settings = {
        "version": 0.1,
        "log": {"level": "warn", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(storage_of(state))}},
        "http": {"addr": f"{LOOPBACK}:{port}"},
    }
    write_private(folder / "publishing.yml", yaml.safe_dump(settings))
    process.start(("docker-registry", "serve", str(folder / "publishing.yml")))
    try:
        look = str(folder / "publishing.log")
        wait_until(f"the registry on {LOOPBACK}:{port}", lambda: _answers(process, port), START_S, look=look)
        yield port
    finally:
        process.stop()


def _answers(process: KeptProcess, port: int) -> bool:
    if not process.runs:
        raise MachineError(f"Publishing an image: docker-registry ended: {process.last_log_line()}. Run it again.")
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        return direct.open(f"http://{LOOPBACK}:{port}/v2/", timeout=ANSWER_S).status == 200
    except OSError:
        return False


def _folder(state: Path) -> Path:
    storage_of(state).mkdir(mode=0o700, parents=True, exist_ok=True)
    return storage_of(state).parent


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return probe.getsockname()[1]
