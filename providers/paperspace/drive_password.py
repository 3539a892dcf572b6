"""Reads a drive's password from the account at the moment of mounting; it is kept nowhere."""

from __future__ import annotations

from providers.paperspace import names
from providers.paperspace.account import DRIVES, Account
from providers.rental.errors import ProviderError
from providers.rental.owner_mark import Owner


def read_drive_password(account: Account, drive_id: str, owner: Owner) -> str:
    """Read the password of a drive of this stack.

    Raises:
        ProviderError: the drive is gone, or not this stack's, or its password cannot stand in a file of credentials.
    """
    found = account.api.find(DRIVES, drive_id)
    doing = f"reading the password of drive {drive_id}"
    if found is None:
        raise ProviderError(f"{doing}: the account does not know it. Run 'make up', which orders what is missing.")
    if names.owner_of(found.get("name")) != owner:
        raise ProviderError(
            f"{doing}: its name does not carry {owner}, so it is not this stack's. Nothing was mounted."
        )
    password = found.get("password")
    if not isinstance(password, str) or not password or not password.isprintable():
        raise ProviderError(f"{doing}: the account shows none that a file of credentials can hold. Ask the vendor.")
    return password
