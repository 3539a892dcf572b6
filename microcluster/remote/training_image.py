"""The training image: its base pulled without leaving the registry's key there, built on the launcher, and copied to the others in one chain."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from pydantic import TypeAdapter

from agent.nodes import chain_copy
from microcluster.core.files import write_whole
from microcluster.core.key_file import SETTING, KeyFileError
from microcluster.core.plain_text import note, printable
from microcluster.jobs import image
from microcluster.jobs.cluster_facts import Container
from microcluster.jobs.rendering import render
from microcluster.remote.answers import read_answer
from microcluster.remote.errors import RemoteError
from microcluster.remote.host import Host
from microcluster.remote.parallel import on_all
from microcluster.remote.ssh_mesh import FOLDER, ensure_rank_files, rank_public_key

KEY_VARIABLE = "NGC_API_KEY"
LOGIN_REFUSED = 41
PULL_FAILED = 42
PULL_TIMEOUT_S = 3600.0
DIGEST, MOVED = re.compile("^sha256:[0-9a-f]{64}$", re.MULTILINE), "moved"
DISK_FULL = "no space left on device"
ABSENT = ("no such image", "no such container")
"""Docker's messages for a missing object; without its daemon it says "no such file" of the socket."""
BUILD_TIMEOUT_S = 3600.0
PIP_VARIABLES = ("PIP_INDEX_URL", "PIP_TRUSTED_HOST")
"""Variables of a machine's environment that name a package index; builds get them too: a site may have no other index."""
TIMEOUT_S = 3600.0
LOAD = ("docker", "load", "--quiet")
LONGEST_LINE = 500
LINK = TypeAdapter(tuple[str, str])
CHAIN_COPY = Path(chain_copy.__file__)
RECEIVE = f"{FOLDER}/receive_image.sh"
KEYS = "/root/.ssh/authorized_keys2"
"""The second file that sshd reads by default; the first one has the stack's own key and is not changed."""
KEYS_OF_USER = ".ssh/authorized_keys2"


def pull_base(host: Host, container: Container, digests: Path, exported_key: str | None = None) -> None:
    """Pull the base image of the container by the digest of its first pull, or by its reference the first time.

    Args:
        digests: the folder of this computer where digests are kept, a file for each reference.
        exported_key: the registry's key, used if the container names no key file.
    """
    key = registry_key(container, exported_key)
    registry = image.registry(container.image)
    file = digests / quote(container.image, safe=":")
    digest = file.read_text().strip() if file.exists() else ""
    reference = f"{registry}/{image.repository(container.image)}@{digest}" if digest else ""
    argv = ("sh", "-c", render("pull_image.sh.j2"), "pull", registry, container.image, reference)
    pulled = host.run(argv, stdin=key or "", timeout_s=PULL_TIMEOUT_S, accept=(0, LOGIN_REFUSED, PULL_FAILED))
    error_line = last_line(pulled.stderr)
    if pulled.exit_code == LOGIN_REFUSED:
        raise RemoteError(
            f"logging in to the registry {registry} on {host} as $oauthtoken: refused ({error_line}). "
            f"{_login_hint(error_line, container)}, then run the same command again."
        )
    another = f"To take what the tag names now, remove {file}"
    if pulled.exit_code == PULL_FAILED:
        hint = "" if key else f" No key for {registry} was given; if it needs one, put it into {key_source(container)}."
        hint += f" {another}." if digest else ""
        raise RemoteError(
            f"pulling {reference or container.image} on {host}: {error_line}.{room_hint(error_line, host) or hint} Then run the same command again."
        )
    if MOVED in pulled.stdout.split():
        note(
            f"{host.facts.name}: {container.image} is another image now than at its first pull; {digest} is used as before. "
            f"{another}, then run the same command again."
        )
    # What this computer builds has a new digest after each `make images`; a reference with a digest is pinned already.
    if not (digest or "@" in container.image or image.is_ours(container.image)) and (
        first := DIGEST.search(pulled.stdout)
    ):
        digests.mkdir(parents=True, exist_ok=True)
        write_whole(file, f"{first[0]}\n")


def _login_hint(said: str, container: Container) -> str:
    if "dial tcp" in said or "lookup" in said or "Timeout" in said:  # No registry was reached.
        return "The key is not the problem: check that the registry runs and that the machine reaches it"
    return f"Put a valid key into {key_source(container)}"


def room_hint(said: str, host: Host) -> str:
    """Return advice if the disk was full, else an empty text."""
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


def last_line(text: str) -> str:
    """Return the last line of what a tool printed, as far as anybody reads it."""
    return printable(" ".join(text.strip().splitlines()[-1:]), LONGEST_LINE)


def inspected(host: Host, argv: Sequence[str]) -> str | None:
    """Return Docker's output about an object, or None if it does not exist; raise if Docker does not answer."""
    completed = host.run(argv, accept=(0, 1))
    if completed.exit_code == 0:
        return completed.stdout.strip()
    if any(message in completed.stderr.lower() for message in ABSENT):
        return None
    said = last_line(completed.stderr) or "no output"
    raise RemoteError(
        f"asking Docker on {host} for {argv[-1]}: no answer ({said}). Check `fab ssh {host.facts.name} -- docker info`, "
        "then run the same command again."
    )


def registry_key(container: Container, exported: str | None) -> str | None:
    """Return the key of the image's registry, or None: no other registry gets it.

    A named file has precedence: an exported key of a real account must not reach the local registry.
    """
    registry = image.registry(container.image)
    if not container.registry_key_file:
        return (exported or "").strip() or None if registry == image.NGC else None
    path = Path(container.registry_key_file).expanduser()
    try:
        return image.registry_key(container.image, path)
    except KeyFileError as error:
        raise RemoteError(
            f"reading the registry's key from {path}: nothing was sent, as {error} Then run the same command again."
        ) from error


