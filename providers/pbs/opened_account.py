"""A site with a queue, opened by a person's command."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from core.home import Home
from core.waiting import NotReadyError
from microcluster.remote.errors import RemoteError
from microcluster.remote.openssh import login_host
from providers.pbs.backend import Queue
from providers.rental.errors import ProviderError
from providers.rental.opened_account import OpenedAccount

EMULATED = "emulator-pbs"
"""The folder of the account that is emulated on this computer, as the emulator names it."""


def open_account(config_file: str | None, exported: Mapping[str, str]) -> OpenedAccount:
    """Open the account on the login host that the file names, and prove that it answers."""
    path = _named(config_file)
    with _reading("the login host"):
        backend = Queue(login_host(str(path), None))
        backend.identity()
    is_emulated = path.parent.name == EMULATED and path.is_relative_to(Home.of().root)
    return OpenedAccount(
        backend, is_emulated=is_emulated, reading=_reading, listed_charges=backend.charges, hidden=lambda: None
    )


def check_key(config_file: str | None, exported: Mapping[str, str]) -> None:
    """Raise ProviderError where no login host is named."""
    _named(config_file)


def _named(config_file: str | None) -> Path:
    if config_file is None or not Path(config_file).is_file():
        raise ProviderError(
            f"opening the site: {config_file or 'pbs:sshConfig of the stack file'} is no file. Write an OpenSSH configuration whose "
            "first Host is the login host, with HostName, User and IdentityFile."
        )
    return Path(config_file)


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """Turn a failure while ``what`` is read into a sentence for the person."""
    try:
        yield
    except (RemoteError, NotReadyError) as error:
        raise ProviderError(f"reading {what}: {error}") from error
