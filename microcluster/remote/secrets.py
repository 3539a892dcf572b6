"""Secrets of the user's program on the launcher: each in a file that nobody else reads, in memory where there is root, sent on standard input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from microcluster.remote.host import Host


def ensure_secrets(launcher: Host, folder: str, names: Sequence[str], given: Mapping[str, str] | None) -> None:
    """Let the launcher hold exactly those of ``names`` that were given now; a program that takes none leaves no trace."""
    if not names:
        return
    launcher.run(("mkdir", "-p", "-m", "700", folder))
    for name in names:
        value = (given or {}).get(name, "").strip()
        if value:
            launcher.put(f"{folder}/{name}", value, "0600")
        else:
            launcher.run(("rm", "-f", f"{folder}/{name}"))
