"""Access rules of an account's server: programs over loopback, machines for packages, no web page."""

import hmac
from collections.abc import Awaitable, Callable
from ipaddress import ip_address, ip_network

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from emulator.machines.networks import gateway
from emulator.shared.package_index import ROOT
from emulator.shared.settings import LOOPBACK, Settings

Handler = Callable[[Request], Awaitable[Response]]
OWN_NAMES = (LOOPBACK, "localhost", "[::1]")
OF_BROWSERS = ("origin", "sec-fetch-site")
# What a web page may send to any address without asking first.
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain")


class CheckedCallers:
    """The application behind a look at the head of each request; what is refused is not read."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._subnets = [ip_network(each) for each in settings.private_subnets]
        self._gateways = [gateway(each) for each in settings.private_subnets]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, or refuse it."""
        refused = self._refusal(Request(scope))
        await (refused or self._app)(scope, receive, send)

    def _refusal(self, request: Request) -> Response | None:
        address, port = request.scope["server"]
        is_here, asks_packages = address == LOOPBACK, request.scope["path"].startswith(ROOT)
        names = OWN_NAMES if is_here else (address,)
        if any(name in request.headers for name in OF_BROWSERS):
            return refusal(403, "Web pages may not ask an emulated account.")
        if request.headers.get("host", "").lower() not in [f"{name}:{port}" for name in names]:
            return refusal(421, f"This server answers as {' or '.join(names)}, port {port}, alone.")
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() in FORMS:
            return refusal(415, "Send JSON, with its Content-Type.")
        if asks_packages == is_here or not (is_here or self._is_machine(request.scope["client"][0])):
            return refusal(403, "Machines are given packages, and nothing else; packages are given to machines alone.")
        return None

    def _is_machine(self, caller: str) -> bool:
        """Whether this is a machine's address; this computer's programs come from a gateway's, or from outside the networks."""
        return caller not in self._gateways and any(ip_address(caller) in each for each in self._subnets)


def owners_alone(settings: Settings, handler: Handler) -> Handler:
    """Answer only who has the account's key."""
    wanted = f"Bearer {settings.api_key}".encode()

    async def guarded(request: Request) -> Response:
        if not hmac.compare_digest(request.headers.get("authorization", "").encode(), wanted):
            return refusal(401, f"Send the account's key: curl -H @{settings.state / settings.KEY_FILE}")
        return await handler(request)

    return guarded


def refusal(status: int, sentence: str) -> Response:
    """An answer that says why there is no other one."""
    return JSONResponse({"error": sentence}, status)
