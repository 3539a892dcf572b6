"""Paperspace's REST API v1: who may call, the form of a call, lists in pages, answers on the wire."""

import enum
import hmac
import json
import re
from typing import Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from emulator.paperspace import availability, lifecycle, machines, networks, operations
from emulator.paperspace.account import Account
from emulator.paperspace.errors import CAPACITY_CODE, ApiError, NotEmulated, refused
from emulator.paperspace.operations import Call, Operation
from emulator.paperspace.records import BillingItem
from emulator.paperspace.settings import Settings
from emulator.paperspace.views import moment
from emulator.shared import api
from emulator.shared.api import Reply
from emulator.shared.fault_injection import REORDERED, InjectedFault
from emulator.shared.response_faults import RETRY_AFTER_S
from emulator.shared.store import Table

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
WITH_BODY = ("POST", "PUT", "PATCH")
JSON = "application/json"
VENDOR_CODES = ("TIMEOUT", "TOO_MANY_REQUESTS")
NAMESPACE = "microcluster-emulator"


class Role(enum.Enum):
    """Role of a key's owner in the team."""

    ADMIN = "admin"
    MEMBER = "member"  # to whom no machine was assigned


def role_of(settings: Settings, key: str | None) -> Role | None:
    """The role of a key; None for one that is not valid."""
    for known, role in ((settings.api_key, Role.ADMIN), (settings.member_key, Role.MEMBER)):
        if known and key and hmac.compare_digest(known.encode(), key.encode()):
            return role
    return None


def session(account: Account, call: Call) -> dict[str, Any] | None:
    """The user and the team of a key; null for a key that is not valid."""
    role = role_of(account.settings, call.key)
    if role is None:
        return None
    is_admin, created, team = role is Role.ADMIN, moment(account.clock.virtual0), account.own_ref("te")
    membership = {"name": NAMESPACE, "id": team, "namespace": NAMESPACE, "isUserTeam": True, "dtCreated": created}
    user = {
        "id": account.own_ref("u" if is_admin else "m"),
        "firstName": None,
        "lastName": None,
        "email": "emulated@example.invalid",
        "dtCreated": created,
        "dtConfirmed": created,
        "teamMemberships": [{"team": membership, "isOwner": is_admin, "isAdmin": is_admin}],
        "isPhoneVerified": True,
        "isPasswordAuthEnabled": True,
        "isQrCodeBasedMfaEnabled": False,
        "isQrCodeBasedMfaConfirmed": False,
        "analyticsId": 1,
        "metadata": {},
    }
    of_team = {
        "id": team,
        "namespace": NAMESPACE,
        "isPrivate": True,
        "maxMachines": account.settings.max_machines,
        "analyticsId": 1,
    }
    return {"user": user, "team": of_team}


def standing(account: Account, call: Call) -> dict[str, Any]:
    """The team may order; in no document, but the vendor's client asks it before every order."""
    return {"isInGoodStanding": True, "hasPaymentMethod": True, "isAdminLocked": False, "messages": []}


OPERATIONS: tuple[Operation, ...] = (
    Operation("auth-session", "GET", "/auth/session", session, needs_key=False, for_members=True),
    Operation("billing-accountStanding", "GET", "/billing/account-standing", standing, for_members=True),
    *availability.OPERATIONS,
    *machines.OPERATIONS,
    *networks.OPERATIONS,
)
_PARAMETER = re.compile(r"\{(\w+)\}")
_PATTERNS = [(each, re.compile(_PARAMETER.sub(r"(?P<\1>[^/]+)", each.path))) for each in OPERATIONS]


