"""SoftLayer as the kernel sees it: what it lists and finds, how it takes orders and claims, and what its answers mean."""

import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from microcluster.accounts.shared.account import (
    EXTENSION,
    TERMS,
    Claim,
    Found,
    Identity,
    Market,
    OrderRequest,
    OrderStatus,
    Pending,
    Quote,
    Resource,
    Terms,
)
from microcluster.accounts.shared.api_calls import Row, SharedList, at, at_once, text_at
from microcluster.accounts.shared.errors import OrderWithoutId, ProviderError
from microcluster.accounts.shared.order import Operation
from microcluster.accounts.shared.receipt import Charge
from microcluster.accounts.softlayer import billing, credentials, views
from microcluster.accounts.softlayer.api import LISTS_LAG_S, LONGEST_ORDER_S, SEEING, Api, made_id
from microcluster.accounts.softlayer.billing import BILL_MASK, ORDER_MASK
from microcluster.accounts.softlayer.errors import ApiError
from microcluster.accounts.softlayer.specs import GROUP, GUEST, KEY, LedgerSpec, Order, image_container
from microcluster.core.home import UNOWNED, ZONE, Owner, owner_in_notes

OBJECTS = {KEY: ("Security_Ssh_Key", views.KEY_MASK), GROUP: ("Network_SecurityGroup", views.GROUP_MASK)}
"""Service and mask that read one object by its id."""
OF_GUESTS = {"virtualGuests": {"domain": {"operation": f"$= .{ZONE}"}}}
LISTS = {
    GUEST: ("Account", "getVirtualGuests", {"mask": views.GUEST_MASK, "filter": OF_GUESTS}),
    KEY: ("Account", "getSshKeys", {"mask": views.KEY_MASK}),
    GROUP: ("Network_SecurityGroup", "getAllObjects", {"mask": views.GROUP_MASK}),
}
"""Service, method and options that list all objects of a kind."""
CANCEL_NOTES = ("No longer needed", "cancelled by microcluster")
"""The reason, and the note."""
CLAIM_NOTES = re.compile(
    rf"(?: rental (?P<terms>{TERMS}))? ordered from journal (?P<journal>[0-9a-f]+)(?: extended (?P<extended>{EXTENSION}))?$"
)
"""The terms come first: versions before them read the rest, up to the end."""


