"""Translating sentences with a model of a run, or of a fetched one, in the training container of the launcher: pieces, the program, sentences."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import agent
from core.plain_text import count
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.plan import Plan
from microcluster.jobs.run_spec import RunFolder
from microcluster.remote.errors import CommandError, RemoteError
from microcluster.remote.host import Host
from microcluster.remote.transfer import RemoteFile, send

PIECES = Path(agent.__file__).with_name("data") / "pieces.py"
TIMEOUT_S = 4 * 3600.0
MODELS = ("best model", "newest checkpoint")
MANIFEST = "manifest.json"
NEEDED = (*MODELS, "vocabulary")


@dataclass(frozen=True)
class Model:
    """A model on the launcher; ``checkpoint`` is a path without suffix."""

    config: str
    checkpoint: str
    pieces: str
    vocabulary: str


@dataclass(frozen=True)
class Translation:
    """The translated lines, and the number of sources that were cut because they were too long."""

    lines: tuple[str, ...]
    cut: int


def model_of(files: Sequence[RemoteFile], plan: Plan) -> Model:
    """Return the best model among a run's files, else its newest checkpoint.

    Raises:
        RemoteError: there is none, or a file that it needs is missing.
    """
    translator, by_path = plan.translator, {file.path: file.source for file in files}
    for what in MODELS:
        index = next((f for f in files if f.what == what and f.path.endswith(translator.CHECKPOINT)), None)
        if index:
            break
    else:
        raise RemoteError("choosing a model: the run has no whole checkpoint yet. Wait for the first one: fab watch")
    needed = {
        plan.config_file: "its configuration",
        translator.PIECES: "the pieces",
        translator.VOCABULARY: "the vocabulary",
    }
    missing = [f"{what} ({path})" for path, what in needed.items() if path not in by_path]
    if missing:
        raise RemoteError(f"choosing a model: {', '.join(missing)} not found beside it. Run the same command again.")
    config, pieces, vocabulary = (by_path[path] for path in needed)
    return Model(config, index.source.removesuffix(translator.CHECKPOINT), pieces, vocabulary)


def translate(
    launcher: Host, cluster: ClusterFacts, model: Model, sentences: Sequence[str], translator: ModuleType
) -> Translation:
    """Translate; the same sentences and model use the same folder on the data disk."""
    encoded = _pieces(launcher, cluster, model, "encode", sentences)
    name = hashlib.sha256("\n".join((model.checkpoint, *encoded)).encode()).hexdigest()[:12]
    folder = f"{cluster.mount_point}/translate/{name}"
    added = translator.infer_params(model.vocabulary, f"{folder}/source")
    config = (launcher.read(model.config) or "") + added
    pointed = {f"model/{name}": text for name, text in translator.pointer(model.checkpoint).items()}
    _place(launcher, folder, {"source": "".join(f"{line}\n" for line in encoded), "config.py": config, **pointed})
    argv = translator.inference(f"{folder}/config.py", f"{folder}/model", f"{folder}/translated")
    try:
        _in_container(launcher, cluster, argv, folder=RunFolder(cluster).plan.program_folder, timeout_s=TIMEOUT_S)
    except CommandError as error:
        raise RemoteError(
            f"translating with {model.checkpoint} on {launcher}: the program ended with {error.exit_code}.\n{error.tail}"
        ) from error
    translated = (launcher.read(f"{folder}/translated") or "").split("\n")[:-1]
    if len(translated) != len(sentences):
        raise RemoteError(
            f"translating with {model.checkpoint} on {launcher}: {count(len(sentences), 'line')} went in and {len(translated)} came "
            f"out; see {folder}. Run the same command again."
        )
    lines = _pieces(launcher, cluster, model, "decode", translated)
    return Translation(tuple(lines), sum(len(line.split()) > translator.MAX_LENGTH - 2 for line in encoded))


def _place(launcher: Host, folder: str, texts: Mapping[str, str]) -> None:
    launcher.run(("mkdir", "-p", f"{folder}/model"))
    for name, text in texts.items():
        launcher.put(f"{folder}/{name}", text)


def _pieces(launcher: Host, cluster: ClusterFacts, model: Model, direction: str, lines: Sequence[str]) -> list[str]:
    argv = ("python", "-c", PIECES.read_text(), direction, model.pieces)
    found = _in_container(launcher, cluster, argv, stdin="".join(f"{line}\n" for line in lines)).split("\n")[:-1]
    if len(found) != len(lines):
        raise RemoteError(f"{direction[:-1]}ing {count(len(lines), 'line')} on {launcher}: {len(found)} came back.")
    return found


def _in_container(  # noqa: PLR0913 - one call of docker exec
    launcher: Host,
    cluster: ClusterFacts,
    argv: Sequence[str],
    *,
    stdin: str = "",
    folder: str = "/",
    timeout_s: float = 600.0,
) -> str:
    marked = ("docker", "exec", "-i", "-e", "LC_ALL=C.UTF-8", "-e", "MICROCLUSTER_TOOL=translate", "-w", folder)
    return launcher.run((*marked, cluster.container.name, *argv), stdin=stdin, timeout_s=timeout_s).stdout


def place_fetched(launcher: Host, folder: Path, mount_point: str, config_file: str) -> tuple[RemoteFile, ...]:
    """Upload the files of a fetched run that translating needs, and return them.

    Raises:
        RemoteError: the folder is no fetched run.
    """
    manifest = _manifest(folder)
    there = f"{mount_point}/translate/models/{manifest['run']}"
    chosen = [file for file in manifest["files"] if file["what"] in NEEDED or file["path"] == config_file]
    files = tuple(
        RemoteFile(f"{there}/{file['path']}", *(file[key] for key in ("path", "size", "sha256", "what")))
        for file in chosen
    )
    for file in files:
        send(launcher, folder / file.path, file, file.source)
    return files


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        return json.loads((folder / MANIFEST).read_text())
    except (OSError, ValueError) as error:
        raise RemoteError(
            f"reading the fetched run in {folder}: it has no readable {MANIFEST}. Name a folder that `fab fetch` made, for "
            "example artifacts/local/<run>."
        ) from error
