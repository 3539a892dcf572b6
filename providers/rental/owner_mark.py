"""The owner mark: how everything that a stack rents is told from everything else in the account."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from core.home import Home
from core.home import owner_mark as mark_of_key
from providers.rental.errors import ProviderError

ZONE = "microcluster"
ANY_STACK = "unknown"
"""The stack of what bears a mark alone."""
_OWNER = r"(?P<stack>[A-Za-z0-9_.-]+)-(?P<mark>[0-9a-f]{8})"


@dataclass(frozen=True)
class Owner:
    """The stack and the mark that something carries."""

    stack: str
    mark: str

    def __str__(self) -> str:
        """Name both as they stand on what they own."""
        return owner(self.stack, self.mark)

    def has(self, other: "Owner") -> bool:
        """Tell whether what bears the other is this stack's; what has room for a mark alone is of any stack with it."""
        return self.mark == other.mark and other.stack in (self.stack, ANY_STACK)


def owner(stack: str, mark: str) -> str:
    """Name the stack and its mark, as they stand in domains, notes and names."""
    return f"{stack}-{mark}"


def notes(owner_name: str) -> str:
    """Begin the notes of everything that ``owner_name`` has."""
    return f"{ZONE} {owner_name}"


def owner_domain(stack: str, mark: str) -> str:
    """Name the domain of a stack's guests."""
    return f"{owner(stack, mark)}.{ZONE}"


def owner_label(stack: str, mark: str) -> str:
    """Name the key of a stack in the account's list of keys."""
    return notes(owner(stack, mark))


def owner_tags(stack: str, mark: str) -> tuple[str, ...]:
    """Return the tags of a stack's guests, for people who look through the account."""
    return (ZONE, f"mc-mark-{mark}", f"mc-stack-{stack}")


def owner_of(domain: str) -> str:
    """Read ``v100-1f3a9c42`` from ``v100-1f3a9c42.microcluster``."""
    return domain.removesuffix(f".{ZONE}")


def domain_is(domain: Any, mark: str) -> bool:
    """Tell whether a domain carries exactly this mark."""
    return re.fullmatch(rf"[A-Za-z0-9-]+-{re.escape(mark)}\.{ZONE}", str(domain or "")) is not None


def notes_are(text: Any, owner: Owner) -> bool:
    """Tell whether notes or a description begin with exactly this stack and mark."""
    return owner_in_notes(text) == owner


def guest_is(guest: Mapping[str, Any], owner: Owner) -> bool:
    """Tell whether a guest is this stack's: filters are checked again here, always.

    A mis-rooted filter is ignored by the service and returns every guest of the account. The stack counts as well as the
    mark: a copied folder of keys gives two stacks one mark.
    """
    return owner_in_domain(guest.get("domain")) == owner


def owner_in_domain(domain: Any) -> Owner | None:
    """Read whose guest it is from its domain; None for everything that no stack of microcluster has ordered."""
    return _owner(re.fullmatch(rf"{_OWNER}\.{ZONE}", str(domain or "")))


def owner_in_notes(text: Any) -> Owner | None:
    """Read whose it is from the beginning of notes or of a description."""
    return _owner(re.match(rf"{ZONE} {_OWNER}(?![0-9A-Za-z-])", str(text or "")))


def owner_in_tags(tags: Iterable[str]) -> Owner | None:
    """Read whose it is from tags, which alone carry the mark of what has a short name only."""
    told = {
        kind: value
        for kind, _, value in (tag.removeprefix("mc-").partition("-") for tag in tags if tag.startswith("mc-"))
    }
    return _owner(re.fullmatch(_OWNER, owner(told.get("stack", ""), told.get("mark", ""))))


def permit_import(stack: str, what: str, found: Owner | None) -> None:
    """Refuse to import what is not this stack's: from then on the stack would cancel it too.

    Args:
        what: the object with its id, for the sentence.
        found: the stack and mark that it carries.

    Raises:
        ProviderError: it carries no mark, or another stack's.
    """
    if found is None:
        raise ProviderError(
            f"importing {what}: it carries no mark of microcluster, so it is somebody else's. Leave it there."
        )
    if found != Owner(stack, _own_mark(stack) or found.mark):
        raise ProviderError(
            f"importing {what}: it does not carry the mark of stack {stack} but belongs to {found}. Import it there, "
            f"with that stack's folder of keys ({Home.of().keys / found.stack})."
        )


def _own_mark(stack: str) -> str | None:
    """Compute the stack's mark from its public key; None where no key was made."""
    try:
        return mark_of_key((Home.of().keys / stack / "id_ed25519.pub").read_text(encoding="utf-8"))
    except OSError:
        return None


def _owner(found: re.Match[str] | None) -> Owner | None:
    return Owner(found["stack"], found["mark"]) if found else None
