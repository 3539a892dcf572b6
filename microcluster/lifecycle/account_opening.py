"""Opens the account of a stack, by its name in the registry; its provider's code is imported only then."""

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType

from microcluster.accounts.registry import FORMER_NAMES
from microcluster.accounts.shared.errors import ProviderError
from microcluster.accounts.shared.opened_account import OpenedAccount
from microcluster.core.home import Owner
from microcluster.setup.secret_env import kept


def open_account(name: str, key_file: str | None) -> OpenedAccount:
    """Open an account and prove that it answers.

    Raises:
        ProviderError: with a sentence for the person.
    """
    opened = OpenedAccount(_provider(name).account_of(key_file, kept()))
    opened.identity()
    return opened


def why_no_key(name: str, key_file: str | None, exported: Mapping[str, str] | None = None) -> str | None:
    """Return why an account cannot be opened for want of a key, or None.

    Args:
        exported: the variables that whoever opens it has; by default those of this command.
    """
    try:
        _provider(name).account_of(key_file, kept() if exported is None else exported)
    except ProviderError as missing:
        return str(missing)
    return None


def drive_password(name: str, key_file: str | None, drive_id: str, owner: Owner) -> str:
    """Read the password of a stack's shared drive; it is kept nowhere on this computer.

    Raises:
        ProviderError: with a sentence for the person.
    """
    return _provider(name).drive_password(key_file, kept(), drive_id, owner)


def _provider(name: str) -> ModuleType:
    return import_module(f"microcluster.accounts.{FORMER_NAMES.get(name, name)}.account")
