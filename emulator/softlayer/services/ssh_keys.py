"""SoftLayer_Security_Ssh_Key: the account's public keys, each fingerprint once."""

import base64
import binascii
import hashlib

from emulator.softlayer.account import Account
from emulator.softlayer.calls import Call
from emulator.softlayer.faults import invalid_value, missing, public
from emulator.softlayer.objects import security
from emulator.softlayer.records import SshKey
from emulator.softlayer.services.finding import changes_of, find
from emulator.softlayer.views import View

KEY_TYPES = {"ssh-rsa", "ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"}


def create(account: Account, call: Call) -> View:
    """Add a public key."""
    wanted = call.argument(0)
    for name in ("key", "label"):
        if not wanted.get(name):
            raise missing(name)
    mark = fingerprint(str(wanted["key"]))
    for present in account.store.ssh_keys.values():
        if present.fingerprint == mark:
            raise public(f"SSH key already exists: fingerprint {mark} is that of SSH key {present.id}.")
    record = SshKey(
        account.next_id(), wanted["label"], wanted["key"].strip(), mark, wanted.get("notes") or "", account.now
    )
    account.store.ssh_keys[record.id] = record
    return security.ssh_key(record)


def get(account: Account, call: Call) -> View:
    """A public key."""
    return security.ssh_key(find(account.store.ssh_keys, call))


def edit(account: Account, call: Call) -> bool:
    """Change label or notes."""
    record, changes = find(account.store.ssh_keys, call), changes_of(call, "label", "notes")
    record.label = changes.get("label") or record.label
    record.notes = record.notes if changes.get("notes") is None else changes["notes"]
    record.modified = account.now
    return True


def delete(account: Account, call: Call) -> bool:
    """Remove a public key from the account; guests keep what they were given."""
    del account.store.ssh_keys[find(account.store.ssh_keys, call).id]
    return True


def fingerprint(key: str) -> str:
    """SHA-256 of the key's bytes in colon-separated hex."""
    fields = key.split()
    try:
        blob = base64.b64decode(fields[1], validate=True)
    except (IndexError, binascii.Error) as wrong:
        raise invalid_value("key", "It is not a public key.") from wrong
    if fields[0] not in KEY_TYPES or not blob:
        raise invalid_value("key", f"'{fields[0]}' is not a type of public key.")
    return hashlib.sha256(blob).digest().hex(":")


SERVICES = {
    "SoftLayer_Security_Ssh_Key": {
        "createObject": create,
        "getObject": get,
        "editObject": edit,
        "deleteObject": delete,
    }
}
