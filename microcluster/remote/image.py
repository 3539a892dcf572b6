"""Docker's images on a host: which it has, and the pull of the base, with the registry's key on standard input and no trace of it left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from microcluster.jobs.cluster_facts import Container
from microcluster.jobs.rendering import render
from microcluster.remote.host import Host, RemoteError

KEY_VARIABLE = "NGC_API_KEY"
LOGIN_REFUSED = 41
PULL_FAILED = 42
PULL_TIMEOUT_S = 3600.0
DISK_FULL = "no space left on device"
ABSENT = ("no such image", "no such container")
"""What Docker says of what it does not have; without its daemon it says "no such file" of the socket."""


def pull_base(host: Host, container: Container, exported_key: str | None = None) -> None:
    """Have the image that the registry knows under the container's reference now; what is there already is not sent again.

    Args:
        exported_key: the registry's key where the container names no file for it.
    """
    key = registry_key(container, exported_key)
    registry = container.image.partition("/")[0]
    argv = ("sh", "-c", render("pull.sh.j2"), "pull", registry, container.image)
    done = host.run(argv, stdin=key or "", timeout_s=PULL_TIMEOUT_S, accept=(0, LOGIN_REFUSED, PULL_FAILED))
    said = " ".join(done.stderr.strip().splitlines()[-1:])
    if done.exit_code == LOGIN_REFUSED:
        raise RemoteError(
            f"logging in to the registry {registry} on {host} as $oauthtoken: refused ({said}). "
            f"{_what_to_mend(said, container)}, then run the same command again."
        )
    if done.exit_code == PULL_FAILED:
        hint = "" if key else f" No registry key was given; if it needs one, put it into {key_source(container)}."
        raise RemoteError(
            f"pulling {container.image} on {host}: {said}.{room_hint(said, host) or hint} Then run the same command again."
        )


def _what_to_mend(said: str, container: Container) -> str:
    if "dial tcp" in said or "lookup" in said or "Timeout" in said:  # Docker's words where no registry was reached.
        return "Nothing is wrong with the key: see that the registry runs and that the machine reaches it"
    return f"Put a valid key into {key_source(container)}"


def room_hint(said: str, host: Host) -> str:
    """Return what to do where Docker found its disk full, or an empty text where it was something else."""
    if DISK_FULL not in said:
        return ""
    name = host.facts.name
    return (
        f" Its data disk is full: `fab ssh {name} -- df -h /data` shows it; make room (`fab ssh {name} -- docker system "
        "prune -f` drops what no container uses), or order a bigger disk (cluster.dataDiskGb)."
    )


def image_id(host: Host, image: str) -> str | None:
    """Return the id of an image that the host has, which is a hash of all that is in it, or None."""
    return _inspect(host, image, "{{.Id}}")


def image_label(host: Host, image: str, label: str) -> str | None:
    """Return a label of an image that the host has; None without image or label."""
    return _inspect(host, image, f'{{{{index .Config.Labels "{label}"}}}}') or None


def _inspect(host: Host, image: str, form: str) -> str | None:
    return inspected(host, ("docker", "image", "inspect", "--format", form, image))


def inspected(host: Host, argv: Sequence[str]) -> str | None:
    """Return what Docker prints of an object, or None where it says that there is none; a Docker that is silent says nothing."""
    done = host.run(argv, accept=(0, 1))
    if done.exit_code == 0:
        return done.stdout.strip()
    if any(words in done.stderr.lower() for words in ABSENT):
        return None
    said = " ".join(done.stderr.strip().splitlines()[-1:]) or "no word"
    raise RemoteError(
        f"asking Docker on {host} for {argv[-1]}: no answer ({said}). See `fab ssh {host.facts.name} -- docker info`, "
        "then run the same command again."
    )


def registry_key(container: Container, exported: str | None) -> str | None:
    """Return the registry's key, or None where there is none.

    A file that is named counts alone: an exported key of a real account must not reach the local registry.
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
    """Say where the key comes from, for a person who has to mend it."""
    return container.registry_key_file or f"the environment variable {KEY_VARIABLE} or ~/.microcluster/ngc_key"
