"""Transactions: steps by name on the account's clock, and the effects of their end."""

from emulator.softlayer import cancellation, networks
from emulator.softlayer.account import Account
from emulator.softlayer.records import Guest, Transaction

PROVISION = "Cloud Instance Provision"
SETUP = "Service Setup"
RECLAIM = "Cloud Instance Reclaim"

STEPS = {
    PROVISION: (
        "ASSIGN_HOST",
        "CLONE_CLOUD_TEMPLATE",
        "ATTACH_PRIMARY_DISK",
        "CLOUD_PROVISION_SETUP",
        "CLOUD_CONFIGURE_METADATA_DISK",
        "POWER_ON",
        "INSTALL_COMPLETE",
    ),
    SETUP: ("SERVICE_SETUP",),
    RECLAIM: ("CLOUD_ISO_BOOT_TEAR_DOWN", "CLOUD_INSTANCE_NETWORK_RECLAIM", "RECLAIM_NETWORK"),
}
SETUP_SHARE = 1 / 8  # of the time that provisioning takes


def provision(account: Account, guest: Guest) -> None:
    """Begin to build a guest."""
    begin(account, guest, PROVISION, (1 - SETUP_SHARE) * _building_s(account))


def begin(account: Account, guest: Guest, group: str, duration_s: float, after_s: float = 0.0) -> None:
    """Begin a transaction on a guest, perhaps a little later."""
    guest.transaction = Transaction(account.next_id(), group, account.now + after_s, duration_s)
    guest.begun = True


def step(transaction: Transaction, now: float) -> str:
    """The current step of a transaction; it stays in the last one until its end."""
    steps = STEPS[transaction.group]
    share = (now - transaction.started) / transaction.duration_s if transaction.duration_s else 1.0
    return steps[min(len(steps) - 1, int(max(0.0, share) * len(steps)))]


def due_at(transaction: Transaction) -> float:
    """The moment at which a transaction ends, if its machine is ready by then."""
    return transaction.started + transaction.duration_s


def advance(account: Account) -> bool:
    """Do and save everything that is due, or nothing of it; return whether anything was."""
    try:
        ended = cancellation.end_due(account)
        now = account.now
        due = [guest.id for guest in account.store.guests.read_all() if _is_due(account, guest, now)]
        for guest_id in due:
            _advance_guest(account, account.store.guests[guest_id], now)
        happened = ended or bool(due)
        if happened:
            account.store.flush()
    except BaseException:
        account.store.rollback()
        raise
    return happened


def next_moment(account: Account) -> float | None:
    """The next moment at which the clock alone begins or ends a transaction or a cancellation."""
    moments = [item.ends for item in cancellation.pending(account)]
    for guest in account.store.guests.read_all():
        if guest.transaction:
            moments += [guest.transaction.started, due_at(guest.transaction)]
    return min((moment for moment in moments if moment > account.now), default=None)


def _is_due(account: Account, guest: Guest, now: float) -> bool:
    if transaction := guest.active(now):
        return now >= due_at(transaction) and _machine_is_done(account, guest)
    return guest.cancelled is not None


def _advance_guest(account: Account, guest: Guest, now: float) -> None:
    if transaction := guest.active(now):
        guest.transaction, guest.last_transaction = None, transaction
        _ENDINGS[transaction.group](account, guest)
    else:
        begin(account, guest, RECLAIM, account.settings.reclaim_s)


def _machine_is_done(account: Account, guest: Guest) -> bool:
    if not account.waits_for_machines:
        return True
    return guest.machine_gone if guest.cancelled is not None else guest.boots_done >= guest.boots_wanted


def _building_s(account: Account) -> float:
    """The time of a guest's transactions until it is provisioned, without the gap between them."""
    settings = account.settings
    return settings.provisioning_s - min(settings.gap_s, settings.provisioning_s / 2)


def _end_provision(account: Account, guest: Guest) -> None:
    """The guest is installed; after a gap without a transaction it is set up."""
    building_s = _building_s(account)
    begin(account, guest, SETUP, SETUP_SHARE * building_s, account.settings.provisioning_s - building_s)


def _end_setup(account: Account, guest: Guest) -> None:
    guest.provisioned = account.now


def _end_reclaim(account: Account, guest: Guest) -> None:
    del account.store.guests[guest.id]
    networks.release(account)


_ENDINGS = {
    PROVISION: _end_provision,
    SETUP: _end_setup,
    RECLAIM: _end_reclaim,
}
