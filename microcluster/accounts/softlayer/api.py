"""Calls by the official client, each sent once, to the account alone, and ended in time; and what the key's user may do."""

import json
import os
import re
import threading
import xmlrpc.client
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any
from xml.parsers.expat import ExpatError

import SoftLayer
from requests import Response

from microcluster.accounts.shared.api_calls import READ_ATTEMPTS, Moved, OnceAdapter, Row, SharedList, Wire
from microcluster.accounts.shared.errors import NO_ANSWER, NOT_TRUSTED, UNREADABLE, ProviderError
from microcluster.accounts.softlayer.credentials import Credentials
from microcluster.accounts.softlayer.errors import ApiError

CALLS_PER_SECOND = 40
"""The service refuses more than 50 a second for a whole account, and we are not alone in it."""
LISTS_LAG_S = 120.0
"""Lists may lag this far behind an accepted order."""
CONNECT_TIMEOUT_S = 10.0
LONGEST_ORDER_S = 300.0
"""An order's answer is awaited for so long, and by then the service has carried the order out, whether or not its caller waits.

Users of the vendor's clients saw placeOrder take more than one minute, and orders that were cut off after 60 s carried out
all the same (softlayer/softlayer-go issue 47, IBM-Cloud/terraform-provider-ibm issue 547).
"""
FORBIDDEN_BYTES = re.compile(
    rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]|\xed[\xa0-\xbf][\x80-\xbf]"  # C0, U+FFFE, U+FFFF, surrogates
    rb"|&#(?:x([0-9a-fA-F]{1,9})|([0-9]{1,9}));"
)
INSTEAD = b"&#xFFFD;"
OTHER_ENCODING = re.compile(rb"""<\?xml[^>]*encoding=["'](?!utf-8)""", re.IGNORECASE)
PAGE_SIZE = 100
ASCENDING = {"operation": "orderBy", "options": [{"name": "sort", "value": ["ASC"]}]}
KEYS = {"Network_Pod": "name"}
"""Unique property of a service's rows where it is not the id (SoftLayer_Network_Pod has none)."""
ALL_DEVICES = "ACCESS_ALL_GUEST"
VIEW = "VIRTUAL_GUEST_VIEW"
BILLS = "ACCOUNT_SUMMARY_VIEW"
RIGHTS = {
    "SERVER_ADD": "Add Server",
    "INSTANCE_UPGRADE": "Add/Upgrade Cloud Instances",
    "PUBLIC_NETWORK_COMPUTE": "Add Compute with Public Network Port",
    "SERVER_CANCEL": "Cancel Server",
    "CUSTOMER_SSH_KEY_MANAGEMENT": "Manage SSH Keys",
    "MANAGE_SECURITY_GROUPS": "Manage Security Groups",
    "PORT_CONTROL": "Manage Port Control",
    "REMOTE_MANAGEMENT": "IPMI Remote Management",
    VIEW: "View Virtual Server Details",
    BILLS: "View Account Summary",
    ALL_DEVICES: "access to all virtual servers, also to new ones",
}
"""Permissions that `up` and its `down` need: orders, cancellations, keys, groups, port speeds and restarts.

The key names, and what the vendor's console calls them (sldn.softlayer.com, "Permission Enforcement in the SoftLayer API").
Tags need VIEW and ALL_DEVICES (cloud.ibm.com/docs/account?topic=account-access); docs/never-run.md says what is not certain.
"""
RIGHTS_KNOWN_FOR_S = 2.0
"""The checks before the orders of many machines share one look; whoever believes that a machine is gone looks himself."""
USER_MASK = "mask[id,username,isMasterUserFlag,hasFullVirtualGuestAccessFlag,permissions[keyName]]"
SEEING = (VIEW, BILLS, ALL_DEVICES)
PORTAL = "Manage > Access (IAM) > Users > the user > Classic infrastructure"


