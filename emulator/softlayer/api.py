"""SoftLayer's API over XML-RPC and REST: who may call, lists filtered, ordered, paged and masked, answers on the wire."""

import base64
import binascii
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from emulator.shared import api
from emulator.shared.api import Reply
from emulator.shared.fault_injection import NO_FAULT, InjectedFault
from emulator.shared.response_faults import html_page
from emulator.softlayer import portal, protocols, queries, transactions, types, users
from emulator.softlayer.account import Account
from emulator.softlayer.billing import per_hour
from emulator.softlayer.calls import TOTAL_HEADER, Answer, Call, Credentials
from emulator.softlayer.faults import BAD_REQUEST, SERVICE_FAULTS, Fault, insufficient_capacity, not_emulated
from emulator.softlayer.records import BillingItem
from emulator.softlayer.services import account as account_service
from emulator.softlayer.services import guests, security
from emulator.softlayer.users import User

XML, JSON = "text/xml", "application/json"
ORDERS = ("createObject", "placeOrder", "verifyOrder", "generateOrderTemplate")
LOG = logging.getLogger(__name__)
Method = Callable[[Account, Call], Any]
SERVICES: dict[str, dict[str, Method]] = {**account_service.SERVICES, **guests.SERVICES, **security.SERVICES}


class SoftLayer(api.Api):
    """The calls of one SoftLayer account."""

    TOO_MANY_CALLS = InjectedFault("error", "rate_limit")
    account: Account

    def routes(self) -> list[Route]:
        """XML-RPC and REST, and what people do outside the API."""

        async def xmlrpc(request: Request) -> Response:
            return await self.respond(request, _read_xmlrpc, _write_xmlrpc)

        async def rest(request: Request) -> Response:
            return await self.respond(request, _read_rest, _write_rest)

        return [
            *portal.routes(self.account),
            Route("/xmlrpc/v3.1/{service}", xmlrpc, methods=["POST"]),
            Route("/rest/v3.1/{path:path}", rest, methods=["GET", "POST", "PUT", "DELETE"]),
        ]

    def answer(self, call: Call, injected: InjectedFault = NO_FAULT) -> Answer:
        """Answer a call, or raise the fault that refuses it."""
        try:
            return super().answer(call, injected)
        except (AttributeError, KeyError, TypeError, ValueError, IndexError) as broken:
            # The emulator itself failed, or an argument has an unexpected shape: a fault in both cases.
            LOG.exception("%s could not be carried out", call.name)
            text = f"{call.name}: the arguments could not be read ({type(broken).__name__}: {broken})."
            raise Fault(BAD_REQUEST, text) from broken

    def check(self, call: Call) -> User:
        """The user, whose credentials and rights are good for the call."""
        user = users.of(self.account, call.credentials)
        users.check(user, call)
        if find_method(call) is None:
            raise not_emulated(call.service, call.method)
        return user

    def advance(self) -> bool:
        """Do what is due."""
        return transactions.advance(self.account)

    def seen_by(self, account: Account, caller: User) -> Account:
        """The account without guests and billing items that the user may not see."""
        return users.seen_by(account, caller)

    def carry_out(self, account: Account, call: Call, injected: InjectedFault) -> Answer:
        """Call the method; then filter, order, page and mask its result."""
        answer = self._shaped(find_method(call)(account, call), call)
        return _without_guests(answer) if injected.kind == "bare_receipt" else answer

    def about(self, call: Call) -> str | None:
        """The name of the guest, or the label of the object, that a call is about."""
        if call.identifier not in (None, ""):
            return self._named(call)
        wanted = call.arguments[0] if call.method in ORDERS and call.arguments else None
        if not isinstance(wanted, dict):
            return None
        first = (wanted.get("virtualGuests") or [wanted])[0]
        if first.get("hostname"):
            return f"{first['hostname']}.{first.get('domain')}"
        return first.get("label") or first.get("name")

    def facts_of(self, record: Any) -> dict[str, Any]:
        """Name and notes of an object, or what stands for them."""
        texts = (getattr(record, name, None) for name in ("notes", "label", "description", "name"))
        return {
            "host": getattr(record, "hostname", None),
            "domain": getattr(record, "domain", None),
            "per_hour": str(per_hour(record.fees)) if isinstance(record, BillingItem) else None,
            "notes": next((text for text in texts if text), None),
        }

    def refusal(self, fault: InjectedFault) -> Fault:
        """The answer to a call that an injected fault prevents."""
        if fault.kind == "capacity":
            text = "A fault that the emulator injects leaves no room for this order."
            return insufficient_capacity(text, self.account.settings.capacity_code)
        if fault.way in SERVICE_FAULTS:
            return Fault(*SERVICE_FAULTS[fault.way])
        return Fault(fault.way, f"A fault that the emulator injects ({fault.kind}) prevented this call.")

    def error_object(self, response: Response) -> Response:
        """REST has been seen to answer an error with status 200; XML-RPC has no such form and shows a page instead."""
        if response.media_type != JSON:
            return html_page("Internal Error")
        body = b'{"error": "Internal Error", "code": "SoftLayer_Exception_Public"}'
        return Response(body, media_type=response.media_type)

    def _shaped(self, result: Any, call: Call) -> Answer:
        declared = types.result_of(call.service, call.method)
        mask = queries.read_mask(call.mask, declared)
        if not isinstance(result, queries.Listing):
            return Answer(queries.project(result, mask, declared))
        tree = call.filter or {}
        queries.check(tree, "Account" if result.root else declared)
        tree = tree.get(result.root, {}) if result.root else tree  # Under another root it is ignored, as by the vendor.
        chosen = queries.select(result.views, tree)
        if not queries.is_ordered(tree):  # The vendor documents that the order may change.
            chosen = self.account.fault_injector.random_for("order", call.name).sample(chosen, len(chosen))
        page = chosen[call.offset : call.offset + call.limit] if call.limit else chosen
        return Answer(queries.project(page, mask, declared), len(chosen))

    def _named(self, call: Call) -> str | None:
        store = self.account.store
        tables = {"SoftLayer_Virtual_Guest": store.guests, "SoftLayer_Billing_Item": store.billing_items}
        if call.service not in tables or not str(call.identifier).isdigit():
            return None
        record = tables[call.service].read(int(call.identifier))
        return f"{record.hostname}.{record.domain}" if record else None


