"""Paperspace's account, opened by a person's command."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from providers.paperspace import account as accounts
from providers.paperspace import bills, credentials, names
from providers.paperspace.account import DRIVES, Account
from providers.paperspace.api import ApiError
from providers.paperspace.backend import Paperspace
from providers.rental.errors import AccountError, ProviderError
from providers.rental.opened_account import OpenedAccount
from providers.rental.owner_mark import Owner


def open_account(key_file: str | None, exported: Mapping[str, str]) -> OpenedAccount:
    """Open the account that the key belongs to, and prove that it answers."""
    account = accounts.open_account(key_file, exported)
    return OpenedAccount(
        Paperspace(account),
        is_emulated=account.api.credentials.is_local,
        reading=partial(_reading, account),
        listed_charges=partial(bills.charges, account),
        hidden=partial(_hidden, account),
    )


def check_key(key_file: str | None, exported: Mapping[str, str]) -> None:
    """Raise ProviderError where there is no key that could open the account."""
    credentials.load(key_file, exported)


def drive_password(key_file: str | None, exported: Mapping[str, str], drive_id: str, owner: Owner) -> str:
    """Read the password of a drive of this stack, at the moment of mounting; it is kept nowhere."""
    return read_drive_password(accounts.open_account(key_file, exported), drive_id, owner)


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


@contextmanager
def _reading(account: Account, what: str) -> Iterator[None]:
    """Turn a fault of the API while ``what`` is read into a sentence for the person."""
    try:
        yield
    except ApiError as error:
        raise AccountError(
            f"reading {what} at {account.api.credentials.endpoint}: {error.text} ({error.code}). {error.next_step}."
        ) from error


def _hidden(account: Account) -> str | None:
    """Return what this user may not see, as a sentence, or None."""
    try:
        account.check_sees_all("reading the account")
    except ProviderError as hidden:
        return str(hidden)
    return None
