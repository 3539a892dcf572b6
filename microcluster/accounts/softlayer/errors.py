"""SoftLayer's answers to a call that failed: gone, not ready, transient, refused for certain, or nobody knows."""

import re

from microcluster.accounts.shared.errors import NO_ANSWER, NOT_SENT, CallError

VENDOR = "the vendor's documents and the exceptions that users of its clients report"
CLIENT = "exceptions.py and transports/xmlrpc.py of the official client 6.2.9"
HTTP = "RFC 9110, section 15.5: the server did not or will not process the request"

# Answers after which an order was certainly not carried out, each with its source; every other fault leaves that open.
KNOWN_REFUSALS = {
    "SoftLayer_Exception_InvalidValue": VENDOR,
    "SoftLayer_Exception_MissingCreationProperty": VENDOR,
    "SoftLayer_Exception_Order": VENDOR,
    "SoftLayer_Exception_Order_InvalidData": VENDOR,
    "SoftLayer_Exception_Order_InvalidLocation": VENDOR,
    "SoftLayer_Exception_InsufficientCapacity": "softlayer/softlayer-python, issue 919",
    "SoftLayer_Exception_Virtual_Host_Pool_InsufficientResources": "the same before 2018, issue 919",
    "SoftLayer_Exception_WebService_RateLimitExceeded": "softlayer/softlayer-python, issue 884",
    "SoftLayer_Exception_WebService_BadRequest": VENDOR,
    "SoftLayer_Exception_WebService_ObjectMask": "softlayer/softlayer-api-php-client, issue 14",
    "SoftLayer_Exception_Network_Storage_Group_MassAccessControlModification": VENDOR,
    "SoftLayer_Exception_EncryptedToken_Expired": VENDOR,
    # Requests that no method ever saw.
    "not trusted": "RFC 8446, section 4.4: the certificate comes before anything that a client sends",
    "-32700": CLIENT,
    "-32701": CLIENT,
    "-32702": CLIENT,
    "-32601": CLIENT,
    "-32602": CLIENT,
    **{f"{place}{status}": HTTP for status in (400, 401, 403, 404, 405) for place in ("", "HTTP ")},
}
KNOWN_TEXTS = {
    # `SoftLayer_Exception_Public` is the code of much else as well, and REST loses every code.
    "access denied": VENDOR,
    "invalid username/password": CLIENT,
    "invalid api token": "CLI/core.py of the official client 6.2.9",
    "the token has expired": VENDOR,
}


class ApiError(CallError):
    """The API refused a call or did not answer it."""

    when_forbidden = "Have this user granted the right, or use another one, and run the command again."

    @property
    def is_gone(self) -> bool:
        """Tell whether the object does not exist; REST loses the code and keeps the text."""
        return "ObjectNotFound" in self.code or "unable to find object" in self.text.lower()

    @property
    def is_unready(self) -> bool:
        """Tell whether the object is too fresh to be shown."""
        return any(word in self.code for word in ("NotImplemented", "NotReady"))

    @property
    def is_transient(self) -> bool:
        """Tell whether the same call may work in a moment."""
        if self.is_rate_limit:
            return True
        is_lost = self.code in (NO_ANSWER, "unreadable answer", "-32603", "-32500", "-32400", "-32600")
        return is_lost or self.code.startswith("HTTP 5") or self.text.strip().lower().startswith("internal error")

    @property
    def is_rate_limit(self) -> bool:
        """Tell whether there were too many calls; the call was turned away before it did anything."""
        return self.code in ("429", "HTTP 429", NOT_SENT) or "RateLimitExceeded" in f"{self.code} {self.text}"

    @property
    def is_refusal(self) -> bool:
        """Tell whether the call was certainly not carried out: only known refusals say so.

        A fault that nobody knows is neither that nor transient: what it was about is looked for, and not sent again. Nor is
        "not found" or "not ready", which the service says of what an order has just made as well.
        """
        if self.is_rate_limit:
            return True
        if self.is_transient or self.is_gone or self.is_unready:
            return False
        return self.code in KNOWN_REFUSALS or self.text.strip().lower().startswith(tuple(KNOWN_TEXTS))

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
