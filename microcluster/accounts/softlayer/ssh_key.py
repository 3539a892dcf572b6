"""The SshKey resource: the stack's own public key in the account."""

from typing import Any

from microcluster.accounts.shared.account import OrderRequest, Resource
from microcluster.accounts.shared.errors import ProviderError
from microcluster.accounts.shared.order import Operation
from microcluster.accounts.shared.readiness import Readiness
from microcluster.accounts.shared.resource import Rented
from microcluster.accounts.shared.spec import Values
from microcluster.accounts.softlayer.account import SoftLayer, claim_notes
from microcluster.accounts.softlayer.declared import SshKey
from microcluster.accounts.softlayer.specs import KEY, KeySpec, Order, key_material
from microcluster.accounts.softlayer.views import KEY_MASK, as_key
from microcluster.core.home import Owner


class Keys(Rented):
    """Keys as a resource."""

    KIND, DECLARED = KEY, SshKey
    REPLACE_ON = frozenset({"mark", "publicKey"})
    LATER = ("label", "publicKey")

    def request(self, op: Operation, spec: KeySpec, owner: Owner) -> OrderRequest:
        """Write down the key, which the account knows by its material and refuses to hold twice."""
        notes = claim_notes(owner, op.journal(owner).identity())
        template = {"key": spec.public_key, "label": spec.label, "notes": notes}
        return OrderRequest(
            KEY,
            owner,
            spec.label,
            Order("Security_Ssh_Key", "createObject", template),
            look=lambda: look(op.market(), spec, owner),
            is_unique=True,
        )

    def finish(self, op: Operation, market: SoftLayer, spec: KeySpec, building: Readiness, *, is_new: bool) -> Resource:
        """Set the label of an adopted key; a new one has it, and need not be shown yet."""
        if is_new:
            return building.sought
        key = building.wait()
        if key.name != spec.label:
            market.api.ensure("Security_Ssh_Key", "editObject", {"label": spec.label}, id=int(key.id))
        return key

    def drift(self, found: Resource, inputs: Values) -> dict[str, Any]:
        """Compare keys by what makes them this key, without their comments."""
        is_same = key_material(found.inputs["publicKey"]) == key_material(str(inputs.get("publicKey")))
        return {**found.inputs, "publicKey": inputs["publicKey"]} if is_same else dict(found.inputs)


def look(market: SoftLayer, spec: KeySpec, owner: Owner) -> Resource | None:
    """Find the key by its material.

    Raises:
        ProviderError: it is somebody else's.
    """
    material = key_material(spec.public_key)
    keys = market.api.read_all("Account", "getSshKeys", mask=KEY_MASK)
    same = next((key for key in keys if key_material(str(key.get("key"))) == material), None)
    # The list may lag behind a removal; the key itself does not.
    row = same and market.api.find("Security_Ssh_Key", str(same["id"]), KEY_MASK)
    if not row:
        return None
    found = as_key(row)
    if found.owner != owner:
        is_copied = found.owner is not None and found.owner.mark == owner.mark
        whose = f"of stack {found.owner.stack}, whose folder of keys was copied" if is_copied else "without our mark"
        raise ProviderError(
            f"uploading the ssh key {spec.label}: the account has the same key already as {found.id} ('{found.name}'), {whose}. "
            "Nothing was touched; remove that one, or use another key pair."
        )
    return found
