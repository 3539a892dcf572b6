"""Replaces a broken state file by the newest readable copy."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from microcluster.home import Home
from microcluster.lifecycle import pulumi_state


def repair(stack: str, home: Home) -> list[str]:
    """Make the state of ``stack`` readable; return what was done, one sentence each."""
    try:
        if pulumi_state.read(stack, home) is not None:
            return []
        why = "it is gone"
    except pulumi_state.BrokenStateError as broken:
        why = str(broken)
    path = pulumi_state.path_of(stack, home)
    done = [f"state of stack {stack}: {why}"]
    if path.exists():
        aside = path.with_name(f"{path.name}.broken-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}")
        os.replace(path, aside)
        done.append(f"set aside as {aside.name}")
    copy = newest_readable(stack, home)
    if copy:
        _put(copy, path)
        return [*done, f"restored from {copy.name}, which the refresh compares with the account"]
    pulumi_state.ensure((stack,), home)
    return [*done, "no copy can be read; began an empty state: resources in the account are found by their mark"]


def newest_readable(stack: str, home: Home) -> Path | None:
    """Return the newest readable copy, or None."""
    for copy in pulumi_state.older_copies(stack, home):
        try:
            pulumi_state.parse(copy.read_bytes())
        except (OSError, pulumi_state.BrokenStateError):
            continue
        return copy
    return None


def _put(copy: Path, path: Path) -> None:
    """Copy the whole file or nothing; the backup stays."""
    scratch = path.with_name(f".{path.name}.restored")
    shutil.copyfile(copy, scratch)
    with scratch.open("rb") as file:
        os.fsync(file.fileno())
    os.replace(scratch, path)
