"""Paperspace's answers to a call that failed: gone, transient, refused for certain, or nobody knows."""

from providers.rental.errors import NO_ANSWER, NOT_SENT, NOT_TRUSTED, CallError

UNREADABLE = "unreadable answer"
REFUSING = {400, 401, 403, 404, 405, 409, 412, 413, 422, 429}
"""After these a request was not carried out: RFC 9110, section 15.5, with the vendor's own table of codes (errors.ts of its client)."""
OPEN_CODES = {"TIMEOUT", "CLIENT_CLOSED_REQUEST", "INTERNAL_SERVER_ERROR"}
"""The service's own codes that leave open whether the call was carried out."""


class ApiError(CallError):
    """The API refused a call or did not answer it.

    Args:
        status: of the HTTP answer; 0 where there was none.
    """

    def __init__(self, call: str, code: str, text: str, status: int = 0) -> None:
        super().__init__(call, code, text)
        self.status = status

    @property
    def is_gone(self) -> bool:
        """Tell whether the object does not exist, or is none of this team's."""
        return self.status == 404

    @property
    def is_rate_limit(self) -> bool:
        """Tell whether there were too many calls; the call was turned away before it did anything."""
        return self.status == 429 or self.code in ("TOO_MANY_REQUESTS", NOT_SENT)

    @property
    def is_transient(self) -> bool:
        """Tell whether the same call may work in a moment."""
        is_lost = self.code in (NO_ANSWER, UNREADABLE, *OPEN_CODES)
        return self.is_rate_limit or is_lost or self.status >= 500 or self.status in (408, 499)

    @property
    def is_refusal(self) -> bool:
        """Tell whether the call was certainly not carried out; a fault that nobody knows is none."""
        if self.is_rate_limit or self.code == NOT_TRUSTED:
            return True
        return self.status in REFUSING and self.code not in OPEN_CODES

    @property
    def is_forbidden(self) -> bool:
        """Tell whether this user may not do it: no repetition helps."""
        return self.status == 403

    @property
    def is_unauthorised(self) -> bool:
        """Tell whether the API refused the key itself."""
        return self.status == 401
