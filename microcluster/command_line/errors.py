"""Errors of a command: the sentence and the exit code of each."""

import traceback

from microcluster.accounts.shared.errors import AccountError, CallError, ProviderError
from microcluster.accounts.shared.key_file import CredentialsError
from microcluster.accounts.shared.redaction import redacted, without_secrets
from microcluster.config.stack import ConfigError
from microcluster.core.home import Home, KeysError
from microcluster.core.polling import NotReadyError
from microcluster.jobs.cluster_facts import ClusterFactsError
from microcluster.remote.errors import CommandError, LoginRefusedError, RemoteError, UnreachableError
from microcluster.setup.errors import FAILED, MISTAKE, UNKNOWN, CommandFailed, UserMistake, of_the_system
from microcluster.setup.secret_env import kept

AGAIN = "Run the same command again."
ENDS: tuple[tuple[type[Exception], int, str], ...] = (
    (UserMistake, MISTAKE, ""),
    (ConfigError, MISTAKE, ""),
    (KeysError, FAILED, ""),
    (
        UnreachableError,
        UNKNOWN,
        "Check that the machine is up and that adminCidrs contains this computer's address, then run the same command again.",
    ),
    (LoginRefusedError, UNKNOWN, "Check that nobody has changed the keys there, then run the same command again."),
    (CommandError, FAILED, f"\n{AGAIN} If that does not help, look at the machine: fab ssh"),
    (NotReadyError, FAILED, AGAIN),
    (CommandFailed, FAILED, ""),
    (RemoteError, FAILED, ""),
    (ClusterFactsError, FAILED, ""),
    (AccountError, UNKNOWN, ""),
    (CredentialsError, UNKNOWN, ""),
    (CallError, UNKNOWN, ""),
    (ProviderError, FAILED, ""),
)
"""The errors whose texts are full sentences, with their exit codes and what to do next; the first that fits counts."""
SENTENCES = tuple(kind for kind, _, _ in ENDS)


def sentence(text: str) -> str:
    """Return ``text`` with a capital letter."""
    return text[:1].upper() + text[1:]


def end_of(error: Exception, command: str) -> tuple[str, int]:
    """Return the sentence for an error, and the exit code."""
    for kind, code, next_step in ENDS:
        if isinstance(error, kind):
            return f"{sentence(str(error))} {next_step}".rstrip(), code
    if isinstance(error, ImportError):  # `make down` takes .venv as it is; it may be of an older version.
        return f".venv does not fit ({error}). `make setup` renews it, then run the same command again.", FAILED
    if isinstance(error, OSError):  # A full disk, a folder that may not be written to.
        return f"{command}: {of_the_system(error)}. Fix that, then run the same command again.", FAILED
    return unforeseen(command, error), FAILED


def unforeseen(command: str, error: Exception) -> str:
    """Write the traceback of ``error`` to a file, and return the message.

    Args:
        command: as it is typed, for example ``fab recover``.
    """
    path = Home.of().logs / f"{command.replace(' ', '-')}-error.log"
    record = f"the file {path}"
    text = without_secrets("".join(traceback.format_exception(error)), *kept().values())
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as unwritable:
        record = f"this message (the traceback could not be written: {of_the_system(unwritable)})"
    what = redacted(f"{type(error).__name__}: {error}", *kept().values())
    return (
        f"{command}: {what}. This is a mistake in the program, not yours. Rented machines stay and cost money: "
        f"`fab receipt` lists them. Report the mistake with {record}."
    )