class Api(Wire):
    """One account's API."""

    fault = ApiError
    per_second = CALLS_PER_SECOND

    def __init__(self, credentials: Credentials, stop: threading.Event | None = None, time_scale: float = 1.0) -> None:
        super().__init__(credentials, stop, time_scale)
        self._users = SharedList(lambda _: [self.read("Account", "getCurrentUser", mask=USER_MASK, expect=dict)])

    def connect(self) -> SoftLayer.BaseClient:
        """Make the client of one thread."""
        return new_client(self.credentials, self.heed)

    def read(
        self,
        service: str,
        method: str,
        *args: Any,
        attempts: int = READ_ATTEMPTS,
        expect: type = object,
        **options: Any,
    ) -> Any:
        """Call something that changes nothing; transient faults are tried again.

        Args:
            expect: what the answer has to be; anything else is transient too.
            options: ``id``, ``mask``, ``filter``, ``limit`` and ``offset`` of the official client.
        """
        send = partial(self.once, service, method, *args, **options)
        return self.repeated(f"calling {service}::{method}", send, expect, attempts)

    def ensure(self, service: str, method: str, *args: Any, **options: Any) -> Any:
        """Bring about a state that the call itself describes (tags, notes, rules): sending it twice does no harm."""
        return self.read(service, method, *args, **options)

    def read_all(self, service: str, method: str, **options: Any) -> list[Row]:
        """Read a whole list; one that ends before its own total, or whose pages do not fit together, is an ApiError."""
        key = KEYS.get(service, "id")
        options["filter"] = in_order(service, method, key, options.get("filter"))

        def page(offset: int) -> list[Row]:
            return self.read(service, method, expect=list, limit=PAGE_SIZE, offset=offset, **options)

        return self.whole(f"listing {service}::{method}", partial(read_pages, page, key))

    def find(self, service: str, object_id: str, mask: str) -> Row | None:
        """Read one object; None when it does not exist."""
        return self.found(lambda: self.read(service, "getObject", id=int(object_id), mask=mask, expect=dict))

    def once(self, service: str, method: str, *args: Any, limit_s: float | None = None, **options: Any) -> Any:
        """Send a call exactly once: orders and cancellations, whose lost answers are resolved by looking.

        Args:
            limit_s: the longest time for it; by default the account's for every call.
        """
        call = f"calling {service}::{method}" + (f" of {options['id']}" if options.get("id") else "")
        try:
            with self.sending(call, limit_s or self.credentials.timeout_s) as client:
                answer = client.call(service, method, *args, **options)
        except SoftLayer.SoftLayerAPIError as error:
            text = str(error.faultString)
            raise self.error(call, fault_code(error, text), text) from None
        except (ExpatError, xmlrpc.client.Error, ValueError, KeyError, TypeError, AttributeError) as error:
            raise self.error(call, UNREADABLE, f"{type(error).__name__}: {error}") from None
        if isinstance(answer, dict) and set(answer) >= {"error", "code"}:
            # REST hands an error with status 200 back as a result.
            raise self.error(call, str(answer["code"]), str(answer["error"]))
        return answer

    def check_to_order(self) -> None:
        """Refuse to order with a user who could not see, set up or cancel what was ordered.

        Raises:
            ProviderError: the text names what is missing, and where it is granted.
        """
        lacking = self.lacking(RIGHTS, max_age_s=RIGHTS_KNOWN_FOR_S * self._time_scale)
        if lacking:
            raise ProviderError(f"checking the rights of the key: nothing was ordered, as {lacking}")

    def lacking(self, needed: Iterable[str], max_age_s: float = 0.0) -> str | None:
        """Say which rights the user lacks now, as one may be taken away while a command runs; the master user has all."""
        user, username = self._users.under("the key's user", max_age_s)[0], self.credentials.username
        has = {str(each.get("keyName")) for each in user.get("permissions") or []}
        if user.get("hasFullVirtualGuestAccessFlag"):
            has.add(ALL_DEVICES)
        missing = [each for each in needed if each not in has]
        if user.get("isMasterUserFlag") or not missing:
            return None
        named = ", ".join(f"'{RIGHTS[each]}' ({each})" for each in missing)
        wanted = " ".join(f"-p {each}" for each in missing)
        return (
            f"user {username} at {self.credentials.endpoint} lacks {named}. Have it granted ({PORTAL}, or 'slcli user "
            f"edit-permissions {username} --enable {wanted}') and run the command again."
        )


def made_id(answer: Any, call: str) -> str:
    """Read the id of what a call made.

    Raises:
        ApiError: the answer names none; the call may have been carried out all the same.
    """
    if isinstance(answer, Mapping) and str(answer.get("id") or "").isdigit():
        return str(answer["id"])
    raise ApiError(f"calling {call}", UNREADABLE, "the answer names no id")


def in_order(service: str, method: str, key: str, tree: Mapping[str, Any] | None) -> dict[str, Any]:
    """Add an order to a filter: without one the service may list in another order each time.

    The relations of the account are filtered under their own names; `getAllObjects` has no root.
    """
    tree = dict(tree or {})
    if service != "Account":
        return {key: ASCENDING, **tree}
    root = method.removeprefix("get")
    root = root[0].lower() + root[1:]
    return {**tree, root: {key: ASCENDING, **tree.get(root, {})}}


