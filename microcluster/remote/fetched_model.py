"""Uploads a fetched model to a launcher, whose own run may be another one."""

import json
from pathlib import Path
from typing import Any

from microcluster.remote.download_run import RemoteFile
from microcluster.remote.errors import RemoteError
from microcluster.remote.host import Host
from microcluster.remote.translation import MODELS

MANIFEST = "manifest.json"
NEEDED = (*MODELS, "vocabulary")


def place(launcher: Host, folder: Path, mount_point: str, config_file: str) -> tuple[RemoteFile, ...]:
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
        found = launcher.run(("sha256sum", file.source), accept=(0, 1)).stdout
        if found.split(" ")[0] != file.sha256:
            launcher.send(folder / file.path, file.source)
    return files


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        return json.loads((folder / MANIFEST).read_text())
    except (OSError, ValueError) as error:
        raise RemoteError(
            f"reading the fetched run in {folder}: it has no readable {MANIFEST}. Name a folder that `fab fetch` made, for "
            "example artifacts/local/<run>."
        ) from error
