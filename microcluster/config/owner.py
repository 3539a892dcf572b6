"""The owner of a stack: its ssh keys and its mark."""

from dataclasses import dataclass

from core.home import Home, owner_mark
from microcluster.config.errors import ConfigError


@dataclass(frozen=True)
class Owner:
    """The ssh keys of a stack and the mark derived from the public key."""

    mark: str
    public_key: str
    key_file: str
    rank_key_file: str


def owner(stack: str) -> Owner:
    """Return the owner of a stack; ``make setup`` makes its keys."""
    folder = Home.of().keys / stack
    key_file = folder / "id_ed25519"
    try:
        public_key = " ".join(key_file.with_suffix(".pub").read_text().split()[:2])
    except FileNotFoundError as error:
        raise ConfigError(
            f"stack {stack} has no ssh key in {folder}, so its orders cannot be marked. Run: make setup"
        ) from error
    return Owner(owner_mark(public_key), public_key, str(key_file), str(folder / "rank_ed25519"))