class SoftLayer(Market):
    """One account through one key."""

    machine = GUEST
    lists_lag_s, settled_s = LISTS_LAG_S, LISTS_LAG_S + LONGEST_ORDER_S

    def __init__(self, api: Api) -> None:
        self.api = api
        self.secrets = (api.credentials.api_key,)
        self.guest_list = self._of_stack("getVirtualGuests", views.GUEST_MASK, "virtualGuests.domain", billing.is_under)
        self.order_list = self._of_stack("getOrders", ORDER_MASK, "orders.items.domainName", billing.is_of)
        self.bill_list = self._of_stack(
            "getAllTopLevelBillingItems", BILL_MASK, "allTopLevelBillingItems.domainName", billing.is_under
        )
        self._keys = SharedList(self._key_of_id)

    def whoami(self) -> Identity:
        """Ask once who we are; the first proof that the key is valid."""
        return self._identity

    def hidden(self) -> str | None:
        """Say why machines may be billed that this user does not see."""
        lacking = self.api.lacking(SEEING)
        return f"machines that this user does not see may run and be billed, as {lacking}" if lacking else None

    def resources(self, owner: Owner | None = None, kind: str | None = None, max_age_s: float = 0.0) -> list[Resource]:
        """List resources with stack and mark, or with any mark; never somebody else's, whatever a filter let through."""
        if owner is not None and kind == GUEST:
            return self._believed([views.resource(row) for row in self.guest_list.under(owner, max_age_s)])
        kinds = [kind] if kind else [*LISTS, views.ITEM]
        found = [each for listed in at_once(self._list, kinds) for each in listed]
        return [each for each in found if each.owner is not None and owner in (None, each.owner)]

    def _list(self, kind: str) -> list[Resource]:
        if kind == views.ITEM:
            return [billing.as_resource(row) for row in billing.other_items(self.api)]
        service, method, options = LISTS[kind]
        return [views.VIEWS[kind](row) for row in self.api.read_all(service, method, **options)]

    def _believed(self, guests: list[Resource]) -> list[Resource]:
        """Take none for cancelled because this user sees no charges; one stands for all, as each look at the rights is a call."""
        doubtful = [each.id for each in guests if not each.is_alive and not each.is_billed]
        if doubtful:
            self.check_sees_all(f"looking for guest {doubtful[0]}")
        return guests

    def find(self, kind: str, object_id: str, owner: Owner, *, fresh: bool, max_age_s: float = 0.0) -> Found:
        """Read a guest, a key or a group by its id."""
        if kind == GUEST:
            return self._find_guest(object_id, owner, fresh=fresh, max_age_s=max_age_s)
        service, mask = OBJECTS[kind]
        row = self.api.find(service, object_id, mask)
        if row is None and fresh and kind == GROUP:
            return Pending(f"the account does not show {kind} {object_id} yet, as it was made only now")
        return views.VIEWS[kind](row) if row else None

    def prepare(self, op: Operation, request: OrderRequest) -> Order:
        """Write an order, for a user who can see and cancel what it makes: rights may have changed since the ledger's check.

        With an image it is a container that the service verifies.
        """
        order: Order = request.order
        self.api.check_to_order()
        if order.image_id is None:
            return order
        image = self.api.find("Virtual_Guest_Block_Device_Template_Group", order.image_id, "mask[id,globalIdentifier]")
        if image is None:
            raise ProviderError(
                f"ordering {order.content['hostname']}: the account has no image {order.image_id}. Name another image or an os."
            )
        generated = self.api.read("Virtual_Guest", "generateOrderTemplate", order.content)
        container = image_container(generated, order.content, image)
        self.api.read("Product_Order", "verifyOrder", container)
        return Order("Product_Order", "placeOrder", container)

    def order(self, order: Order) -> str:
        """Send an order, exactly once, and return the id of what it makes."""
        call = f"{order.service}::{order.method}"
        answer = self.api.once(order.service, order.method, order.content, limit_s=LONGEST_ORDER_S)
        if order.method == "placeOrder" and isinstance(answer, dict):
            guests = at(answer, "orderDetails.virtualGuests") or [{}]
            if not guests[0].get("id") and answer.get("orderId"):
                raise OrderWithoutId(f"calling {call}", str(answer["orderId"]))
            answer = guests[0]
        return made_id(answer, call)

    def quote(self, stack: str, nodes: int, order: Mapping[str, Any]) -> Quote:
        """Let the account verify the order of one guest: all are equal."""
        return billing.quote(self.api, LedgerSpec(mark=UNOWNED, stack=stack, nodes=nodes, **order))

    def orders(self, owner: Owner, max_age_s: float = 0.0) -> list[OrderStatus]:
        """List the orders of a stack, oldest first."""
        guests = self.guest_list.under(owner, max_age_s)
        shown = {str(each.get("hostname")) for each in guests}
        rows = sorted(self.order_list.under(owner, max_age_s), key=lambda each: int(each["id"]))
        return [billing.as_status(each, shown) for each in rows]

    def standing(
        self, owner: Owner, hostname: str | None, since: datetime | None, numbers: Sequence[str], max_age_s: float = 0.0
    ) -> OrderStatus | None:
        """Find an open billing item of this host name that no listed guest has, or an order that stands.

        The lists say what to look at, and each is read by its id, as lists lag behind cancellations too.
        """
        bill = self.bill_list.under(owner, max_age_s)
        numbered = self._standing_order([{"id": each} for each in numbers], bill)
        if numbered is not None or hostname is None:
            return numbered
        named = [each for each in bill if each.get("hostName") == hostname]
        for item_id in billing.open_without_guest(named, self.guest_list.under(owner, max_age_s)) if named else ():
            item = self.api.find("Billing_Item", item_id, BILL_MASK)
            if item and not item.get("cancellationDate"):
                return OrderStatus(item_id, f"billing item {item_id} of {hostname} is open")
        listed = self.order_list.under(owner, max_age_s) if since else []
        return self._standing_order([each for each in listed if billing.may_be_of(each, hostname, since)], bill)

    def claim(self, owner: Owner, *, key_ids: Sequence[str] = (), max_age_s: float = 0.0) -> Claim | None:
        """Read the journal's name in the notes of the stack's ssh key; the oldest of several, so that all look at the same."""
        found = self._keys_of(owner, key_ids, max_age_s)
        if not found:
            found = self._keys_of(owner, [each.id for each in self.resources(owner, KEY)], max_age_s)
        return _claim_of(min(found, key=lambda each: int(each["id"]))) if found else None

    def write_claim(self, claim: Claim, owner: Owner) -> None:
        """Write the claim into the notes of the stack's ssh key."""
        notes = claim_notes(owner, str(claim.journal), claim.extended, claim.terms)
        self.api.ensure("Security_Ssh_Key", "editObject", {"notes": notes}, id=int(claim.object_id))

    def charges(self, owner: Owner, known: Iterable[str] = (), *, exact: bool = True) -> tuple[Charge, ...]:
        """List past and running charges."""
        return billing.charges(self, owner, known, exact=exact)

    def end(self, resource: Resource) -> Pending | None:
        """Cancel a guest, or remove a key or a group."""
        end, right = {
            GUEST: (_cancel_guest, "SERVER_CANCEL"),
            KEY: (_remove_key, "CUSTOMER_SSH_KEY_MANAGEMENT"),
            GROUP: (_remove_group, "MANAGE_SECURITY_GROUPS"),
        }[resource.kind]
        try:
            return end(self.api, resource)
        except ApiError as error:
            error.grant = f"slcli user edit-permissions {self.api.credentials.username} --enable -p {right}"
            raise

    def _standing_order(self, sought: Sequence[Row], bill: Sequence[Row]) -> OrderStatus | None:
        """Find the first of these orders that was neither refused nor is over; one that cannot be read is no refused one."""
        for each in sought:
            order = {**each, **(self.api.find("Billing_Order", str(each["id"]), billing.STATUS_MASK) or {})}
            if not billing.is_refused(order) and not billing.is_over(order, bill):
                return billing.as_status(order)
        return None

    def _find_guest(self, guest_id: str, owner: Owner, *, fresh: bool, max_age_s: float) -> Found:
        try:
            row = self.guest(guest_id, owner, max_age_s)
        except ApiError as error:
            if error.is_unready:
                return Pending(f"guest {guest_id} is too fresh to be shown")
            raise
        if row is None:
            return self._missing(guest_id, owner, fresh=fresh, max_age_s=max_age_s)
        return self._believed([views.resource(row)])[0]

    def guest(self, guest_id: str, owner: Owner, max_age_s: float = 0.0) -> Row | None:
        """Read one guest by its id, or above 0 from the list that all waiters share, if that shows it."""
        for guest in self.guest_list.under(owner, max_age_s) if max_age_s else ():
            if str(guest["id"]) == guest_id:
                return guest
        return self.api.find("Virtual_Guest", guest_id, views.GUEST_MASK)

    def _missing(self, guest_id: str, owner: Owner, *, fresh: bool, max_age_s: float) -> Pending | None:
        """Decide what it means that the account does not show a guest; None: it is gone, and this user would see it.

        Right after its order a guest answers "not found" and is in no list, so that its absence alone proves nothing.
        """
        hidden = f"the account does not show guest {guest_id}"
        if fresh:
            return Pending(f"{hidden} yet, as it was ordered only now")
        unclaimed = billing.open_without_guest(
            self.bill_list.under(owner, max_age_s), self.guest_list.under(owner, max_age_s)
        )
        if unclaimed:
            return Pending(f"{hidden}, but billing item {', '.join(unclaimed)} is open")
        waiting = [each for each in self.orders(owner, max_age_s) if each.is_waiting and not each.is_shown]
        if waiting:
            return Pending(f"{hidden}, and {waiting[0].described}")
        self.check_sees_all(f"looking for guest {guest_id}")
        return None

    def _keys_of(self, owner: Owner, key_ids: Sequence[str], max_age_s: float) -> list[Row]:
        """Read keys by their ids, as a list may show their notes late."""
        rows = [row for each in key_ids for row in self._keys.under(each, max_age_s)]
        return [row for row in rows if owner_in_notes(row.get("notes")) == owner]

    def _key_of_id(self, key_id: str) -> list[Row]:
        found = self.api.find("Security_Ssh_Key", key_id, "mask[id,notes]")
        return [found] if found else []

    def _of_stack(self, method: str, mask: str, domain: str, is_ours: Callable[[Row, Owner], bool]) -> SharedList:
        """List rows with stack and mark in their domain, closed billing items included.

        Args:
            domain: where that stands, for the filter.
            is_ours: looks again, as the service ignores a filter that it does not know, and lists everybody's.
        """

        def fetch(owner: Owner) -> list[Row]:
            tree: Any = {"operation": f"$= {owner.domain}"}
            for key in reversed(domain.split(".")):
                tree = {key: tree}
            listed = self.api.read_all("Account", method, mask=mask, filter=tree)
            return [each for each in listed if is_ours(each, owner)]

        return SharedList(fetch)

    @cached_property
    def _identity(self) -> Identity:
        key = self.api.credentials

        def ask(attempts: int) -> Row:
            return self.api.read("Account", "getObject", mask="mask[id,companyName]", attempts=attempts)

        asked = f"opening the account at {key.endpoint} as {key.username}"
        found = self.api.opened(ask, asked, "the key file or SL_API_KEY", "python -m emulator start")
        name = text_at(found, "companyName")
        return Identity(str(found["id"]), name, key.username, key.endpoint, key.is_local)


