"""Injected faults in the vendor's own shape."""

from starlette.responses import JSONResponse, Response

from emulator.fault_injection import ERROR_OBJECT, InjectedFault
from emulator.paperspace import capacity
from emulator.paperspace.errors import ApiError
from emulator.paperspace.settings import Settings
from emulator.response_faults import RETRY_AFTER_S


def refusal(fault: InjectedFault, settings: Settings) -> ApiError:
    """The answer to a call that an injected fault prevents."""
    if fault.kind == "capacity":
        return ApiError(settings.capacity_code, "A fault that the emulator injects leaves no room for this machine.")
    if fault.kind == "quota":
        return capacity.over_quota(settings)
    code = fault.way.upper()
    if code == "TOO_MANY_REQUESTS":
        return too_many_requests()
    return ApiError(
        code if code in ("TIMEOUT", "INTERNAL_SERVER_ERROR") else "INTERNAL_SERVER_ERROR",
        f"A fault that the emulator injects ({fault.kind}) prevented this call.",
    )


def too_many_requests() -> ApiError:
    """More calls than the account may send."""
    return ApiError("TOO_MANY_REQUESTS", "Too many requests.")


def response_of(refused: ApiError) -> Response:
    """A refusal as an answer."""
    headers = {"Retry-After": str(RETRY_AFTER_S)} if refused.code == "TOO_MANY_REQUESTS" else {}
    return JSONResponse(refused.body, refused.status, headers)


def with_error_object(response: Response, fault: InjectedFault) -> Response:
    """An error where an answer was expected, with status 200."""
    if fault.way != ERROR_OBJECT:
        return response
    return JSONResponse({"message": "Internal Server Error", "code": "INTERNAL_SERVER_ERROR"})
