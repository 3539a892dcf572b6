"""What bad weather makes of a fault and of a response."""

from __future__ import annotations

from dataclasses import replace

from starlette.responses import Response

from emulator.softlayer.calls import TOTAL_HEADER, Answer
from emulator.softlayer.fault_injection import BROKEN_TLS, DROP, EMPTY, ERROR_OBJECT, HTML, TRUNCATED, Weather
from emulator.softlayer.faults import PUBLIC, Fault, insufficient_capacity, rate_limited

PAGE = "<html><head><title>{0}</title></head><body><center><h1>{0}</h1></center><hr>nginx</body></html>"
REASONS = {
    429: "429 Too Many Requests",
    500: "500 Internal Server Error",
    502: "502 Bad Gateway",
    503: "503 Service Temporarily Unavailable",
}
RETRY_AFTER_S = 1
ANSWERS = {
    "internal_error": ("-32603", "Internal Error"),
    "application_error": ("-32500", "Application Error"),
    "system_error": ("-32400", "Remote System Error"),
    "public_error": (PUBLIC, "Internal Error"),
}


def fault_of(weather: Weather, capacity_code: str) -> Fault:
    """Why a call that the weather struck first was not carried out."""
    if weather.kind == "capacity":
        return insufficient_capacity("The weather leaves no room for this order.", capacity_code)
    if weather.way == "rate_limit":
        return rate_limited()
    if weather.way in ANSWERS:
        return Fault(*ANSWERS[weather.way])
    return Fault(weather.way, f"The weather ({weather.kind}) kept this call from being carried out.")


def bared(answer: Answer) -> Answer:
    """A receipt without the guests that were ordered: they appear in lists alone."""
    details = answer.value["orderDetails"]
    containers = [{**each, "virtualGuests": []} for each in details.get("orderContainers", [])]
    bare = {**details, "virtualGuests": []} if not containers else {**details, "orderContainers": containers}
    return replace(answer, value={**answer.value, "orderDetails": bare})


def spoil(response: Response, weather: Weather) -> Response | None:
    """The response that the caller gets instead; None when the connection is cut."""
    if weather.way == DROP or weather.kind == BROKEN_TLS:
        return None
    if weather.kind == "no_total":
        del response.headers[TOTAL_HEADER]
    if weather.way.startswith("http_"):
        return _page(int(weather.way.removeprefix("http_")))
    bodies = {EMPTY: b"", TRUNCATED: response.body[: len(response.body) // 2]}
    if weather.way in bodies:
        return Response(bodies[weather.way], media_type=response.media_type)
    if weather.way == HTML:
        return Response(PAGE.format("Welcome to the hotel's network"), media_type="text/html")
    return _error_object(response) if weather.way == ERROR_OBJECT else response


def _error_object(response: Response) -> Response:
    """REST has been seen to answer an error with status 200; XML-RPC has no such form and shows a page instead."""
    if response.media_type != "application/json":
        return Response(PAGE.format("Internal Error"), media_type="text/html")
    body = b'{"error": "Internal Error", "code": "SoftLayer_Exception_Public"}'
    return Response(body, media_type=response.media_type)


def _page(status: int) -> Response:
    headers = {"Retry-After": str(RETRY_AFTER_S)} if status in (429, 503) else {}
    return Response(PAGE.format(REASONS[status]), status, headers, media_type="text/html")
