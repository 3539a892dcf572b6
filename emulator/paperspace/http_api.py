"""The REST API v1 over HTTP, and what only this computer may ask of the account."""

import json
from typing import Any
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from emulator import server
from emulator.fault_injection import NO_FAULT, InjectedFault
from emulator.paperspace import console, fields, services
from emulator.paperspace.errors import ApiError, NotEmulated, refused
from emulator.paperspace.middleware import Middleware
from emulator.paperspace.operations import Call
from emulator.paperspace.response_faults import response_of, with_error_object
from emulator.paperspace.status import holdings
from emulator.status import status_of

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
WITH_BODY = ("POST", "PUT", "PATCH")
JSON = "application/json"


def application(middleware: Middleware, port: int) -> Starlette:
    """The HTTP application of one account."""

    async def v1(request: Request) -> Response:
        body = await request.body()
        response, fault = await run_in_threadpool(_answer, middleware, request, body)
        return await server.send(request, with_error_object(response, fault), fault)

    account = middleware.account
    routes = [*console.routes(account), Route("/v1/{path:path}", v1, methods=METHODS)]
    return server.application(account, routes, lambda: status_of(account, holdings, port=port))


def read_call(method: str, path: str, query: dict[str, str], key: str | None, body: dict[str, Any]) -> Call:
    """A call with the form of its operation; raise the refusal of any other one."""
    operation, given, known_path = services.find(method, path)
    if operation is None:
        raise NotEmulated(f"{method} {path}" + (" (the path has other methods)" if known_path else ""))
    return Call(operation, given, fields.checked(operation.fields, given, query, body), key)


def _answer(middleware: Middleware, request: Request, body: bytes) -> tuple[Response, InjectedFault]:
    try:
        path = "/" + unquote(request.path_params["path"]).rstrip("/")
        given = _read_body(request, body)
        call = read_call(request.method, path, dict(request.query_params), _key(request), given)
    except ApiError as unreadable:
        if isinstance(unreadable, NotEmulated):
            with middleware.account.lock:
                middleware.count_not_emulated(unreadable)
        return response_of(unreadable), NO_FAULT
    reply = middleware.reply(call)
    if isinstance(reply.result, ApiError):
        return response_of(reply.result), reply.injected
    return JSONResponse(reply.result), reply.injected


def _read_body(request: Request, body: bytes) -> dict[str, Any]:
    """The body as it counts: of other methods and other types it is ignored; announced as JSON it has to be some."""
    if request.method not in WITH_BODY and not body:
        return {}
    if JSON not in request.headers.get("content-type", ""):
        return {}
    try:
        given = json.loads(body)
    except ValueError as wrong:
        raise refused("Failed to parse the request body.") from wrong
    if not isinstance(given, dict):
        raise refused("The request body is not an object.")
    return given


def _key(request: Request) -> str | None:
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" and key.strip() else None
