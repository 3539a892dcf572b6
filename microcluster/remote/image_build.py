"""Builds the training image on the launcher, again only if its Dockerfile or base has changed."""

from core.plain_text import note
from microcluster.jobs import image
from microcluster.jobs.cluster_facts import Container
from microcluster.remote.errors import RemoteError
from microcluster.remote.host import Host
from microcluster.remote.image import image_id, image_label, pull_base, room_hint

BUILD_TIMEOUT_S = 3600.0
PIP_VARIABLES = ("PIP_INDEX_URL", "PIP_TRUSTED_HOST")
"""Where a machine's environment names a package index, pip uses it in the build too: a site may have no other one."""


def ensure_built(launcher: Host, container: Container, exported_key: str | None = None) -> bool:
    """Build the container's image on the registry's current base; return whether it was built.

    If the registry does not answer, an existing image is used: a machine may have to be replaced at any time.

    Args:
        exported_key: the registry's key, used if the container names no key file.
    """
    text, tag = image.of(container).dockerfile, image.tag(container)
    built_of = image_label(launcher, tag, image.RECIPE_LABEL)
    try:
        pull_base(launcher, container, exported_key)
    except RemoteError as error:
        if not built_of:
            raise
        note(f"{launcher.facts.name}: using the existing image, because the registry did not answer: {error}")
        return False
    base = image_id(launcher, container.image)
    if not base:
        raise RemoteError(
            f"pulling {container.image} on {launcher}: the image is missing afterwards. Run the same command again."
        )
    recipe = image.recipe(text, base)
    if built_of == recipe:
        return False
    _build(launcher, tag, text, recipe)
    return True


def _build(launcher: Host, tag: str, text: str, recipe: str) -> None:
    """Build ``text`` with Docker's classic builder, which every version has."""
    options = ("--network=host", "--force-rm", "--label", f"{image.RECIPE_LABEL}={recipe}", "--tag", tag)
    given = [word for name in PIP_VARIABLES for word in ("--build-arg", name)]
    argv = ("env", "DOCKER_BUILDKIT=0", "docker", "build", *options, *given, "-")
    done = launcher.run(argv, stdin=text, timeout_s=BUILD_TIMEOUT_S, accept=range(256))
    if done.exit_code:
        output = done.stdout + done.stderr
        raise RemoteError(
            f"building the training image {tag} on {launcher}: exit code {done.exit_code}.\n{image.why_it_failed(output)}\n"
            f"No partial image is used.{room_hint(output, launcher)} Fix the reason (the Dockerfile of the job's kind is in templates/), "
            "then run the same command again; finished steps are kept."
        )
