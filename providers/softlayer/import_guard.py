"""Whether something that exists may be taken into a stack's state: its own may, another stack's only when told so."""

from __future__ import annotations

from microcluster.home import Home, owner_mark
from providers.softlayer import owner_mark as marks
from providers.softlayer.errors import ProviderError
from providers.softlayer.session import Operation


def permit(op: Operation, what: str, owner: marks.Owner | None) -> None:
    """Refuse an import that a person did not ask for in so many words; an import changes nothing in the account.

    Args:
        what: the object with its id, for the sentence.
        owner: the stack and mark that it carries.

    Raises:
        ProviderError: it carries no mark, or another one than this stack's and than ``softlayer:importMark``.
    """
    if owner is None:
        raise ProviderError(
            f"importing {what}: it carries no mark of microcluster, so it is somebody else's. Leave it there."
        )
    if owner.mark == op.session.import_mark or (
        owner.stack == op.stack and owner.mark == (own_mark(op.stack) or owner.mark)
    ):
        return
    raise ProviderError(
        f"importing {what}: it does not carry the mark of stack {op.stack} but belongs to {owner}. If you mean it, run "
        f"'pulumi config set softlayer:importMark {owner.mark}' first; from then on this stack cancels it too."
    )


def own_mark(stack: str) -> str | None:
    """Compute the stack's mark from its public key; None where no key was made."""
    try:
        return owner_mark((Home.of().keys / stack / "id_ed25519.pub").read_text(encoding="utf-8"))
    except OSError:
        return None
