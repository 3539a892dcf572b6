"""The life of a guest: ordered, held for approval, built, cancelled; until an order is approved nothing is built or billed."""

from emulator.softlayer import billing, cancellation, networks, transactions
from emulator.softlayer.account import Account
from emulator.softlayer.billing import Billed
from emulator.softlayer.faults import not_found, public
from emulator.softlayer.orders import GuestOrder, Placement, billed_prices, check_room, cost, lines_of
from emulator.softlayer.records import BillingItem, Component, Guest, GuestDisk, Order

PENDING, APPROVED, COMPLETED, REFUSED, CANCELLED = "PENDING_APPROVAL", "APPROVED", "COMPLETED", "REFUSED", "CANCELLED"


def place(account: Account, orders: list[GuestOrder]) -> tuple[Order, list[Guest]]:
    """Accept an order whole or not at all; build and bill its guests now, or hold it for approval."""
    is_held = account.settings.approval == "pending"
    check_room(account, orders)
    interfaces = [_placed(account, order) for order in orders]
    record = Order(account.next_id(), account.now, str(cost(account, orders)), orders[0].hourly, [], [])
    account.store.orders[record.id] = record
    guests = []
    for order, (private, public_router) in zip(orders, interfaces, strict=True):
        guests.append(_build(account, order, record, (private, public_router)))
    record.guest_ids = [guest.id for guest in guests]
    if is_held:
        hold(account, record)
    else:
        for guest in guests:
            transactions.provision(account, guest)
    return record, guests


def cancel(account: Account, guest: Guest) -> None:
    """Cancel the billing item at once; the clock starts to reclaim the guest."""
    if guest.cancelled is not None:
        raise public(f"Virtual guest {guest.id} is already cancelled.")
    if waits(account, guest):
        cancel_waiting(account, guest)
        return
    cancellation.cancel(account, account.store.billing_items[guest.billing_item_id], immediate=True)


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


def cancel_waiting(account: Account, guest: Guest) -> None:
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


def _placed(account: Account, order: GuestOrder) -> tuple:
    """The pair of routers for an order."""
    return networks.routers_for(
        account, order.datacenter, _router(account, order.private, True), _router(account, order.public, False)
    )


def _router(account: Account, placement: Placement, private: bool):  # noqa: ANN202
    router_id = placement.router_id
    if placement.vlan_id:
        router_id = account.store.vlans[placement.vlan_id].router_id
    router = account.catalog.router(router_id) if router_id else None
    if router and router.private != private:
        raise public(f"Router {router.hostname} does not lead to the {'private' if private else 'public'} network.")
    return router


def _build(account: Account, order: GuestOrder, record: Order, routers: tuple) -> Guest:
    item = _bill(account, order, record)
    sides = ((0, routers[0], order.private), (1, routers[1], order.public))
    guest = Guest(
        id=account.next_id(),
        uuid=account.token(),
        hostname=order.hostname,
        domain=order.domain,
        datacenter=order.datacenter.name,
        flavor=order.flavor.key_name,
        created=item.opened,
        order_id=record.id,
        billing_item_id=item.id,
        components=[_interface(account, order, port, router, wanted) for port, router, wanted in sides],
        disks=[_disk(account, 0, order.flavor.boot_gb), *(_disk(account, *disk) for disk in order.disks)],
        hourly=order.hourly,
        system=order.system.codes[0] if order.system else None,
        image_id=order.image.id if order.image else None,
        ssh_key_ids=list(order.ssh_key_ids),
        ssh_keys=[account.store.ssh_keys[key_id].key for key_id in order.ssh_key_ids],
        user_data=order.user_data,
        password=account.token()[:8],
        begun=False,
    )
    item.resource_id = guest.id
    account.store.guests[guest.id] = guest
    return guest


def _bill(account: Account, order: GuestOrder, record: Order) -> BillingItem:
    prices = billed_prices(account, order)
    record.lines += lines_of(prices, order.hostname, order.domain)
    what = Billed("guest", 0, order.datacenter.name, order.hostname, order.domain, order.flavor.key_name)
    return billing.open_item(account, record, prices, what, hourly=order.hourly)


def _interface(account: Account, order: GuestOrder, port: int, router, wanted: Placement) -> Component:  # noqa: ANN001
    named = account.store.vlans.get(wanted.vlan_id or 0)
    vlan = named or networks.vlan_behind(account, router)
    # No address is taken twice: the guest is not among the records yet, but its other interface is on another network.
    address = networks.free_address(account, vlan)
    number = account.next_id()
    mac = "06:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}".format(port, *number.to_bytes(4, "big"))
    return Component(number, port, mac, address, vlan.id, order.port_speed, list(wanted.groups))


def _disk(account: Account, device: int, capacity_gb: int) -> GuestDisk:
    return GuestDisk(account.next_id(), account.next_id(), device, capacity_gb)


def _check_pending(order: Order) -> None:
    if order.status != PENDING:
        raise public(f"Order {order.id} does not wait for approval; it is {order.status}.")


def _remove(account: Account, order: Order, guest_id: int) -> None:
    order.held = [item for item in order.held if item.resource_id != guest_id]
    del account.store.guests[guest_id]
    networks.release(account)
