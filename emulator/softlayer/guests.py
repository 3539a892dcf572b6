"""The life of a guest: ordered, held for approval, built, cancelled; until an order is approved nothing is built or billed."""

from emulator.machines.spec import Disk
from emulator.softlayer import billing, cancellation, networks, transactions
from emulator.softlayer.account import Account
from emulator.softlayer.faults import not_found, public
from emulator.softlayer.orders import GuestOrder, billed_prices, check_room
from emulator.softlayer.records import BillingItem, Component, Guest, Order, Vlan

PENDING, APPROVED, COMPLETED, REFUSED, CANCELLED = "PENDING_APPROVAL", "APPROVED", "COMPLETED", "REFUSED", "CANCELLED"


def place(account: Account, orders: list[GuestOrder], username: str) -> tuple[Order, list[Guest]]:
    """Accept an order whole or not at all; build and bill its guests now, or hold it for approval."""
    check_room(account, orders)
    record = Order(account.next_id(), account.now, [], username)
    account.store.orders[record.id] = record
    guests = [_ordered(account, order, record) for order in orders]
    if account.settings.approval == "pending":
        record.status = PENDING
    else:
        _begin(account, record)
    return record, guests


def cancel(account: Account, guest: Guest) -> None:
    """Cancel the billing item at once; the clock starts to reclaim the guest."""
    if guest.cancelled is not None:
        raise public(f"Virtual guest {guest.id} is already cancelled.")
    order = account.store.orders[guest.order_id]
    if order.status == PENDING:
        _remove(account, order, guest.id)
        order.status = PENDING if order.held else CANCELLED
    else:
        cancellation.cancel(account, account.store.billing_items[guest.billing_item_id], immediate=True)


def status_of(account: Account, order: Order) -> str:
    """An approved order moves on when all that it made is there."""
    guests = [account.store.guests.read(each) for each in order.guest_ids]
    is_over = all(guest is None or guest.provisioned for guest in guests)
    return COMPLETED if order.status == APPROVED and is_over else order.status


def approve(account: Account, number: int) -> None:
    """Begin to bill and to build what was ordered."""
    order = _waiting(account, number)
    order.status = APPROVED
    _begin(account, order)


def refuse(account: Account, number: int) -> None:
    """Remove everything that waits with the order."""
    order = _waiting(account, number)
    for item in list(order.held):
        _remove(account, order, item.resource_id)
    order.status = REFUSED


def _waiting(account: Account, number: int) -> Order:
    if number not in account.store.orders:
        raise not_found(number)
    order = account.store.orders[number]
    if order.status != PENDING:
        raise public(f"Order {order.id} does not wait for approval; it is {order.status}.")
    return order


def _begin(account: Account, order: Order) -> None:
    for item in order.held:
        billing.open_item(account, item)
        transactions.provision(account, account.store.guests[item.resource_id])
    order.held = []


def _ordered(account: Account, order: GuestOrder, record: Order) -> Guest:
    """Keep one guest of an order, which is not built or billed yet."""
    vlan, router = account.store.vlans.get(order.private.vlan_id or 0), order.private.router_id
    if vlan:
        router = vlan.router_id
    routers = networks.routers_for(account, order.datacenter, account.catalog.router(router) if router else None)
    private = vlan or networks.vlan_behind(account, routers[0])
    public = networks.vlan_behind(account, routers[1])
    prices = billed_prices(account, order)
    record.lines += [(order.hostname, order.domain)] * len(prices)
    guest = Guest(
        id=account.next_id(),
        hostname=order.hostname,
        domain=order.domain,
        datacenter=order.datacenter.name,
        flavor=order.flavor.key_name,
        created=account.now,
        order_id=record.id,
        billing_item_id=account.next_id(),
        components=[
            _interface(account, order, 0, private, order.private.groups),
            _interface(account, order, 1, public, order.public.groups),
        ],
        disks=[Disk(0, order.flavor.boot_gb), *order.disks],
        hourly=order.hourly,
        image_id=order.image.id if order.image else None,
        system_id=order.system.id if order.system else order.image.system,
        ssh_keys=[account.store.ssh_keys[key_id].key for key_id in order.ssh_key_ids],
        user_data=order.user_data,
        password=account.token()[:8],
        begun=False,
    )
    item = BillingItem(
        id=guest.billing_item_id,
        order_id=record.id,
        resource_id=guest.id,
        hourly=order.hourly,
        opened=guest.created,
        fees=billing.fees_of(account, prices),
        hostname=order.hostname,
        domain=order.domain,
        flavor=order.flavor.key_name,
    )
    record.held.append(item)
    record.guest_ids.append(guest.id)
    account.store.guests[guest.id] = guest
    return guest


def _interface(account: Account, order: GuestOrder, port: int, vlan: Vlan, groups: tuple[int, ...]) -> Component:
    # No address is taken twice: the guest is not among the records yet, but its other interface is on another network.
    address = networks.address_on(account, vlan)
    return Component(account.next_id(), port, address, vlan.id, order.port_speed, list(groups))


def _remove(account: Account, order: Order, guest_id: int) -> None:
    order.held = [item for item in order.held if item.resource_id != guest_id]
    del account.store.guests[guest_id]
    networks.release(account)
