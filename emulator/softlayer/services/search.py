"""SoftLayer_Search: guests by their type, which is all that the official client asks for."""

from emulator.softlayer.account import Account
from emulator.softlayer.calls import Call
from emulator.softlayer.faults import public
from emulator.softlayer.objects import guests
from emulator.softlayer.views import Listing, View


def search(account: Account, call: Call) -> Listing:
    """SoftLayer_Search::advancedSearch for guests; only the object type is read."""
    text = call.argument(0)
    if "SoftLayer_Virtual_Guest" not in text:
        raise public(f"The emulator searches SoftLayer_Virtual_Guest alone, not '{text}'.")
    every = sorted(account.store.guests.items())
    return Listing(
        [
            View(
                {"resourceType": "SoftLayer_Virtual_Guest"},
                {"resource": lambda guest=guest: guests.guest(account, guest)},
            )
            for _, guest in every
        ]
    )


SERVICES = {"SoftLayer_Search": {"advancedSearch": search}}
