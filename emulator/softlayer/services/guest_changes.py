"""What can be changed on a living guest without an order: names, tags, user data, speeds, power."""

from emulator.softlayer import guests as life
from emulator.softlayer import transactions
from emulator.softlayer.account import Account
from emulator.softlayer.calls import Call
from emulator.softlayer.create_template import number, read_name
from emulator.softlayer.faults import INVALID_PARAMETERS, Fault, invalid_value, public
from emulator.softlayer.objects import guests
from emulator.softlayer.records import Guest
from emulator.softlayer.services.finding import changes_of, find_guest
from emulator.softlayer.views import View

SPEEDS = (0, 10, 100, 1000)


def edit(account: Account, call: Call) -> bool:
    """Change hostname, domain or notes; the machine itself is not changed."""
    guest, changes = find_guest(account, call), changes_of(call, "hostname", "domain", "notes")
    hostname, domain = read_name({"hostname": guest.hostname, "domain": guest.domain} | changes)
    guest.hostname, guest.domain, guest.modified = hostname, domain, account.now
    guest.notes = guest.notes if changes.get("notes") is None else str(changes["notes"])
    item = account.store.billing_items.get(guest.billing_item_id)
    if item:  # It is not there while the order waits for approval.
        item.hostname, item.domain = hostname, domain
    return True


def set_tags(account: Account, call: Call) -> bool:
    """Replace all tags of a guest."""
    find_guest(account, call).tags = [tag.strip() for tag in str(call.argument(0)).split(",") if tag.strip()]
    return True


def set_user_metadata(account: Account, call: Call) -> list[View]:
    """Replace the user data; the machine sees it after its next boot."""
    values = call.argument(0)
    guest = find_guest(account, call)
    guest.user_data = str(values[0]) if values else ""
    return guests.guest(account, guest).read("userData")


def set_public_speed(account: Account, call: Call) -> bool:
    """Set the speed of the public interface; 0 disables it."""
    guest = find_guest(account, call)
    if guest.public is None:
        raise public(f"Virtual guest {guest.id} has no public interface.")
    guest.public.max_speed = _speed(call)
    return True


def set_private_speed(account: Account, call: Call) -> bool:
    """Set the speed of the private interface; 0 disables it."""
    find_guest(account, call).private.max_speed = _speed(call)
    return True


def power_on(account: Account, call: Call) -> bool:
    """Start the machine."""
    _manageable(account, call).powered = True
    return True


def power_off(account: Account, call: Call) -> bool:
    """Stop the machine; its charge goes on."""
    _manageable(account, call).powered = False
    return True


def reboot(account: Account, call: Call) -> bool:
    """Stop and start the machine."""
    life.restart(_manageable(account, call))
    return True


def reload(account: Account, call: Call) -> str:
    """Reload the operating system: a transaction with a restart; the emulated disks keep their content."""
    if call.argument(0, "") != "FORCE":
        raise Fault(INVALID_PARAMETERS, "reloadOperatingSystem is only emulated with the token 'FORCE'.")
    guest = _manageable(account, call)
    life.restart(guest)
    work = transactions.begin(account, guest, transactions.RELOAD, transactions.RELOAD_S)
    guest.reload_transaction_id = work.id
    return "1"


def _manageable(account: Account, call: Call) -> Guest:
    guest = find_guest(account, call)
    if guest.transaction:
        raise public(f"Virtual guest {guest.id} has active transaction {guest.transaction.id}.")
    return guest


def _speed(call: Call) -> int:
    speed = number(call.argument(0), "speed")
    if speed not in SPEEDS:
        raise invalid_value("speed", f"{speed} is not one of 0, 10, 100, 1000.")
    return speed


METHODS = {
    "editObject": edit,
    "setTags": set_tags,
    "setUserMetadata": set_user_metadata,
    "setPublicNetworkInterfaceSpeed": set_public_speed,
    "setPrivateNetworkInterfaceSpeed": set_private_speed,
    "powerOn": power_on,
    "powerOff": power_off,
    "powerOffSoft": power_off,
    "rebootDefault": reboot,
    "rebootSoft": reboot,
    "rebootHard": reboot,
    "reloadOperatingSystem": reload,
}
