"""What can become of a state file: cut off, emptied, an older one, gone."""

import enum
from pathlib import Path
from random import Random


class Damage(enum.StrEnum):
    """The four ways."""

    TRUNCATED = "truncated"
    EMPTIED = "emptied"
    STALE = "stale"
    GONE = "gone"


def inflict(damage: Damage, path: Path, backup: Path, chance: Random) -> None:
    """Damage the file at ``path``; where there is no older one beside it, a stale state is an absent one."""
    content = path.read_bytes() if path.exists() else b""
    if damage is Damage.TRUNCATED and content:
        path.write_bytes(content[: chance.randrange(1, len(content))])
    elif damage is Damage.EMPTIED:
        path.write_bytes(b"")
    elif damage is Damage.STALE and backup.exists():
        path.write_bytes(backup.read_bytes())
    else:
        path.unlink(missing_ok=True)
