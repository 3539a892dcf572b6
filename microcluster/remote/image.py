"""Docker images on a host: inspecting them, and pulling the base without leaving the registry's key there."""

from collections.abc import Sequence
from pathlib import Path

from microcluster.jobs.cluster_facts import Container
from microcluster.jobs.rendering import render
from microcluster.remote.errors import RemoteError
from microcluster.remote.host import Host

KEY_VARIABLE = "NGC_API_KEY"
LOGIN_REFUSED = 41
PULL_FAILED = 42
PULL_TIMEOUT_S = 3600.0
DISK_FULL = "no space left on device"
ABSENT = ("no such image", "no such container")
"""Docker's messages for a missing object; without its daemon it says "no such file" of the socket."""


def pull_base(host: Host, container: Container, exported_key: str | None = None) -> None:
    """Pull the current base image of the container.

    Args:
        exported_key: the registry's key, used if the container names no key file.
    """
    key = registry_key(container, exported_key)
    registry = container.image.partition("/")[0]
    argv = ("sh", "-c", render("pull.sh.j2"), "pull", registry, container.image)
    done = host.run(argv, stdin=key or "", timeout_s=PULL_TIMEOUT_S, accept=(0, LOGIN_REFUSED, PULL_FAILED))
    said = " ".join(done.stderr.strip().splitlines()[-1:])
    if done.exit_code == LOGIN_REFUSED:
        raise RemoteError(
            f"logging in to the registry {registry} on {host} as $oauthtoken: refused ({said}). "
            f"{_login_hint(said, container)}, then run the same command again."
        )
    if done.exit_code == PULL_FAILED:
        hint = "" if key else f" No registry key was given; if it needs one, put it into {key_source(container)}."
        raise RemoteError(
            f"pulling {container.image} on {host}: {said}.{room_hint(said, host) or hint} Then run the same command again."
        )


def _login_hint(said: str, container: Container) -> str:
    if "dial tcp" in said or "lookup" in said or "Timeout" in said:  # No registry was reached.
        return "The key is not the problem: check that the registry runs and that the machine reaches it"
    return f"Put a valid key into {key_source(container)}"


def room_hint(said: str, host: Host) -> str:
    """Return what to do if the disk was full, else an empty text."""
    if DISK_FULL not in said:
        return ""
    name = host.facts.name
    return (
        f" Its data disk is full: `fab ssh {name} -- df -h /data` shows it; make room (`fab ssh {name} -- docker system "
        "prune -f` drops what no container uses), or order a bigger disk (cluster.dataDiskGb)."
    )


def image_id(host: Host, image: str) -> str | None:
    """Return the id of an image, a hash of its content, or None."""
    return _inspect(host, image, "{{.Id}}")


def image_label(host: Host, image: str, label: str) -> str | None:
    """Return a label of an image; None without image or label."""
    return _inspect(host, image, f'{{{{index .Config.Labels "{label}"}}}}') or None


def _inspect(host: Host, image: str, form: str) -> str | None:
    return inspected(host, ("docker", "image", "inspect", "--format", form, image))


def inspected(host: Host, argv: Sequence[str]) -> str | None:
    """Return Docker's output about an object, or None if it does not exist; raise if Docker does not answer."""
    done = host.run(argv, accept=(0, 1))
    if done.exit_code == 0:
        return done.stdout.strip()
    if any(message in done.stderr.lower() for message in ABSENT):
        return None
    said = " ".join(done.stderr.strip().splitlines()[-1:]) or "no output"
    raise RemoteError(
        f"asking Docker on {host} for {argv[-1]}: no answer ({said}). Check `fab ssh {host.facts.name} -- docker info`, "
        "then run the same command again."
    )


def registry_key(container: Container, exported: str | None) -> str | None:
    """Return the registry's key, or None.

    A named file has precedence: an exported key of a real account must not reach the local registry.
    """
    if not container.registry_key_file:
        return (exported or "").strip() or None
    path = Path(container.registry_key_file).expanduser()
    try:
        return path.read_text().strip()
    except OSError as error:
        raise RemoteError(
            f"reading the registry's key from {path}: {error.strerror}. Write the key into it (mode 0600), then run "
            "the same command again."
        ) from error


def key_source(container: Container) -> str:
    """Return the source of the key, for messages."""
    return container.registry_key_file or f"the environment variable {KEY_VARIABLE} or ~/.microcluster/ngc_key"
