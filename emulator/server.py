"""The emulator's process: the two protocols over HTTP on loopback and on the account's private bridge."""

from __future__ import annotations

import base64
import binascii
import signal

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from . import wire_rest, wire_xmlrpc
from .calls import Answer, Credentials
from .crew import Crew
from .dispatch import Dispatcher
from .faults import Fault
from .status import Status, status_of

API_VERSIONS = ("v3.1", "v3")
TOTAL_HEADER = "SoftLayer-Total-Items"
GRACEFUL_SHUTDOWN_S = 3


def application(dispatcher: Dispatcher, status: Status) -> Starlette:
    """The HTTP application of one account."""

    async def xmlrpc(request: Request) -> Response:
        body = await request.body()
        return await run_in_threadpool(_answer_xmlrpc, dispatcher, request, body)

    async def rest(request: Request) -> Response:
        body = await request.body()
        return await run_in_threadpool(_answer_rest, dispatcher, request, body)

    async def read_status(request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(status_of, status.account, port=status.port))

    routes = [Route("/status", read_status)]
    for version in API_VERSIONS:
        routes.append(Route(f"/xmlrpc/{version}/{{service}}", xmlrpc, methods=["POST"]))
        routes.append(Route(f"/rest/{version}/{{path:path}}", rest, methods=["GET", "POST", "PUT", "DELETE"]))
    return Starlette(routes=routes)


def serve(app: Starlette, sockets: list, crew: Crew | None) -> None:
    """Answer calls until a signal ends the process."""
    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=GRACEFUL_SHUTDOWN_S
    )
    # uvicorn repeats the signal that ended it; it must not end the process before everything is put away.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    if crew:
        crew.start()
    try:
        uvicorn.Server(config).run(sockets=sockets)
    finally:
        if crew:
            crew.stop()


def _answer_xmlrpc(dispatcher: Dispatcher, request: Request, body: bytes) -> Response:
    """A fault is a 200 as well: only so its code survives in the client."""
    try:
        answer = dispatcher.answer(wire_xmlrpc.read_call(request.path_params["service"], body, _basic(request)))
        return Response(wire_xmlrpc.write_answer(answer), media_type="text/xml", headers=_total(answer))
    except Fault as fault:
        return Response(wire_xmlrpc.write_fault(fault), media_type="text/xml")


def _answer_rest(dispatcher: Dispatcher, request: Request, body: bytes) -> Response:
    try:
        path = request.path_params["path"]
        answer = dispatcher.answer(
            wire_rest.read_call(request.method, path, request.query_params, body, _basic(request))
        )
        return Response(wire_rest.write_answer(answer), media_type="application/json", headers=_total(answer))
    except Fault as fault:
        return Response(wire_rest.write_fault(fault), fault.status, media_type="application/json")


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