class Paperspace(api.Api):
    """The calls of one Paperspace team."""

    TOO_MANY_CALLS = InjectedFault("rate limit", "too_many_requests")
    account: Account

    def routes(self) -> list[Route]:
        """The API."""

        async def v1(request: Request) -> Response:
            return await self.respond(request, _read, _write)

        return [Route("/v1/{path:path}", v1, methods=METHODS)]

    def check(self, call: Call) -> Role | None:
        role = role_of(self.account.settings, call.key)
        if role is None and call.operation.needs_key:
            raise ApiError("UNAUTHORIZED", "The API key is missing or not valid.")
        if role is Role.MEMBER and not call.operation.for_members:
            raise ApiError("FORBIDDEN", "Only an administrator of the team may do this.")
        return role

    def advance(self) -> bool:
        return lifecycle.advance(self.account)

    def seen_by(self, account: Account, caller: Role | None) -> Account:
        nothing: dict[str, Table] = {kind: Table() for kind in account.store.tables}
        return account.with_tables(nothing) if caller is Role.MEMBER else account

    def carry_out(self, account: Account, call: Call, injected: InjectedFault) -> Any:
        """Call the operation; a list comes in pages, where the fault asks for it each out of another order."""
        result = call.operation.handler(account, call)
        if not call.is_list:
            return result
        reordered = injected.kind == REORDERED
        shuffle = self.account.fault_injector.random_for("order", call.name) if reordered else None
        return operations.page(result, call, shuffle)

    def about(self, call: Call) -> str | None:
        """The name of the object that a call is about, as far as it has one."""
        if "id" not in call.path:
            return call.input.get("name", call.path.get("ip"))
        return getattr(self._record_of(call), "name", None)

    def facts_of(self, record: Any) -> dict[str, Any]:
        """Name and id of an object; of a bill also what it is for."""
        bills = {"bills": record.kind, "per_hour": record.per_hour} if isinstance(record, BillingItem) else {}
        return {"name": getattr(record, "name", None), "ref": record.ref, **bills}

    def refusal(self, fault: InjectedFault) -> ApiError:
        code = fault.way.upper()
        if fault.kind == "capacity":
            return ApiError(CAPACITY_CODE, "A fault that the emulator injects leaves no room for this machine.")
        code = code if code in VENDOR_CODES else "INTERNAL_SERVER_ERROR"
        return ApiError(code, f"The emulator prevented this call ({fault.kind}).")

    def error_object(self, response: Response) -> Response:
        return JSONResponse({"message": "Internal Server Error", "code": "INTERNAL_SERVER_ERROR"})

    def _record_of(self, call: Call) -> Any:
        """The record with the call's id, if there is one."""
        ref = call.path.get("id")
        records = (each for table in self.account.store.tables.values() for each in table.read_all())
        named = (each for each in records if getattr(each, "ref", None) == ref and hasattr(each, "name"))
        return None if ref is None else next(named, None)


def read_call(method: str, path: str, query: dict[str, str], key: str | None, body: dict[str, Any]) -> Call:
    """A call with the form of its operation; raise the refusal of any other one."""
    matches = [(each, match.groupdict()) for each, pattern in _PATTERNS if (match := pattern.fullmatch(path))]
    for operation, given in matches:
        if operation.method == method:
            return Call(operation, given, operation.read(query, body), key)
    raise NotEmulated(f"{method} {path}" + (" (the path has other methods)" if matches else ""))


def _read(request: Request, body: bytes) -> Call:
    path = "/" + unquote(request.path_params["path"]).rstrip("/")
    given = _read_body(request, body)
    return read_call(request.method, path, dict(request.query_params), _key(request), given)


def _read_body(request: Request, body: bytes) -> dict[str, Any]:
    """The body as it counts: of other methods and other types it is ignored; announced as JSON it has to be some."""
    if request.method not in WITH_BODY and not body:
        return {}
    if JSON not in request.headers.get("content-type", ""):
        return {}
    try:
        content = json.loads(body)
    except ValueError as wrong:
        raise refused("Failed to parse the request body.") from wrong
    if not isinstance(content, dict):
        raise refused("The request body is not an object.")
    return content


def _write(reply: Reply) -> Response:
    result = reply.result
    if not isinstance(result, ApiError):
        return JSONResponse(result)
    headers = {"Retry-After": str(RETRY_AFTER_S)} if result.code == "TOO_MANY_REQUESTS" else {}
    return JSONResponse(result.body, result.status, headers)


def _key(request: Request) -> str | None:
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" and key.strip() else None
