"""Paperspace's account, opened by a person's command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from providers.paperspace import account as accounts
from providers.paperspace import bills, credentials
from providers.paperspace.account import Account, AccountError
from providers.paperspace.backend import Paperspace
from providers.paperspace.drive_password import read_drive_password
from providers.paperspace.errors import ApiError
from providers.rental.errors import ProviderError
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
    """Read the password of a drive of this stack."""
    return read_drive_password(accounts.open_account(key_file, exported), drive_id, owner)


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
