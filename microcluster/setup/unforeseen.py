"""Turns an unexpected error into a sentence, and writes its traceback to a file."""

import traceback

from core.home import Home
from microcluster.setup.errors import of_the_system
from microcluster.setup.secret_env import kept
from providers.rental.redaction import redacted, without_secrets


def sentence(command: str, error: Exception) -> str:
    """Write the traceback of ``error`` to a file, and return the message.

    Args:
        command: as it is typed, for example ``fab recover``.
    """
    what = redacted(f"{type(error).__name__}: {error}", *kept().values())
    return (
        f"{command}: {what}. This is a mistake in the program, not yours. Rented machines stay and cost money: "
        f"`fab receipt` lists them. Report the mistake with {_record(command, error)}."
    )


def _record(command: str, error: Exception) -> str:
    path = Home.of().logs / f"{command.replace(' ', '-')}-error.log"
    text = without_secrets("".join(traceback.format_exception(error)), *kept().values())
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as unwritable:
        return f"this message (the traceback could not be written: {of_the_system(unwritable)})"
    return f"the file {path}"
