"""Translating sentences with a model of a run, or of a fetched one, in the training container of the launcher: pieces, the program, sentences."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import agent
from agent import IN_CONTAINER
from microcluster.core.local_name import local_name
from microcluster.core.plain_text import count
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.job_section import Section
from microcluster.jobs.run_spec import RunFolder, sent_folder
from microcluster.remote.errors import RemoteError
from microcluster.remote.file_transfer import send
from microcluster.remote.host import ANSWER_BYTES, Host
from microcluster.remote.inventory import RemoteFile

PIECES = Path(agent.__file__).with_name("data") / "pieces.py"
TIMEOUT_S = 4 * 3600.0
LONGEST_BYTES = 16 * ANSWER_BYTES
"""Limit on the translation of the longest text."""
WRITE = 'mkdir -p "${0%/*}" && cat > "$0"'
MODELS = ("best model", "newest checkpoint")
NEEDED = (*MODELS, "vocabulary")


@dataclass(frozen=True)
class Model:
    """A model on the launcher; ``checkpoint`` is a path without suffix."""

    checkpoint: str
    config: str
    pieces: str
    vocabulary: str


def model_of(files: Sequence[RemoteFile], job: Section) -> Model:
    """Return the best model among a run's files, else its newest checkpoint.

    Raises:
        RemoteError: there is none, or a file that it needs is missing.
    """
    translator, seen = job.translator, f"/{IN_CONTAINER}/"
    files = [replace(file, source=file.source.replace(seen, "/", 1)) for file in files]  # As the container knows them.
    sources = {file.path: file.source for file in files}
    models = [file for file in files if file.what in MODELS and file.path.endswith(translator.CHECKPOINT)]
    if not models:
        raise RemoteError("choosing a model: the run has no whole checkpoint yet. Wait for the first one: fab watch")
    model = min(models, key=lambda file: MODELS.index(file.what))
    needed = (job.config_file, translator.PIECES, translator.VOCABULARY)
    missing = [path for path in needed if path not in sources]
    if missing:
        raise RemoteError(f"choosing a model: {', '.join(missing)} not found beside it. Run the same command again.")
    return Model(model.source.removesuffix(translator.CHECKPOINT), *map(sources.get, needed))


def translate(
    launcher: Host, cluster: ClusterFacts, model: Model, sentences: Sequence[str], translator: ModuleType
) -> tuple[list[str], int]:
    """Return the translated lines, and how many sources were cut because they were too long.

    The same sentences and model use the same folder on the data disk.
    """
    encoded = _pieces(launcher, cluster, model, "encode", sentences)
    name = hashlib.sha256("\n".join((model.checkpoint, *encoded)).encode()).hexdigest()[:12]
    folder = f"{cluster.mount_point}/translate/{name}"
    config = (launcher.read(model.config) or "") + translator.infer_params(model.vocabulary, f"{folder}/source")
    files = {"source": "".join(f"{line}\n" for line in encoded), "config.py": config}
    files |= {f"model/{name}": text for name, text in translator.pointer(model.checkpoint).items()}
    for name, text in files.items():  # By the container, which alone may write to what it sees of the disk.
        _in_container(launcher, cluster, ("sh", "-c", WRITE, f"{folder}/{name}"), stdin=text)
    argv = translator.inference(f"{folder}/config.py", f"{folder}/model", f"{folder}/translated")
    _in_container(launcher, cluster, argv)
    translated = _in_container(launcher, cluster, ("cat", f"{folder}/translated")).split("\n")[:-1]
    if len(translated) != len(sentences):
        raise RemoteError(
            f"translating with {model.checkpoint} on {launcher}: {count(len(sentences), 'line')} went in and {len(translated)} came "
            f"out; see {folder}. Run the same command again."
        )
    cut = sum(len(line.split()) > translator.MAX_LENGTH - 2 for line in encoded)
    return _pieces(launcher, cluster, model, "decode", translated), cut


def _pieces(launcher: Host, cluster: ClusterFacts, model: Model, direction: str, lines: Sequence[str]) -> list[str]:
    argv = ("python", "-c", PIECES.read_text(), direction, model.pieces)
    pieces = _in_container(launcher, cluster, argv, stdin="".join(f"{line}\n" for line in lines)).split("\n")[:-1]
    if len(pieces) != len(lines):
        raise RemoteError(
            f"{direction[:-1]}ing {count(len(lines), 'line')} on {launcher}: {len(pieces)} came back. Run the same command again."
        )
    return pieces


def _in_container(launcher: Host, cluster: ClusterFacts, argv: Sequence[str], stdin: str = "") -> str:
    where = ("-w", RunFolder(cluster).document.program.folder, cluster.container.name)
    marked = ("docker", "exec", "-i", "-e", "LC_ALL=C.UTF-8", "-e", "MICROCLUSTER_TOOL=translate", *where)
    return launcher.run((*marked, *argv), stdin=stdin, timeout_s=TIMEOUT_S, answer_bytes=LONGEST_BYTES).stdout


def place_fetched(
    launcher: Host, folder: Path, manifest: Mapping[str, Any], mount_point: str, config_file: str
) -> list[RemoteFile]:
    """Upload the files of a fetched run that translating needs, and return them."""
    there = sent_folder(f"models/{manifest['run']}", mount_point)
    placed = []
    for one in manifest["files"]:
        if one["what"] in NEEDED or one["path"] == config_file:
            # Wherever the folder comes from, it names files in it and no others.
            file = RemoteFile(**{**one, "source": f"{there}/{one['path']}", "here": local_name(one["path"])})
            send(launcher, folder / file.local, file, file.source)
            placed.append(file)
    return placed
