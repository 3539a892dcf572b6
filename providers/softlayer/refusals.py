"""Answers after which a call was certainly not carried out, each with its source; every other fault leaves that open."""

from __future__ import annotations

VENDOR = "the vendor's documents and the exceptions that users of its clients report"
CLIENT = "exceptions.py and transports/xmlrpc.py of the official client 6.2.9"
HTTP = "RFC 9110, section 15.5: the server did not or will not process the request"

CODES = {
    "SoftLayer_Exception_ObjectNotFound": VENDOR,
    "SoftLayer_Exception_InvalidValue": VENDOR,
    "SoftLayer_Exception_MissingCreationProperty": VENDOR,
    "SoftLayer_Exception_NotImplemented": VENDOR,
    "SoftLayer_Exception_NotReady": VENDOR,
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
TEXTS = {
    # `SoftLayer_Exception_Public` is the code of much else as well, and REST loses every code.
    "unable to find object with id": VENDOR,
    "access denied": VENDOR,
    "invalid username/password": CLIENT,
    "invalid api token": "CLI/core.py of the official client 6.2.9",
    "the token has expired": VENDOR,
}


def is_known(code: str, text: str) -> bool:
    """Tell whether a fault is one of these."""
    said = text.strip().lower()
    return code in CODES or any(said.startswith(known) for known in TEXTS)
