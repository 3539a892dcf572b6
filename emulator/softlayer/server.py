"""The emulator's process: the two protocols over HTTP on loopback and on the account's private bridge."""

from __future__ import annotations

import asyncio
import base64
import binascii
import signal
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from emulator.connections import BreakableProtocol, break_stream, cut
from emulator.softlayer import admin, wire_rest, wire_xmlrpc
from emulator.softlayer.calls import TOTAL_HEADER, Answer, Credentials
from emulator.softlayer.fault_injection import BROKEN_TLS, FAIR, Weather
from emulator.softlayer.faults import Fault
from emulator.softlayer.machine_reconciler import Crew
from emulator.softlayer.middleware import Reception
from emulator.softlayer.response_faults import spoil
from emulator.softlayer.status import Status, status_of

API_VERSIONS = ("v3.1", "v3")
XML, JSON = "text/xml", "application/json"
GRACEFUL_SHUTDOWN_S = 3


def application(reception: Reception, status: Status) -> Starlette:
    """The HTTP application of one account."""

    async def xmlrpc(request: Request) -> Response:
        body = await request.body()
        return await _sent(request, *await run_in_threadpool(_answer_xmlrpc, reception, request, body))

    async def rest(request: Request) -> Response:
        body = await request.body()
        return await _sent(request, *await run_in_threadpool(_answer_rest, reception, request, body))

    async def read_status(request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(status_of, status.account, port=status.port))

    routes = [Route("/status", read_status), *admin.routes(reception.account)]
    for version in API_VERSIONS:
        routes.append(Route(f"/xmlrpc/{version}/{{service}}", xmlrpc, methods=["POST"]))
        routes.append(Route(f"/rest/{version}/{{path:path}}", rest, methods=["GET", "POST", "PUT", "DELETE"]))
    return Starlette(routes=routes)


def serve(app: Starlette, sockets: list, crew: Crew | None, identity: Path | None = None) -> None:
    """Answer calls until a signal ends the process; over https if it has a certificate."""
    config = uvicorn.Config(
        app,
        http=BreakableProtocol,
        log_config=None,
        access_log=False,
        lifespan="off",
        ssl_certfile=identity,
        timeout_graceful_shutdown=GRACEFUL_SHUTDOWN_S,
    )
    server = uvicorn.Server(config)
    # uvicorn repeats the signal that ended it, and one may come before it listens to any: neither may end the process
    # before everything is put away, and none may get lost.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, server.handle_exit)
    if crew:
        crew.start()
    try:
        server.run(sockets=sockets)
    finally:
        if crew:
            crew.stop()


async def _sent(request: Request, response: Response, weather: Weather) -> Response:
    """Send a response through the weather: late, spoiled, or not at all."""
    if weather.kind == "slow":
        await asyncio.sleep(weather.seconds)
    spoiled = spoil(response, weather)
    if weather.kind == BROKEN_TLS:
        await break_stream(request, weather.way)
    elif spoiled is None:
        await cut(request)
    return spoiled or response


def _answer_xmlrpc(reception: Reception, request: Request, body: bytes) -> tuple[Response, Weather]:
    """A fault is a 200 as well: only so its code survives in the client."""
    try:
        call = wire_xmlrpc.read_call(request.path_params["service"], body, _basic(request))
    except Fault as unreadable:
        return Response(wire_xmlrpc.write_fault(unreadable), media_type=XML), FAIR
    reply = reception.reply(call)
    if isinstance(reply.result, Fault):
        return Response(wire_xmlrpc.write_fault(reply.result), media_type=XML), reply.weather
    content = wire_xmlrpc.write_answer(reply.result)
    return Response(content, media_type=XML, headers=_total(reply.result)), reply.weather


def _answer_rest(reception: Reception, request: Request, body: bytes) -> tuple[Response, Weather]:
    try:
        path = request.path_params["path"]
        call = wire_rest.read_call(request.method, path, request.query_params, body, _basic(request))
    except Fault as unreadable:
        return Response(wire_rest.write_fault(unreadable), unreadable.status, media_type=JSON), FAIR
    reply = reception.reply(call)
    if isinstance(reply.result, Fault):
        return Response(wire_rest.write_fault(reply.result), reply.result.status, media_type=JSON), reply.weather
    content = wire_rest.write_answer(reply.result)
    return Response(content, media_type=JSON, headers=_total(reply.result)), reply.weather


def _basic(request: Request) -> Credentials | None:
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        username, _, key = base64.b64decode(value).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return Credentials(username, key)


def _total(answer: Answer) -> dict[str, str]:
    return {} if answer.total is None else {TOTAL_HEADER: str(answer.total)}
