"""Read the German catalogs and the licence out of one Debian package file, without installing it."""

import gettext
import hashlib
import io
import re
import subprocess
import tarfile
from pathlib import Path
from typing import Any

CATALOG = re.compile(r"(^|/)de/(LC_MESSAGES/)?[^/]+\.mo$")
COPYRIGHT = re.compile(r"^\./usr/share/doc/[^/]+/copyright$")
CONTEXT_END = "\x04"  # gettext writes "context EOT message".


class NoLicenceError(Exception):
    """A package says nothing about its licence, so its texts cannot be used."""


def read_package(deb: Path) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return the entry of LICENSES.json for ``deb``, and the messages of its catalogs in a stable order."""
    messages: set[tuple[str, str]] = set()
    notice: tuple[str, str] | None = None
    with tarfile.open(fileobj=io.BytesIO(_dpkg("--fsys-tarfile", deb))) as archive:
        for member in archive:
            if member.isfile() and CATALOG.search(member.name):
                messages |= read_catalog(archive.extractfile(member).read())
            elif member.isfile() and COPYRIGHT.match(member.name):
                notice = member.name, archive.extractfile(member).read().decode("utf-8", "replace")
    package, version, source = (_field(deb, name) for name in ("Package", "Version", "Source"))
    if notice is None:
        raise NoLicenceError(
            f"Reading the licence of package {package}: it has no copyright file of its own. Leave it out."
        )
    path, text = notice
    record = {
        "package": package,
        "version": version,
        "source": source.split(" ", maxsplit=1)[0] or package,
        "licences": licence_names(text),
        "copyright_file": path.removeprefix("."),
        "copyright_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "copyright_excerpt": "\n".join(text.splitlines()[:12]),
        "messages": len(messages),
    }
    return record, sorted(messages)


def read_catalog(content: bytes) -> set[tuple[str, str]]:
    """The English and German texts of one compiled catalog, plural forms by their singular."""
    catalog = gettext.GNUTranslations(io.BytesIO(content))._catalog
    pairs = set()
    for key, german in catalog.items():
        message, form = key if isinstance(key, tuple) else (key, 0)
        if message and german and form == 0:
            pairs.add((message.rpartition(CONTEXT_END)[2], german))
    return pairs


def licence_names(text: str) -> tuple[str, ...]:
    """The short names of a machine-readable copyright file; empty for one in prose."""
    return tuple(sorted(set(re.findall(r"^License:[ \t]*(\S.*?)\s*$", text, flags=re.MULTILINE))))


def _field(deb: Path, name: str) -> str:
    return _dpkg("--field", deb, name).decode().strip()


def _dpkg(option: str, deb: Path, *words: str) -> bytes:
    return subprocess.run(["dpkg-deb", option, deb, *words], capture_output=True, check=True).stdout
