"""The VirtualGuest resource: adopted or ordered once, ready when it is returned, not billed any more when it is deleted."""

from collections.abc import Mapping
from typing import Any

import yaml
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from microcluster.accounts.shared.account import Pending, Resource
from microcluster.accounts.shared.api_calls import at, text_at
from microcluster.accounts.shared.order import Operation
from microcluster.accounts.shared.readiness import Readiness
from microcluster.accounts.shared.resource import Rented
from microcluster.accounts.shared.spec import Values
from microcluster.accounts.softlayer import views
from microcluster.accounts.softlayer.account import SoftLayer
from microcluster.accounts.softlayer.declared import VirtualGuest
from microcluster.accounts.softlayer.errors import ApiError
from microcluster.accounts.softlayer.specs import GUEST, GuestSpec
from microcluster.accounts.softlayer.views import GUEST_MASK, Guest
from microcluster.core.home import Owner
from microcluster.core.ssh_key import public_line

SIDES = {
    "primaryNetworkComponent": ("Public", "public_security_group_ids"),
    "primaryBackendNetworkComponent": ("Private", "private_security_group_ids"),
}


class Guests(Rented):
    """Guests as a resource."""

    KIND, DECLARED = GUEST, VirtualGuest
    TIMEOUT_S = 90 * 60.0
    REPLACE_ON = frozenset(
        {"mark", "hostname", "domain", "datacenter", "flavor", "os", "imageId", "dataDisksGb"}
        | {"backendRouterId", "privateVlanId", "sshKeyIds"}
    )
    LATER = ("publicSecurityGroupIds", "privateSecurityGroupIds")

    def lasting(self, market: SoftLayer, owner: Owner, resource_id: str, inputs: Values, old: Values) -> dict[str, Any]:
        """Derive the public host key from the user data that the guest was ordered with."""
        return {"hostKey": old.get("hostKey") or _host_key(market, resource_id)}

    def flaws(self, found: Resource, lasting: Values) -> list[str]:
        """Refuse a guest whose host key we do not know, or that a person ordered by the month."""
        flaws = [] if lasting["hostKey"] else ["its user data holds no host key"]
        return flaws + (["it is billed by the month"] if found.row.get("hourlyBillingFlag") is False else [])

    def finish(
        self, op: Operation, market: SoftLayer, spec: GuestSpec, building: Readiness, *, is_new: bool
    ) -> Resource:
        """Wait until the guest is ready, and give it what no order carries."""

        def tag(machine: Resource) -> None:
            if views.tags(machine.row) != set(spec.tags):
                market.api.ensure("Virtual_Guest", "setTags", ",".join(spec.tags), id=int(machine.id))

        ready = building.wait(meanwhile=tag)
        tag(ready)
        guest = ready.row
        _set_port_speed(market, spec, guest)
        return views.resource(attach_groups(op, market, guest, spec))

    def drift(self, found: Resource, inputs: Values) -> dict[str, Any]:
        """Return the inputs that somebody changed in the account; the order of tags and groups means nothing."""
        live = dict(super().drift(found, inputs))
        for key in self.LATER:
            if set(live.get(key) or ()) == set(inputs.get(key) or ()):
                live.pop(key, None)
        tags = views.tags(found.row)
        if tags != set(inputs.get("tags") or ()):
            live["tags"] = sorted(tags)
        return live


def public_part(user_data: str) -> str | None:
    """Derive the public host key from user data that was read back; None when it holds no key of ours.

    Derived from the private part, since that is what the machine will really use.
    """
    try:
        settings = yaml.safe_load(user_data)
        private = settings["ssh_keys"]["ed25519_private"]
        key = serialization.load_ssh_private_key(private.encode(), password=None)
    except (yaml.YAMLError, KeyError, TypeError, AttributeError, ValueError, UnsupportedAlgorithm):
        return None
    return public_line(key) if isinstance(key, Ed25519PrivateKey) else None


def _host_key(market: SoftLayer, guest_id: str) -> str | None:
    guest = market.api.find("Virtual_Guest", guest_id, "mask[id,userData[value]]") or {}
    values = [text_at(each, "value") for each in guest.get("userData") or []]
    return next((key for key in map(public_part, values) if key), None)


def _set_port_speed(market: SoftLayer, spec: GuestSpec, guest: Guest) -> None:
    for side, (name, _) in SIDES.items():
        if at(guest, f"{side}.maxSpeed") not in (None, spec.port_speed_mbps):
            method = f"set{name}NetworkInterfaceSpeed"
            market.api.ensure("Virtual_Guest", method, spec.port_speed_mbps, id=int(guest["id"]))


def changes(guest: Mapping[str, Any], spec: GuestSpec) -> list[tuple[str, str, int]]:
    """Decide by which call to attach or detach which group at which interface, so that exactly the wanted ones are there.

    The new ones are put on before the old ones come off: an interface without groups is open to everybody.
    """
    planned = []
    for side, (_, attribute) in SIDES.items():
        component = at(guest, f"{side}.id")
        if not component:
            continue
        wanted, attached = getattr(spec, attribute), views.groups(guest, side)
        new = [each for each in wanted if each not in attached]
        old = [each for each in attached if each not in wanted]
        planned += [("attachNetworkComponents", each, component) for each in new]
        planned += [("detachNetworkComponents", each, component) for each in old]
    return planned


def attach_groups(op: Operation, market: SoftLayer, guest: Guest, spec: GuestSpec) -> Guest:
    """Attach the wanted groups, then detach the others, and restart a guest whose interface had none."""
    if not changes(guest, spec):
        return guest

    def look() -> Guest | Pending:
        current_guest = market.api.read("Virtual_Guest", "getObject", id=int(guest["id"]), mask=GUEST_MASK, expect=dict)
        try:
            for method, group, component in changes(current_guest, spec):
                market.api.once("Network_SecurityGroup", method, [int(component)], id=int(group))
        except ApiError as error:
            if not error.is_transient:
                raise
            return Pending(f"looking which groups are attached, as the answer got lost ({error.text})")
        return current_guest

    current_guest = op.wait_until(f"the security groups of {views.described(guest)}", look)
    bare = [
        side for side, (_, attribute) in SIDES.items() if getattr(spec, attribute) and not views.groups(guest, side)
    ]
    if bare:
        # The first group ever of an interface takes effect only after a restart.
        op.log.warn(
            f"Restarts {views.described(guest)}: the first security group of an interface works only from then on."
        )
        market.api.ensure("Virtual_Guest", "rebootDefault", id=int(guest["id"]))
    return current_guest
