"""The SshKey resource: the stack's own public key in the account."""

import base64
import binascii
import hashlib
from collections.abc import Mapping
from typing import Annotated, Any

import pydantic

from providers.grpc.properties import MARK_PATTERN, Problem, Spec, problems
from providers.grpc.resource_protocol import Created, Live
from providers.rental import idempotent_order
from providers.rental import owner_mark as marks
from providers.rental.backend import OrderRequest, Thing
from providers.rental.errors import ProviderError
from providers.rental.operation import Operation
from providers.softlayer.account import Account, claim_notes
from providers.softlayer.errors import ApiError

KIND = "SshKey"
REPLACE_ON = frozenset({"mark", "publicKey"})
TIMEOUT_S = 5 * 60.0
Row = Mapping[str, Any]
KEY_MASK = "mask[id,fingerprint,key,label,notes]"


class KeySpec(Spec):
    """A public key and its name."""

    mark: Annotated[str, pydantic.StringConstraints(pattern=MARK_PATTERN)]
    label: str
    public_key: str

    @pydantic.field_validator("public_key")
    @classmethod
    def _well_formed(cls, line: str) -> str:
        if "PRIVATE" in line or _material(line) is None:
            raise ValueError("is no public key line such as 'ssh-ed25519 AAAA...'")
        return line


def check(inputs: Mapping[str, Any], old_inputs: Mapping[str, Any]) -> list[Problem]:
    """Say what is wrong with the inputs."""
    return problems(KeySpec, inputs)


def known_outputs(inputs: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Tell the fingerprint, which follows from the key."""
    if old:
        return {key: old.get(key) for key in ("keyId", "fingerprint", "accountId")}
    return {"fingerprint": fingerprint(str(inputs.get("publicKey")))}


def create(op: Operation, inputs: Mapping[str, Any]) -> Created:
    """Adopt the account's copy of our key if it bears our mark, else upload it."""
    spec, backend = KeySpec.of(inputs), op.backend()
    account, owner = backend.account, marks.Owner(op.stack, spec.mark)
    template = {
        "key": spec.public_key,
        "label": spec.label,
        "notes": claim_notes(owner, op.journal(spec.mark).identity()),
    }
    request = OrderRequest(
        KIND, owner, f"ssh key {spec.label}", spec.public_key, template, is_named=False, is_unique=True
    )
    made = idempotent_order.adopt_or_order(op, backend, request)
    if isinstance(made, str):
        return Created(made, _outputs({"id": made, "fingerprint": fingerprint(spec.public_key)}, account))
    found = made.row
    if made.owner != owner:
        raise ProviderError(
            f"uploading the ssh key {spec.label}: the account has the same key already as {found['id']} "
            f"('{found.get('label')}'), {_whose(found, spec.mark)}. Nothing was touched; remove that one, or use another key "
            "pair."
        )
    return Created(str(found["id"]), _outputs(found, account))


def read(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> Live | None:
    """Read the key."""
    account = op.backend(old.get("accountId")).account
    found = account.api.find("Security_Ssh_Key", resource_id, KEY_MASK)
    if found is None:
        return None
    live = {"label": str(found.get("label") or ""), "publicKey": str(found.get("key") or "").strip()}
    if inputs and _material(live["publicKey"]) == _material(str(inputs.get("publicKey"))):
        live["publicKey"] = inputs["publicKey"]
    owner = marks.owner_in_notes(found.get("notes"))
    if not inputs:
        marks.permit_import(op.stack, f"ssh key {resource_id} ('{found.get('label')}')", owner)
    return Live({"mark": owner.mark if owner else "", **inputs, **live}, _outputs(found, account))


def update(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Rename the key."""
    spec = KeySpec.of(inputs)
    account = op.backend(old.get("accountId")).account
    found = account.api.find("Security_Ssh_Key", resource_id, KEY_MASK)
    if found is not None and _material(str(found.get("key"))) != _material(spec.public_key):
        raise ProviderError(
            f"renaming ssh key {resource_id} ('{found.get('label')}'): it is not this stack's key, so it is somebody else's. "
            "Nothing was done to it. Take it out of the state with 'pulumi state delete'."
        )
    account.api.ensure("Security_Ssh_Key", "editObject", {"label": spec.label}, id=int(resource_id))
    return {key: old.get(key) for key in ("keyId", "fingerprint", "accountId")}


def delete(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> None:
    """Remove the key if it is still ours."""
    account = op.backend(old.get("accountId")).account
    owner = marks.Owner(op.stack, str(inputs.get("mark") or old.get("mark")))
    remove(account, resource_id, owner)
    op.journal(owner.mark).closed(account.identity().account_id, KIND, resource_id)


def remove(account: Account, key_id: str, owner: marks.Owner) -> None:
    """Remove a key that bears the mark; a key that is gone, or somebody else's by now, is left alone."""
    found = account.api.find("Security_Ssh_Key", key_id, KEY_MASK)
    if found is None or not marks.notes_are(found.get("notes"), owner):
        return
    try:
        account.api.ensure("Security_Ssh_Key", "deleteObject", id=int(key_id))
    except ApiError as error:
        if not error.is_gone:
            raise ProviderError(
                f"removing ssh key {key_id}: {error.text} ({error.code}). Run 'pulumi destroy' again."
            ) from error


def look(account: Account, request: OrderRequest) -> Thing | None:
    """Find the key by its material, whoever's it is: the account refuses to hold one twice."""
    keys = account.api.read_all("Account", "getSshKeys", mask=KEY_MASK)
    same = next((key for key in keys if _material(str(key.get("key"))) == _material(request.name)), None)
    # The list may lag behind a removal; the key itself does not.
    found = same and account.api.find("Security_Ssh_Key", str(same["id"]), KEY_MASK)
    if not found:
        return None
    owner, label = marks.owner_in_notes(found.get("notes")), str(found.get("label") or "")
    return Thing(KIND, str(found["id"]), label, owner, f"ssh key {found['id']} ('{label}')", row=found)


def fingerprint(public_key: str) -> str | None:
    """Compute the fingerprint that the account shows for a key: SHA-256 in hexadecimal pairs."""
    material = _material(public_key)
    if material is None:
        return None
    digest = hashlib.sha256(material).hexdigest()
    return ":".join(digest[start : start + 2] for start in range(0, len(digest), 2))


def _whose(found: Mapping[str, Any], mark: str) -> str:
    owner = marks.owner_in_notes(found.get("notes"))
    if owner is None or owner.mark != mark:
        return "without our mark"
    return f"of stack {owner.stack}, whose folder of keys was copied"


def _outputs(found: Mapping[str, Any], account: Account) -> dict[str, Any]:
    return {
        "keyId": str(found["id"]),
        "fingerprint": str(found.get("fingerprint") or ""),
        "accountId": account.identity().account_id,
    }


def _material(line: str) -> bytes | None:
    fields = line.split()
    try:
        return base64.b64decode(fields[1], validate=True) if len(fields) >= 2 else None
    except (binascii.Error, ValueError):
        return None
