"""Which guests may attach a volume: changed one call at a time, as the service takes no second one meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Collection

from providers.softlayer import volumes
from providers.softlayer.account import Account
from providers.softlayer.errors import ApiError, ProviderError
from providers.softlayer.volumes import Volume
from providers.softlayer.waiting import Patience, Pending, wait_until

GUEST = "SoftLayer_Virtual_Guest"
BUSY = "MassAccessControlModification"


def changes(present: Collection[str], wanted: Collection[str]) -> tuple[list[str], list[str]]:
    """Name the guests to authorise and those that lose their access."""
    return sorted(set(wanted) - set(present)), sorted(set(present) - set(wanted))


def settle(
    account: Account,
    look: Callable[[], Volume],
    wanted: Collection[str],
    patience: Patience,
    tell: Callable[[str], None],
) -> Volume:
    """Authorise exactly these guests, and return the volume once the account shows it so."""

    def seen() -> Volume | Pending:
        volume = look()
        missing, surplus = changes(volumes.guest_ids(volume), wanted)
        if not missing and not surplus:
            return volume
        method, guests = ("allowAccessFromHostList", missing) if missing else ("removeAccessFromHostList", surplus)
        try:
            _change(account, volume, method, guests)
        except ApiError as error:
            if BUSY not in f"{error.code} {error.text}" and not error.is_weather:
                raise ProviderError(
                    f"changing who may attach {volumes.described(volume)}: {error.text} ({error.code}). "
                    "Name guests of the volume's own datacenter, and run the command again."
                ) from error
            return Pending("another change of its access is running")
        return Pending("its access is being changed")

    return wait_until("the authorisation of the volume", seen, patience, tell)


def withdraw(account: Account, volume: Volume) -> None:
    """Take every guest's access back; a refusal is left alone, for nothing may stand before a cancellation."""
    guests = sorted(volumes.guest_ids(volume))
    try:
        if guests:
            _change(account, volume, "removeAccessFromHostList", guests)
    except ApiError:
        return


def _change(account: Account, volume: Volume, method: str, guests: list[str]) -> None:
    hosts = [{"objectType": GUEST, "id": int(each)} for each in guests]
    account.api.once("Network_Storage", method, hosts, id=int(volume["id"]))