def find_method(call: Call) -> Method | None:
    """The function behind a service's method, if it is emulated."""
    return SERVICES.get(call.service, {}).get(call.method)


def _without_guests(answer: Answer) -> Answer:
    """A receipt without the guests that were ordered: only lists show them."""
    details = {**answer.value["orderDetails"], "virtualGuests": []}
    return replace(answer, value={**answer.value, "orderDetails": details})


def _read_xmlrpc(request: Request, body: bytes) -> Call:
    return protocols.read_xmlrpc(request.path_params["service"], body)


def _read_rest(request: Request, body: bytes) -> Call:
    path = request.path_params["path"]
    return protocols.read_rest(path, request.query_params, body, _basic(request))


def _write_xmlrpc(reply: Reply) -> Response:
    """An answer or a fault; only with status 200 does a client read a fault's code."""
    return Response(protocols.write_xmlrpc(reply.result), media_type=XML, headers=_total(reply))


def _write_rest(reply: Reply) -> Response:
    status = reply.result.status if isinstance(reply.result, Fault) else 200
    return Response(protocols.write_rest(reply.result), status, media_type=JSON, headers=_total(reply))


def _total(reply: Reply) -> dict[str, str]:
    """The header with the length of a list, unless an injected fault takes it away."""
    total = None if isinstance(reply.result, Fault) else reply.result.total
    return {} if total is None or reply.injected.kind == "no_total" else {TOTAL_HEADER: str(total)}


def _basic(request: Request) -> Credentials:
    _, _, value = request.headers.get("authorization", "").partition(" ")
    try:
        username, _, key = base64.b64decode(value).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return Credentials()
    return Credentials(username, key)
