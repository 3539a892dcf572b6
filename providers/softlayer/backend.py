"""SoftLayer as the kernel sees it: what it lists and finds, how it takes orders, and what its answers mean."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

from providers.rental.backend import Backend, Belonging, Claim, Found, OrderRequest, OrderStatus, Tell, Thing
from providers.rental.errors import CallError, ProviderError
from providers.rental.operation import Identity, Operation
from providers.rental.owner_mark import Owner
from providers.rental.receipt import Charge
from providers.rental.waiting import Deadline
from providers.softlayer import (
    billing,
    guest_lookup,
    guest_order,
    guest_view,
    marked_inventory,
    order_status,
    security_group,
    ssh_key,
    virtual_guest,
)
from providers.softlayer.account import (
    BILL_MASK,
    Account,
    check_to_order,
    check_to_prove,
    check_to_see,
    claim_notes,
    stack_key,
)
from providers.softlayer.api import LISTS_LAG_S, LONGEST_ORDER_S
from providers.softlayer.errors import ApiError
from providers.softlayer.guest_order import Order

CANCEL_NOTES = ("No longer needed", "cancelled by microcluster")
"""The reason, and the note."""


class SoftLayer(Backend):
    """One account, as a ``Backend``."""

    machine, machine_label = virtual_guest.KIND, marked_inventory.GUEST
    other_kinds = (ssh_key.KIND, security_group.KIND)
    lists_lag_s, longest_call_s = LISTS_LAG_S, LONGEST_ORDER_S

    def __init__(self, account: Account) -> None:
        self.account = account

    @property
    def username(self) -> str:
        """The key's user."""
        return self.account.api.credentials.username

    @property
    def grant_cancelling(self) -> str:
        """The command by which a person grants the user the right to cancel."""
        return f"slcli user edit-permissions {self.username} --enable -p SERVER_CANCEL"

    @property
    def secrets(self) -> tuple[str, ...]:
        """The key."""
        return self.account.secrets

    def identity(self) -> Identity:
        """Ask once who we are."""
        return self.account.identity()

    def list(self, kind: str, owner: Owner) -> list[Thing]:
        """List the guests or groups that bear stack and mark."""
        if kind == virtual_guest.KIND:
            return [guest_view.thing(each) for each in self.account.guest_list.under(owner)]
        return security_group.listed(self.account, owner)

    def find(self, kind: str, object_id: str, owner: Owner, *, fresh: bool, max_age_s: float = 0.0) -> Found:
        """Read a guest or a group by its id."""
        if kind == virtual_guest.KIND:
            found = guest_lookup.find(self.account, owner, object_id, fresh=fresh, max_age_s=max_age_s)
            return guest_view.thing(found) if isinstance(found, dict) else found
        return security_group.find(self.account, object_id, fresh=fresh)

    def look(self, op: Operation, request: OrderRequest) -> Found:
        """Look for a key, which the account knows by its material."""
        return ssh_key.look(self.account, request)

    def prepare(self, request: OrderRequest) -> Order:
        """Write the order, for a user who can see and cancel what it makes: rights may have changed since the ledger's check."""
        check_to_order(self.account)
        if request.kind == virtual_guest.KIND:
            return guest_order.prepared(self.account.api, *request.spec)
        service = {ssh_key.KIND: "Security_Ssh_Key", security_group.KIND: "Network_SecurityGroup"}[request.kind]
        return Order(service, "createObject", request.spec)

    def order(self, order: Order) -> str:
        """Send an order, exactly once, and return the id of what it makes."""
        return guest_order.send(self.account.api, order)

    def order_status(self, order_id: str, owner: Owner) -> OrderStatus | None:
        """Read an order that was accepted; one that cannot be read is no refused one."""
        order = self.account.api.find("Billing_Order", order_id, order_status.MASK) or {"id": order_id}
        if order_status.is_refused(order) or order_status.is_over(order, self.account.bill_list.under(owner)):
            return None
        return order_status.as_status(order)

    def order_of(self, machine: Thing, max_age_s: float) -> OrderStatus | None:
        """Read the order of a guest from its billing item; before it has one, from the list of orders."""
        listed = [] if machine.is_billed else self.account.order_list.under(machine.owner, max_age_s)
        order = order_status.of_guest(machine.row, listed)
        return order and order_status.as_status(order)

    def waiting_order(self, owner: Owner) -> OrderStatus | None:
        """Find an order that waits for approval and shows no guest yet."""
        order = order_status.waiting_unshown(self.account.order_list.under(owner), self.account.guest_list.under(owner))
        return order and order_status.as_status(order)

    def unshown(self, owner: Owner, hostname: str, since: datetime | None) -> str | None:
        """Find an open billing item of this host name that no listed guest has, or an order placed since that stands.

        The lists say what to look at, and each is read by its id, as lists lag behind cancellations too.
        """
        bill = [each for each in self.account.bill_list.under(owner) if each.get("hostName") == hostname]
        unclaimed = guest_lookup.open_without_guest(bill, self.account.guest_list.under(owner)) if bill else []
        for item_id in unclaimed:
            item = self.account.api.find("Billing_Item", item_id, BILL_MASK)
            if item and not item.get("cancellationDate"):
                return f"billing item {item_id} of {hostname} is open"
        listed = self.account.order_list.under(owner) if since else []
        for each in (order for order in listed if order_status.may_be_of(order, hostname, since)):
            order = self.account.api.find("Billing_Order", str(each["id"]), order_status.MASK) or each
            if not order_status.is_refused(order) and not order_status.is_over(order, bill):
                return order_status.described(order)
        return None

    def advice(self, request: OrderRequest, error: CallError) -> str | None:
        """Say what a person does after a refusal."""
        if not isinstance(error, ApiError):
            return None
        if request.kind == virtual_guest.KIND and error.is_no_room:
            return guest_order.where_else(request.owner.stack, request.spec[0], error)
        if error.is_gone:
            return "Something that it names is gone: run 'pulumi up --refresh'."
        if error.is_forbidden:
            return "Have this user granted the right, or use another one, and run the command again."
        return None

    def read_claim(self, owner: Owner, key_ids: Sequence[str], max_age_s: float) -> Claim | None:
        """Read the journal's name in the notes of the stack's ssh key."""
        key = stack_key(self.account, owner, key_ids, max_age_s)
        if key is None:
            return None
        named = re.search(r" journal ([0-9a-f]+)$", str(key.get("notes") or ""))
        return Claim(str(key["id"]), named[1] if named else None)

    def write_claim(self, owner: Owner, claim: Claim) -> None:
        """Write the journal's name into the notes of the stack's ssh key."""
        notes = claim_notes(owner, str(claim.journal))
        self.account.api.ensure("Security_Ssh_Key", "editObject", {"notes": notes}, id=int(claim.object_id))

    def cancel(self, thing: Thing) -> None:
        """Cancel a guest at once; a monthly one would otherwise run on to its anniversary.

        It keeps its security groups: they are its firewall if this is refused. A group's own deletion takes it out of them.
        """
        guest, api = thing.row, self.account.api
        if guest.get("hourlyBillingFlag") is False and guest.get("billingItem"):
            api.once("Billing_Item", "cancelItem", True, True, *CANCEL_NOTES, id=int(guest["billingItem"]["id"]))
        else:
            api.once("Virtual_Guest", "deleteObject", id=int(guest["id"]))

    def check_visible(self, thing: Thing) -> None:
        """Refuse to take a guest for cancelled if this user sees no billing items."""
        if thing.kind == virtual_guest.KIND and not thing.is_alive and not thing.is_billed:
            check_to_see(self.account, thing.id)

    def check_to_prove(self) -> None:
        """Refuse to call an account clean for a user who does not see all of it."""
        check_to_prove(self.account)

    def everything(self) -> tuple[Belonging, ...]:
        """List what bears any mark of microcluster."""
        return marked_inventory.everything(self.account)

    def remove(self, kind: str, object_id: str, owner: Owner, deadline: Deadline, tell: Tell) -> None:
        """Remove a key or a group that bears the mark."""
        if kind in (ssh_key.KIND, marked_inventory.KEY):
            ssh_key.remove(self.account, object_id, owner)
        elif kind in (security_group.KIND, marked_inventory.GROUP):
            security_group.remove(self.account, object_id, owner, deadline, tell)
        else:
            raise ProviderError(f"removing {kind} {object_id}: microcluster makes no such thing. Remove it by hand.")

    def charges(self, owner: Owner, known_ids: Iterable[str] = ()) -> tuple[Charge, ...]:
        """List what was and is billed."""
        return billing.charges(self.account, owner, known_ids)

    def charged_names(self, owner: Owner) -> "list[str]":
        """List the host name of each charge that the account's list shows."""
        return [str(item.get("hostName")) for item in self.account.bill_list.under(owner)]
