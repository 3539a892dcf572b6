"""Building the training image on the launcher: once for all hosts, and again only when its Dockerfile or its base has changed."""

from __future__ import annotations

from microcluster.jobs import image
from microcluster.jobs.cluster_facts import Container
from microcluster.plain_text import note
from microcluster.remote.host import Host, RemoteError
from microcluster.remote.image import image_id, image_label, pull_base, room_hint

BUILD_TIMEOUT_S = 3600.0


def ensure_built(launcher: Host, container: Container, exported_key: str | None = None) -> bool:
    """Have the image of the container's Dockerfile on the base that the registry offers now; return whether it was built.

    A registry that does not answer holds nobody up who has the image already: machines fall ill and are replaced at any time.

    Args:
        exported_key: the registry's key where the container names no file for it.
    """
    text, tag = image.of(container).dockerfile, image.tag(container)
    built_of = image_label(launcher, tag, image.RECIPE_LABEL)
    try:
        pull_base(launcher, container, exported_key)
    except RemoteError as error:
        if not built_of:
            raise
        note(
            f"{launcher.facts.name}: keeping the image that was built before, for its base could not be asked for: {error}"
        )
        return False
    base = image_id(launcher, container.image)
    if not base:
        raise RemoteError(
            f"pulling {container.image} on {launcher}: it is not there afterwards. Run the same command again."
        )
    recipe = image.recipe(text, base)
    if built_of == recipe:
        return False
    _build(launcher, tag, text, recipe)
    return True


def _build(launcher: Host, tag: str, text: str, recipe: str) -> None:
    """Build ``text``, which needs no file beside it, with Docker's classic builder, the one that every version has."""
    options = ("--network=host", "--force-rm", "--label", f"{image.RECIPE_LABEL}={recipe}", "--tag", tag)
    argv = ("env", "DOCKER_BUILDKIT=0", "docker", "build", *options, "-")
    done = launcher.run(argv, stdin=text, timeout_s=BUILD_TIMEOUT_S, accept=range(256))
    if done.exit_code:
        said = done.stdout + done.stderr
        raise RemoteError(
            f"building the training image {tag} on {launcher}: exit code {done.exit_code}.\n{image.why_it_failed(said)}\n"
            f"Nothing half-made is used.{room_hint(said, launcher)} Mend the reason (the Dockerfile of the job's kind, in templates/, is what was built), "
            "then run the same command again; finished steps of it are kept."
        )