def account_of(
    config_file: str | None,
    exported: Mapping[str, str] = os.environ,
    stop: threading.Event | None = None,
    time_scale: float = 1.0,
) -> SoftLayer:
    """Return the account of a key; nobody is called yet.

    Args:
        exported: where SL_USERNAME and SL_API_KEY are looked for when no file is named.

    Raises:
        CredentialsError: there is no key that could open it.
    """
    return SoftLayer(Api(credentials.load(config_file, exported), stop, time_scale))


def claim_notes(owner: Owner, journal: str, extended: str = "", terms: Terms | None = None) -> str:
    """Write the notes of the stack's key: whose it is, which journal orders with it, and the rental's terms and extension."""
    rental = f" rental {terms.word}" if terms else ""
    return f"{owner.notes}{rental} ordered from journal {journal}" + (f" extended {extended}" if extended else "")


def _claim_of(key: Row) -> Claim:
    found = CLAIM_NOTES.search(text_at(key, "notes"))
    if found is None:
        return Claim(str(key["id"]), None)
    return Claim(str(key["id"]), found["journal"], found["extended"] or "", Terms.read(found["terms"] or ""))


def _cancel_guest(api: Api, guest: Resource) -> None:
    """Cancel a guest at once. Its groups, which are its firewall if this is refused, stay until a group is deleted."""
    number, item = int(guest.id), guest.row.get("billingItem")
    if guest.row.get("hourlyBillingFlag") is False and item:
        # A monthly one would otherwise run on to its anniversary.
        api.once("Billing_Item", "cancelItem", True, True, *CANCEL_NOTES, id=int(item["id"]))
    else:
        api.once("Virtual_Guest", "deleteObject", id=number)


def _remove_key(api: Api, key: Resource) -> None:
    api.found(lambda: api.ensure("Security_Ssh_Key", "deleteObject", id=int(key.id)))


def _remove_group(api: Api, group: Resource) -> Pending | None:
    """Take our own guests out of the group and remove it; what somebody else put into it is theirs to take out."""
    members = {
        int(each["networkComponentId"]): at(each, "networkComponent.guest") or {}
        for each in group.row.get("networkComponentBindings") or []
    }
    ours = [component for component, guest in members.items() if billing.is_under(guest, group.owner)]
    try:
        if ours:
            api.once("Network_SecurityGroup", "detachNetworkComponents", ours, id=int(group.id))
        api.once("Network_SecurityGroup", "deleteObject", id=int(group.id))
    except ApiError as error:
        if error.is_forbidden:
            raise
        foreign = {views.described(guest) for component, guest in members.items() if guest and component not in ours}
        users = f"by {', '.join(sorted(foreign))}, not ours" if foreign else "while cancelled guests are reclaimed"
        return Pending(f"still in use {users}; nothing is billed for it ({error.text})")
    return None
