"""Faults: the API's refusals, with SoftLayer's own codes and a text that names the object."""

from emulator.shared.api import Refusal

PUBLIC = "SoftLayer_Exception_Public"
NOT_FOUND = "SoftLayer_Exception_ObjectNotFound"
INVALID_VALUE = "SoftLayer_Exception_InvalidValue"
MISSING_PROPERTY = "SoftLayer_Exception_MissingCreationProperty"
ORDER_INVALID = "SoftLayer_Exception_Order_InvalidData"
ORDER_LOCATION = "SoftLayer_Exception_Order_InvalidLocation"
OBJECT_MASK = "SoftLayer_Exception_WebService_ObjectMask"
NO_CAPACITY = "SoftLayer_Exception_InsufficientCapacity"
NO_CAPACITY_OLD = "SoftLayer_Exception_Virtual_Host_Pool_InsufficientResources"  # what it was called until about 2018
RATE_LIMIT = "SoftLayer_Exception_WebService_RateLimitExceeded"
BAD_REQUEST = "SoftLayer_Exception_WebService_BadRequest"
METHOD_NOT_FOUND = "-32601"
INVALID_PARAMETERS = "-32602"
NOT_WELL_FORMED = "-32700"

# REST has no fault codes of its own; everything not listed is a 500, as on the real service.
HTTP_STATUS = {
    NOT_FOUND: 404,
    BAD_REQUEST: 400,
    RATE_LIMIT: 429,
    METHOD_NOT_FOUND: 404,
    INVALID_PARAMETERS: 400,
    NOT_WELL_FORMED: 400,
}
SERVICE_FAULTS = {
    "rate_limit": (RATE_LIMIT, "Rate limit exceeded. Please reduce the number of requests per second."),
    "internal_error": ("-32603", "Internal Error"),
    "application_error": ("-32500", "Application Error"),
    "system_error": ("-32400", "Remote System Error"),
    "public_error": (PUBLIC, "Internal Error"),
}
"""Code and text of what the service answers whatever the call is about."""


class Fault(Refusal):
    """A refusal, as SoftLayer words it."""

    def __init__(self, code: str, text: str, status: int | None = None, *, not_emulated: str = "") -> None:
        super().__init__(f"{code}: {text}")
        self.code = code
        self.text = text
        self.status = status or HTTP_STATUS.get(code, 500)
        self.not_emulated = not_emulated


def public(text: str) -> Fault:
    """The catch-all refusal."""
    return Fault(PUBLIC, text)


def not_found(identifier: object) -> Fault:
    """No such object, or none of this account's."""
    return Fault(NOT_FOUND, f"Unable to find object with id of '{identifier}'.")


def invalid_value(property_name: str, why: str) -> Fault:
    """A property of the request has an invalid value."""
    return Fault(INVALID_VALUE, f"Invalid value provided for '{property_name}'. {why}")


def missing(property_name: str) -> Fault:
    """A required property is missing."""
    return Fault(MISSING_PROPERTY, f"The property '{property_name}' must be set to create an instance of this type.")


def no_such_property(name: str, owner: str) -> Fault:
    """A mask or a filter names a property that the type does not have, in the vendor's words."""
    return Fault(OBJECT_MASK, f"Property '{name}' not valid for 'SoftLayer_{owner}'")


def lacks(what: str) -> Fault:
    """Part of the API that the emulator does not have; SoftLayer would answer it."""
    return Fault(METHOD_NOT_FOUND, f"The emulator does not emulate {what}.", not_emulated=what)


def not_real(name: str, owner: str) -> Fault:
    """A bug of the emulator: it was about to show a property that such an object does not have."""
    return Fault(BAD_REQUEST, f"The emulator was about to show '{name}', which SoftLayer_{owner} has not.")


def insufficient_capacity(text: str, code: str) -> Fault:
    """No room; ``code`` is "old" or "new", for the old or the new name of this fault."""
    return Fault(NO_CAPACITY_OLD if code == "old" else NO_CAPACITY, text)


def unauthorized() -> Fault:
    """The user or the key is wrong."""
    return Fault(PUBLIC, "Invalid username/password", status=401)


def not_emulated(service: str, method: str) -> Fault:
    """A call that the emulator does not have; SoftLayer may answer it."""
    name = f"{service.removeprefix('SoftLayer_')}::{method}"
    return Fault(METHOD_NOT_FOUND, f"The emulator does not emulate {service}::{method}.", not_emulated=name)
