"""Only what bears the stack's own mark may be imported into its state."""

from __future__ import annotations

from microcluster.home import Home, owner_mark
from providers.rental import owner_mark as marks
from providers.rental.errors import ProviderError
from providers.rental.operation import Operation


def permit(op: Operation, what: str, owner: marks.Owner | None) -> None:
    """Refuse to import what is not this stack's: from then on the stack would cancel it too.

    Args:
        what: the object with its id, for the sentence.
        owner: the stack and mark that it carries.

    Raises:
        ProviderError: it carries no mark, or another stack's.
    """
    if owner is None:
        raise ProviderError(
            f"importing {what}: it carries no mark of microcluster, so it is somebody else's. Leave it there."
        )
    if owner.stack != op.stack or owner.mark != (own_mark(op.stack) or owner.mark):
        raise ProviderError(
            f"importing {what}: it does not carry the mark of stack {op.stack} but belongs to {owner}. Import it there, "
            f"with that stack's folder of keys ({Home.of().keys / owner.stack})."
        )


def own_mark(stack: str) -> str | None:
    """Compute the stack's mark from its public key; None where no key was made."""
    try:
        return owner_mark((Home.of().keys / stack / "id_ed25519.pub").read_text(encoding="utf-8"))
    except OSError:
        return None
