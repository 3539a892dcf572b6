"""Errors of an operation on a resource, as sentences a person can act on."""

from typing import Any

from microcluster.core.plain_text import lines

NOT_SENT = "not sent"
"""The code of a call that never left."""
NOT_TRUSTED = "not trusted"
"""The code of a call that never left because nobody whom we trust has signed the endpoint's certificate."""
NO_ANSWER = "no answer"
UNREADABLE = "unreadable answer"


class ProviderError(Exception):
    """An operation failed; the text is a whole sentence: what was done, to what, what happened, what next."""

    def __init__(self, text: str) -> None:
        super().__init__(lines(text))  # It may quote the account, and the engine prints it as it is.


class PartialFailure(ProviderError):
    """A resource was ordered, has an id and is not ready; raised like this its id reaches Pulumi's state."""

    def __init__(
        self, resource_id: str, outputs: dict[str, Any], reason: str, inputs: dict[str, Any] | None = None
    ) -> None:
        super().__init__(reason)
        self.resource_id = resource_id
        self.outputs = outputs
        self.inputs = inputs


class WaitError(ProviderError):
    """A wait ended without what it waited for: its time was up, or the engine asked to stop."""


class EngineGoneError(ProviderError):
    """The engine does not live any more, so nothing new may be ordered."""


class AccountError(ProviderError):
    """The account cannot be read: no key, a wrong one, or nobody answers."""


class CallError(ProviderError):
    """The account refused a call or did not answer it; a vendor's own error knows which of the two."""

    is_gone = False
    """Whether the object does not exist."""
    is_refusal = False
    """Whether the call was certainly not carried out; a fault that nobody knows is none."""
    is_transient = False
    """Whether the same call may work in a moment."""
    is_forbidden = False
    """Whether this user may not do it."""
    is_rate_limit = False
    """Whether there were too many calls; the call was turned away before it did anything."""
    is_no_room = False
    """Whether there is no room for it now, where it was asked for."""
    is_unauthorised = False
    """Whether the account refused the key itself."""

    grant = ""
    """The command or the place where a person grants what this user may not do."""
    when_forbidden = ""
    """Advice to a person whose user may not order it, as a sentence."""

    def __init__(self, call: str, code: str, text: str, status: int = 0) -> None:
        """Args:
        status: of the HTTP answer; 0 where there was none, or it says nothing.
        """
        super().__init__(f"{call}: {text} ({code})")
        self.code, self.text, self.status = code, text, status

    @property
    def next_step(self) -> str:
        """Say what a person does after this error."""
        return "It is gone: run 'pulumi up --refresh'" if self.is_gone else "Run the command again"

    @property
    def advice(self) -> str | None:
        """Say what a person does after an order was refused, if there is more to say than that the stack file is wrong."""
        if self.is_gone:
            return "Something that it names is gone: run 'pulumi up --refresh'."
        return self.when_forbidden if self.is_forbidden else None


class OrderWithoutId(CallError):
    """An order was accepted: its receipt has its number, and does not name what it makes."""

    def __init__(self, call: str, order_id: str) -> None:
        super().__init__(call, UNREADABLE, f"order {order_id} was accepted, its receipt names nothing else")
        self.order_id = order_id


def unreadable(asked: str, error: CallError, source: str, start: str | None) -> str:
    """Say why an account cannot be read, and what a person does about it.

    Args:
        asked: what was done, and where.
        source: where the key may stand.
        start: the command that starts the account, if it is one on this computer.
    """
    if error.is_unauthorised:
        return f"{asked}: the API refuses this key ({error.code}: {error.text}). Check {source}."
    if error.code == NOT_TRUSTED:
        return (
            f"{asked}: its certificate is not signed by an authority that is trusted here, so that the key was not sent. "
            "Name the authority's file as 'verify' in the file of the key, or correct endpoint_url."
        )
    if error.code == NO_ANSWER:
        local = f"If this is the local account, start it with '{start}'." if start else ""
        return f"{asked}: nobody answers. {local or 'Check the network and run the command again.'}"
    return f"{asked}: {error.text} ({error.code}). Run the command again."
