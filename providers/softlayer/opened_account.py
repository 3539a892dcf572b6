"""SoftLayer's account, opened by a person's command."""

from collections.abc import Mapping
from functools import partial

from providers.rental.opened_account import OpenedAccount
from providers.softlayer import account as accounts
from providers.softlayer import billing, credentials
from providers.softlayer.backend import SoftLayer
from providers.softlayer.errors import reading


def open_account(key_file: str | None, exported: Mapping[str, str]) -> OpenedAccount:
    """Open the account that the key belongs to, and prove that it answers."""
    account = accounts.open_account(key_file, exported)
    return OpenedAccount(
        SoftLayer(account),
        is_emulated=account.api.credentials.is_local,
        reading=partial(reading, account),
        listed_charges=partial(billing.charges_listed, account),
        hidden=partial(accounts.unseen, account),
    )


def check_key(key_file: str | None, exported: Mapping[str, str]) -> None:
    """Raise ProviderError where there is no key that could open the account."""
    credentials.load(key_file, exported)