def key_source(container: Container) -> str:
    """Return the source of the key, for messages."""
    registry = image.registry(container.image)
    ours = f"the environment variable {KEY_VARIABLE} or ~/.microcluster/{image.KEY_FILE}"
    named = (
        f"a file that container.registryKeyFile names, as the lines '[{registry}]' and '{SETTING} = KEY' (mode 0600)"
    )
    return container.registry_key_file or (ours if registry == image.NGC else named)


def ensure_built(launcher: Host, container: Container, digests: Path, exported_key: str | None = None) -> bool:
    """Build the container's image on its base; return whether it was built.

    If the registry does not answer, an existing image is used: a machine may have to be replaced at any time.

    Args:
        digests: the folder of this computer where digests of base images are kept.
        exported_key: the registry's key, used if the container names no key file.
    """
    text, tag = container.dockerfile, container.tag
    built_of = image_label(launcher, tag, image.RECIPE_LABEL)
    try:
        pull_base(launcher, container, digests, exported_key)
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
    completed = launcher.run(argv, stdin=text, timeout_s=BUILD_TIMEOUT_S, accept=range(256))
    if completed.exit_code:
        output = completed.stdout + completed.stderr
        raise RemoteError(
            f"building the training image {tag} on {launcher}: exit code {completed.exit_code}.\n{image.why_it_failed(output)}\n"
            f"No partial image is used.{room_hint(output, launcher)} Fix the reason (the Dockerfile of the job's kind is in templates/), "
            "then run the same command again; finished steps are kept."
        )


def distribute(source: Host, targets: Sequence[Host], container: Container, rank_key_file: str) -> None:
    """Copy the image of ``source`` to ``targets``; hosts behind a broken link get it in a second try, one by one.

    Docker tags an image only when it is complete and every layer has its hash.
    """
    tag = container.tag
    wanted_id = image_id(source, tag)
    broken = _chain(source, targets, container, rank_key_file)
    missed = [host for host in targets if image_id(host, tag) != wanted_id]
    if len(targets) > 1:
        for host in missed:
            broken.update(_chain(source, [host], container, rank_key_file))
    failed = [_failure(source, host, tag, broken) for host in missed if image_id(host, tag) != wanted_id]
    if failed:
        raise RemoteError(f"{' '.join(failed)} Run the same command again.")


def one_use_key(public_key: str, source_address: str) -> str:
    """Return the line that admits the ranks' key once, from one address, only to send an image."""
    command = f"rm -f {KEYS_OF_USER}; exec {shlex.join(('sh', RECEIVE))}"
    return f'restrict,from="{source_address}",command="{command}" {public_key.strip()}\n'


def _chain(source: Host, targets: Sequence[Host], container: Container, rank_key_file: str) -> dict[str, str]:
    """Send the image along ``targets``; return {private address: reason} of broken links."""
    members = [source, *targets]
    names = {host.facts.private_address: host.facts.name for host in targets}
    note(f"training image: in one chain from {' to '.join(host.facts.name for host in members)} ...")
    try:
        on_all(members, lambda host: _join(members, members.index(host), container, rank_key_file))
        script = render("send_image.sh.j2", folder=FOLDER)
        first = targets[0]
        argv = ("sh", "-c", script, "hand-over", container.tag, first.user, first.facts.private_address)
        completed = source.run(argv, timeout_s=TIMEOUT_S, accept=range(256))
    finally:
        on_all(targets, lambda host: host.run(("rm", "-f", RECEIVE, KEYS)))
    output = (completed.stdout + completed.stderr).strip().splitlines()
    told = (line.removeprefix(chain_copy.MARK) for line in output if line.startswith(chain_copy.MARK))
    links = [read_answer(LINK, line, f"copying {container.tag} from {source}") for line in told]
    if completed.exit_code:
        reason = next((line for line in output if DISK_FULL in line), " ".join(output[-1:]))
        links.append((first.facts.private_address, f"exit code {completed.exit_code} ({reason})"))
    for address, reason in links:
        note(f"the chain broke at {names.get(address, address)} ({reason})")
    broken = dict(links)
    for host in targets:
        if host.facts.private_address in broken:  # Docker's containerd store also lists what it had no room to unpack.
            host.run(("docker", "rmi", container.tag), accept=range(256))
    return broken


def _join(members: Sequence[Host], place: int, container: Container, rank_key_file: str) -> None:
    """Prepare a host: pin the next host's key, and admit the previous host."""
    host, onward = members[place], members[place + 1 : place + 2]
    ensure_rank_files(host, container, rank_key_file)
    for each in onward:
        host.put(f"{FOLDER}/known_machines", f"{each.facts.private_address} {each.pinned_key}\n", "0600")
    if place == 0:
        return
    if onward:
        host.put(f"{FOLDER}/{CHAIN_COPY.name}", CHAIN_COPY.read_text())
    inputs = {"folder": FOLDER, "sink": LOAD, "way": ("sh", f"{FOLDER}/machine_ssh", "-l", host.user)}
    host.put(RECEIVE, render("receive_image.sh.j2", **inputs, onward=[each.facts.private_address for each in onward]))
    before = members[place - 1].facts.private_address
    host.put(KEYS, one_use_key(rank_public_key(rank_key_file), before), "0600")


def _failure(source: Host, host: Host, tag: str, broken: dict[str, str]) -> str:
    reason = broken.get(host.facts.private_address)
    if reason is None:
        return f"copying {tag} from {source} to {host}: the image there differs from the one on {source}."
    hint = room_hint(reason, host)
    return f"copying {tag} from {source} to {host}: {reason}. {host.facts.name} has no partial image.{hint}"
