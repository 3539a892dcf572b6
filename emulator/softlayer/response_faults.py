"""Injected faults of SoftLayer's API: refusals, incomplete receipts, lists without their length."""

from dataclasses import replace

from starlette.responses import Response

from emulator.fault_injection import ERROR_OBJECT, InjectedFault
from emulator.response_faults import html_page
from emulator.softlayer.calls import TOTAL_HEADER, Answer
from emulator.softlayer.faults import PUBLIC, Fault, insufficient_capacity, rate_limited

SERVICE_FAULTS = {
    "internal_error": ("-32603", "Internal Error"),
    "application_error": ("-32500", "Application Error"),
    "system_error": ("-32400", "Remote System Error"),
    "public_error": (PUBLIC, "Internal Error"),
}


def refusal(fault: InjectedFault, capacity_code: str) -> Fault:
    """The answer to a call that an injected fault prevents."""
    if fault.kind == "capacity":
        return insufficient_capacity("A fault that the emulator injects leaves no room for this order.", capacity_code)
    if fault.way == "rate_limit":
        return rate_limited()
    if fault.way in SERVICE_FAULTS:
        return Fault(*SERVICE_FAULTS[fault.way])
    return Fault(fault.way, f"A fault that the emulator injects ({fault.kind}) prevented this call.")


def without_guests(answer: Answer) -> Answer:
    """A receipt without the guests that were ordered: only lists show them."""
    details = answer.value["orderDetails"]
    containers = [{**each, "virtualGuests": []} for each in details.get("orderContainers", [])]
    bare = {**details, "virtualGuests": []} if not containers else {**details, "orderContainers": containers}
    return replace(answer, value={**answer.value, "orderDetails": bare})


def with_softlayer_fault(response: Response, fault: InjectedFault) -> Response:
    """The response without the length of its list, or with an error object in place of its answer."""
    if fault.kind == "no_total":
        del response.headers[TOTAL_HEADER]
    if fault.way != ERROR_OBJECT:
        return response
    # REST has been seen to answer an error with status 200; XML-RPC has no such form and shows a page instead.
    if response.media_type != "application/json":
        return html_page("Internal Error")
    body = b'{"error": "Internal Error", "code": "SoftLayer_Exception_Public"}'
    return Response(body, media_type=response.media_type)
