"""Names of files on other machines, as this computer can hold them: escaped reversibly, always below one folder.

A name here is read back by ``urllib.parse.unquote_to_bytes``; one that was too long ends in a hash and is read from the manifest.
"""

import hashlib
import os
import re
from functools import lru_cache
from urllib.parse import quote

LONGEST_PART, KEPT_OF_PART = 240, 150
"""Bytes of one name: file systems take 255, and encrypted ones fewer."""
LONGEST_PATH, DEEPEST = 2000, 64
"""Bytes and parts of a path; the kernel takes 4,096 bytes with the folder before it."""
OURS = ("manifest.json", "report.html", "report.json")
"""Files that microcluster itself writes beside those of a run."""
READ_BY_OTHERS = (".git", ".hg")
"""Folder names whose files other programs run, at any depth; a file HEAD does it too: git takes its folder for a repository."""
PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
"""A path of which every part stays as it is, unless it is long or reserved."""
ESCAPED_ALREADY = re.compile("%(?=[0-9A-Fa-f]{2}|~)")


def local_name(path: str) -> str:
    """Return the relative path of a machine's file as one that stays below a folder here.

    Args:
        path: as `os.fsdecode` gives it.

    Raises:
        ValueError: it leads out of every folder, or is none.
    """
    if len(path) < 2 * DEEPEST and PLAIN.fullmatch(path) and path.lower() not in OURS and "HEAD" not in path:
        return path
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise ValueError(path)
    here = [
        _part(part, reserved=READ_BY_OTHERS if depth else READ_BY_OTHERS + OURS) for depth, part in enumerate(parts)
    ]
    name = "/".join(here)
    if len(name.encode()) > LONGEST_PATH or len(parts) > DEEPEST:
        return f"long%~/{_digest(path)}-{here[-1]}"
    return name


@lru_cache(1000)
def _part(part: str, reserved: tuple[str, ...]) -> str:
    escaped = ESCAPED_ALREADY.sub("%25", part)
    if not escaped.isprintable():
        escaped = "".join(c if c.isprintable() else quote(os.fsencode(c), safe="") for c in escaped)
    if part.lower() in reserved or part == "HEAD":
        escaped = f"%{ord(part[0]):02X}{part[1:]}"
    if len(escaped.encode()) > LONGEST_PART:
        kept = escaped.encode()[:KEPT_OF_PART].decode(errors="ignore")
        return f"{kept}%~{_digest(part)}"
    return escaped


def _digest(text: str) -> str:
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:32]