def read_pages(read: Callable[[int], list[Row]], key: str) -> list[Row]:
    """Read from the first page to the last; each page begins with the last row of the one before.

    If that row has kept its place, the rows before it were all read: new ones have higher ids and come at the end.
    """
    rows: list[Row] = []
    while True:
        page = read(max(len(rows) - 1, 0))
        total = getattr(page, "total_count", 0)
        if rows and (not page or key not in page[0] or page[0][key] != rows[-1].get(key)):
            raise Moved("its pages do not continue each other")
        rows += page[1:] if rows else page
        names = [row[key] for row in rows if key in row]
        if len(set(names)) < len(names):
            raise Moved("it names something twice")
        # A longer page than was asked for is everything: the method knows no pages.
        if len(page) != PAGE_SIZE or len(rows) == total:
            break
    if len(rows) < total:
        raise Moved(f"{len(rows)} of {total} came")
    return rows


def new_client(
    credentials: Credentials, heed: Callable[[Mapping[str, str]], None] = lambda _: None
) -> SoftLayer.BaseClient:
    """Build an official client from these settings alone: it reads no file and, for a local account, no environment.

    Args:
        heed: called with the headers of every answer.
    """
    is_rest = "/rest" in credentials.endpoint
    make = SoftLayer.RestTransport if is_rest else SoftLayer.XmlRpcTransport
    transport = make(
        endpoint_url=credentials.endpoint,
        # How long a whole call may take depends on the call, and ``Api.once`` sees to it.
        timeout=(min(CONNECT_TIMEOUT_S, credentials.timeout_s), LONGEST_ORDER_S),
        proxy=None if credentials.is_local else credentials.proxy,
        verify=credentials.authority or True,
    )
    session = transport.client
    for scheme in ("http://", "https://"):
        session.mount(scheme, OnceAdapter())
    # A redirected order would be sent twice, with the key, to whatever address an answer names.
    session.max_redirects = 0
    session.trust_env = not credentials.is_local

    readable = readable_json if is_rest else readable_xml

    def prepare(response: Response, *_: Any, **__: Any) -> None:
        heed(response.headers)
        response._content = readable(response.content)  # The client parses it in the call that has read it.

    session.hooks["response"].append(prepare)
    sign = SoftLayer.BasicHTTPAuthentication if is_rest else SoftLayer.BasicAuthentication
    # The client reads ~/.softlayer unless it is given another file.
    auth = sign(credentials.username, credentials.api_key)
    return SoftLayer.BaseClient(auth=auth, transport=transport, config_file=os.devnull)


def readable_xml(body: bytes) -> bytes:
    """Put U+FFFD where a text holds what XML 1.0 forbids (its section 2.2), so that one name does not hide a whole list."""
    body = FORBIDDEN_BYTES.sub(_allowed, body)
    if OTHER_ENCODING.match(body):
        return body
    return body.decode("utf-8", "replace").encode()


def readable_json(body: bytes) -> bytes:
    """Put a question mark where a text holds half a surrogate pair, which nothing can write again."""
    if b"\\ud" not in body.lower():
        return body
    try:
        return json.dumps(json.loads(body), ensure_ascii=False).encode("utf-8", "replace")
    except ValueError:
        return body


def _allowed(found: re.Match[bytes]) -> bytes:
    digits, base = (found[1], 16) if found[1] else (found[2], 10)
    return found[0] if digits and _is_character(int(digits, base)) else INSTEAD


def _is_character(number: int) -> bool:
    return (
        number in (0x9, 0xA, 0xD)
        or 0x20 <= number <= 0xD7FF
        or 0xE000 <= number <= 0xFFFD
        or 0x10000 <= number <= 0x10FFFF
    )


def fault_code(error: SoftLayer.SoftLayerAPIError, text: str) -> str:
    """Name what happened: a fault by its code, everything that a gateway or a broken wire may have done by ours.

    Over REST an ordinary refusal is a 500 with SoftLayer's sentence in it; a gateway's is a page or nothing.
    """
    code = str(error.faultCode)
    if code == "0":
        return NOT_TRUSTED if "CERTIFICATE_VERIFY_FAILED" in text else NO_ANSWER
    if isinstance(error, SoftLayer.TransportError) and code.isdigit():
        return f"HTTP {code}"
    is_page = text.lstrip().startswith("<") or text in ("", "Empty response.")
    if code == "200" or (code.isdigit() and is_page):
        return "unreadable answer"
    return f"HTTP {code}" if code.isdigit() and int(code) > 500 else code
