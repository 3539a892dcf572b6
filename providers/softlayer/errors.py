"""What can go wrong in an operation on a resource, as sentences a person can act on."""

from __future__ import annotations

import re
from typing import Any

from microcluster.plain_text import lines
from providers.softlayer import refusals

NOT_SENT = "not sent"
"""The code of a call that never left."""
NOT_TRUSTED = "not trusted"
"""The code of a call that never left because nobody whom we trust has signed the endpoint's certificate."""


class ProviderError(Exception):
    """An operation failed; the text is a whole sentence: what was done, to what, what happened, what next."""

    def __init__(self, text: str) -> None:
        super().__init__(lines(text))  # It may quote the account, and the engine prints it as it is.


class Unfinished(ProviderError):
    """Something was ordered, has an id and is not ready: reported as a partial failure, so that the id reaches the state."""

    def __init__(
        self, resource_id: str, outputs: dict[str, Any], reason: str, inputs: dict[str, Any] | None = None
    ) -> None:
        super().__init__(reason)
        self.resource_id = resource_id
        self.outputs = outputs
        self.inputs = inputs


class WaitError(ProviderError):
    """A wait ended without what it waited for: its time was up, or the engine asked to stop."""


class ApiError(ProviderError):
    """The API refused a call or did not answer it."""

    def __init__(self, call: str, code: str, text: str) -> None:
        super().__init__(f"{call}: {text} ({code})")
        self.code = code
        self.text = text

    @property
    def is_gone(self) -> bool:
        """Tell whether the object does not exist; REST loses the code and keeps the text."""
        return "ObjectNotFound" in self.code or "unable to find object" in self.text.lower()

    @property
    def is_unready(self) -> bool:
        """Tell whether the object is too fresh to be shown."""
        return any(word in self.code for word in ("NotImplemented", "NotReady"))

    @property
    def is_weather(self) -> bool:
        """Tell whether the same call may work in a moment."""
        if self.is_rate_limit:
            return True
        is_lost = self.code in ("no answer", "unreadable answer", "-32603", "-32500", "-32400", "-32600")
        return is_lost or self.code.startswith("HTTP 5") or self.text.strip().lower().startswith("internal error")

    @property
    def is_rate_limit(self) -> bool:
        """Tell whether there were too many calls; the call was turned away before it did anything."""
        return self.code in ("429", "HTTP 429", NOT_SENT) or "RateLimitExceeded" in f"{self.code} {self.text}"

    @property
    def is_ambiguous(self) -> bool:
        """Tell whether the call may have been carried out although no answer says so: only known refusals are certain.

        A fault that nobody knows is ambiguous and no weather: what it was about is looked for, and not sent again.
        """
        return not self.is_rate_limit and (self.is_weather or not refusals.is_known(self.code, self.text))

    @property
    def is_forbidden(self) -> bool:
        """Tell whether this user may not do it: no repetition helps."""
        return re.search(r"access denied|permission|not authorized", self.text.lower()) is not None

    @property
    def is_no_room(self) -> bool:
        """Tell whether the datacenter is full; the fault had another name until about 2018."""
        return re.search(r"insufficient ?(capacity|resources)", f"{self.code} {self.text}".lower()) is not None

    @property
    def is_unauthorised(self) -> bool:
        """Tell whether the account refused the key itself."""
        known = ("invalid api token", "invalid username", "invalid credential", "token has expired", "api key")
        return self.code in ("401", "HTTP 401") or any(words in self.text.lower() for words in known)


class UnnamedError(ApiError):
    """An order was accepted: its receipt has its number, and does not name what it makes."""

    def __init__(self, call: str, order_id: str) -> None:
        super().__init__(call, "unreadable answer", f"order {order_id} was accepted, its receipt names nothing else")
        self.order_id = order_id
