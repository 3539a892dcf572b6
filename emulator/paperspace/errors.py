"""Refusals in the vendor's shape: a status, a code, a message, and for wrong input the list of what is wrong.

The codes and their statuses are those that the vendor's command line client knows (errors.ts and api/client.ts of Paperspace/cli,
commit c7bdd42). The texts are ours: the vendor's are not known.
"""

from collections.abc import Sequence

from emulator.shared.api import Refusal

STATUS = {
    "BAD_REQUEST": 400,
    "UNAUTHORIZED": 401,
    "FORBIDDEN": 403,
    "NOT_FOUND": 404,
    "METHOD_NOT_SUPPORTED": 405,
    "TIMEOUT": 408,
    "CONFLICT": 409,
    "PRECONDITION_FAILED": 412,
    "TOO_MANY_REQUESTS": 429,
    "INTERNAL_SERVER_ERROR": 500,
}
CAPACITY_CODE, QUOTA_CODE = "PRECONDITION_FAILED", "FORBIDDEN"
INVALID_INPUT = "Input validation failed"
NOT_IMPLEMENTED_STATUS = 501


class ApiError(Refusal):
    """A call that is refused."""

    def __init__(self, code: str, message: str, issues: Sequence[str] = (), status: int | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.issues = code, message, tuple(issues)
        self.status = status or STATUS[code]

    @property
    def body(self) -> dict[str, object]:
        """The answer's body."""
        issues = {"issues": [{"message": each} for each in self.issues]} if self.issues else {}
        return {"message": self.message, "code": self.code, **issues}


class NotEmulated(ApiError):
    """A call, or a part of one, that the vendor has and the emulator has not."""

    def __init__(self, what: str) -> None:
        super().__init__(
            "METHOD_NOT_SUPPORTED", f"The emulator does not emulate {what}.", status=NOT_IMPLEMENTED_STATUS
        )
        self.not_emulated = what


def invalid(*issues: str) -> ApiError:
    """The input does not fit the operation."""
    return ApiError("BAD_REQUEST", INVALID_INPUT, issues)


def refused(message: str) -> ApiError:
    """The input has the right form, and what it asks for cannot be."""
    return ApiError("BAD_REQUEST", message)


def not_found(what: str, ref: object) -> ApiError:
    """No such object, or none of this team's."""
    return ApiError("NOT_FOUND", f"{what} {ref} was not found.")


def conflict(message: str) -> ApiError:
    """The object is busy."""
    return ApiError("CONFLICT", message)
