"""What an injected fault makes of a response that is ready to be sent."""

from starlette.responses import Response

from emulator.fault_injection import BROKEN_TLS, DROP, EMPTY, HTML, TRUNCATED, InjectedFault

PAGE = "<html><head><title>{0}</title></head><body><center><h1>{0}</h1></center><hr>nginx</body></html>"
REASONS = {
    429: "429 Too Many Requests",
    500: "500 Internal Server Error",
    502: "502 Bad Gateway",
    503: "503 Service Temporarily Unavailable",
    504: "504 Gateway Time-out",
}
RETRY_AFTER_S = 1


def with_fault(response: Response, fault: InjectedFault) -> Response | None:
    """The response that the caller gets instead; None when the connection is cut."""
    if fault.way == DROP or fault.kind == BROKEN_TLS:
        return None
    if fault.way.startswith("http_"):
        return _error_page(int(fault.way.removeprefix("http_")))
    bodies = {EMPTY: b"", TRUNCATED: response.body[: len(response.body) // 2]}
    if fault.way in bodies:
        return Response(bodies[fault.way], media_type=response.media_type)
    return html_page("Welcome to the hotel's network") if fault.way == HTML else response


def html_page(title: str) -> Response:
    """A page where an answer was expected, with status 200."""
    return Response(PAGE.format(title), media_type="text/html")


def _error_page(status: int) -> Response:
    headers = {"Retry-After": str(RETRY_AFTER_S)} if status in (429, 503) else {}
    return Response(PAGE.format(REASONS[status]), status, headers, media_type="text/html")
