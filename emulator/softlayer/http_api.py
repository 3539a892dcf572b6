"""SoftLayer's API over HTTP: XML-RPC and REST, and what only this computer may ask of the account."""

import base64
import binascii
from types import ModuleType

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from emulator import server
from emulator.fault_injection import NO_FAULT, InjectedFault
from emulator.softlayer import admin, wire_rest, wire_xmlrpc
from emulator.softlayer.calls import TOTAL_HEADER, Answer, Credentials
from emulator.softlayer.faults import Fault
from emulator.softlayer.middleware import Middleware
from emulator.softlayer.response_faults import with_softlayer_fault
from emulator.softlayer.status import holdings
from emulator.status import status_of

API_VERSIONS = ("v3.1", "v3")
XML, JSON = "text/xml", "application/json"
OK = 200


def application(middleware: Middleware, port: int) -> Starlette:
    """The HTTP application of one account."""

    async def xmlrpc(request: Request) -> Response:
        body = await request.body()
        return await _send(request, *await run_in_threadpool(_answer_xmlrpc, middleware, request, body))

    async def rest(request: Request) -> Response:
        body = await request.body()
        return await _send(request, *await run_in_threadpool(_answer_rest, middleware, request, body))

    account, routes = middleware.account, admin.routes(middleware.account)
    for version in API_VERSIONS:
        routes.append(Route(f"/xmlrpc/{version}/{{service}}", xmlrpc, methods=["POST"]))
        routes.append(Route(f"/rest/{version}/{{path:path}}", rest, methods=["GET", "POST", "PUT", "DELETE"]))
    return server.application(account, routes, lambda: status_of(account, holdings, port=port))


async def _send(request: Request, response: Response, fault: InjectedFault) -> Response:
    return await server.send(request, with_softlayer_fault(response, fault), fault)


def _answer_xmlrpc(middleware: Middleware, request: Request, body: bytes) -> tuple[Response, InjectedFault]:
    try:
        call = wire_xmlrpc.read_call(request.path_params["service"], body, _basic(request))
    except Fault as unreadable:
        return _response(wire_xmlrpc, XML, unreadable, OK), NO_FAULT
    reply = middleware.reply(call)
    return _response(
        wire_xmlrpc, XML, reply.result, OK
    ), reply.injected  # only with status 200 does a client read the code


def _answer_rest(middleware: Middleware, request: Request, body: bytes) -> tuple[Response, InjectedFault]:
    try:
        path = request.path_params["path"]
        call = wire_rest.read_call(request.method, path, request.query_params, body, _basic(request))
    except Fault as unreadable:
        return _response(wire_rest, JSON, unreadable), NO_FAULT
    reply = middleware.reply(call)
    return _response(wire_rest, JSON, reply.result), reply.injected


def _response(wire: ModuleType, media_type: str, result: Answer | Fault, fault_status: int | None = None) -> Response:
    if isinstance(result, Fault):
        return Response(wire.write_fault(result), fault_status or result.status, media_type=media_type)
    headers = {} if result.total is None else {TOTAL_HEADER: str(result.total)}
    return Response(wire.write_answer(result), media_type=media_type, headers=headers)


def _basic(request: Request) -> Credentials | None:
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        username, _, key = base64.b64decode(value).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return Credentials(username, key)
