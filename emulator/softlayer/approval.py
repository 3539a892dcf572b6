"""Orders that wait for approval: until then nothing is built and nothing billed."""

from emulator.softlayer import networks, transactions
from emulator.softlayer.account import Account
from emulator.softlayer.faults import not_found, public
from emulator.softlayer.records import Guest, Order

PENDING, APPROVED, COMPLETED, REFUSED, CANCELLED = "PENDING_APPROVAL", "APPROVED", "COMPLETED", "REFUSED", "CANCELLED"


def status_of(account: Account, order: Order) -> str:
    """An approved order moves on when all that it made is there."""
    guests = [account.store.guests.read(each) for each in order.guest_ids]
    is_over = all(guest is None or guest.provisioned for guest in guests)
    return COMPLETED if order.status == APPROVED and is_over else order.status


def hold(account: Account, order: Order) -> None:
    """Hold a placed order: its billing items are not open before a person approves it."""
    items = account.store.billing_items
    order.status = PENDING
    order.held = [items.pop(account.store.guests[guest_id].billing_item_id) for guest_id in order.guest_ids]


def approve(account: Account, order: Order) -> None:
    """Begin to bill and to build what was ordered."""
    _check_pending(order)
    order.status, order.approved = APPROVED, account.now
    for item in order.held:
        item.opened = account.now
        for fee in item.fees:
            fee.opened = account.now
        account.store.billing_items[item.id] = item
        transactions.provision(account, account.store.guests[item.resource_id])
    order.held = []


def refuse(account: Account, order: Order) -> None:
    """Remove everything that waits with the order."""
    _check_pending(order)
    for item in list(order.held):
        _remove(account, order, item.resource_id)
    order.status = REFUSED


def waits(account: Account, guest: Guest) -> bool:
    """Whether a guest waits for the approval of its order."""
    order = account.store.orders.read(guest.order_id)
    return order is not None and order.status == PENDING


def cancel(account: Account, guest: Guest) -> None:
    """Take a guest out of its order; the order is cancelled with its last one."""
    order = account.store.orders[guest.order_id]
    _remove(account, order, guest.id)
    if not order.held:
        order.status = CANCELLED


def order_of(account: Account, number: int) -> Order:
    """The order with this id."""
    if number not in account.store.orders:
        raise not_found(number)
    return account.store.orders[number]


def _check_pending(order: Order) -> None:
    if order.status != PENDING:
        raise public(f"Order {order.id} does not wait for approval; it is {order.status}.")


def _remove(account: Account, order: Order, guest_id: int) -> None:
    order.held = [item for item in order.held if item.resource_id != guest_id]
    del account.store.guests[guest_id]
    networks.release(account)
