"""The Machine resource: adopted or ordered once with its startup script, running when it is returned, gone when it is deleted.

The host key is computed from the stack's own key and a nonce of the order, which stands in the name of the startup script: any
computer that has the key knows it, before and after an adoption. The account never shows a startup script again, so that nothing
else can be read back from it. See docs/decisions.md.
"""

import hashlib
import hmac
import secrets
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from microcluster.accounts.paperspace import views
from microcluster.accounts.paperspace.account import MACHINES, SCRIPTS, Order, Paperspace
from microcluster.accounts.paperspace.api import ApiError
from microcluster.accounts.paperspace.declared import Machine
from microcluster.accounts.paperspace.ledger import full_region
from microcluster.accounts.paperspace.specs import MachineSpec, full_name
from microcluster.accounts.paperspace.views import BOOT, MACHINE, OFF, READY, SCRIPT, STATIC, SWITCHES
from microcluster.accounts.shared.account import OrderRequest, Pending, Resource
from microcluster.accounts.shared.closing import close
from microcluster.accounts.shared.errors import ProviderError
from microcluster.accounts.shared.order import Operation, adopt_or_order
from microcluster.accounts.shared.readiness import Readiness
from microcluster.accounts.shared.resource import Rented
from microcluster.accounts.shared.spec import Values
from microcluster.core.home import Home, Owner
from microcluster.core.ssh_key import KeyPair, public_line

PURPOSE = "microcluster ssh host key, version 1"
NONCE_BYTES = 8
SCRIPT_TEXT = """#!/bin/bash
# microcluster {owner} {hostname}
(
set -eu
umask 077
home=/home/paperspace
install -d -m 700 -o paperspace -g paperspace "$home/.ssh"
touch "$home/.ssh/authorized_keys"
grep -qxF {public_key} "$home/.ssh/authorized_keys" || printf '%s\\n' {public_key} >>"$home/.ssh/authorized_keys"
chown paperspace:paperspace "$home/.ssh/authorized_keys"
rm -f /etc/ssh/ssh_host_*
printf '%s' {host_key} >/etc/ssh/ssh_host_ed25519_key
printf '%s\\n' {host_key_public} >/etc/ssh/ssh_host_ed25519_key.pub
chmod 644 /etc/ssh/ssh_host_ed25519_key.pub
systemctl restart ssh 2>/dev/null || systemctl restart sshd 2>/dev/null || kill -HUP "$(cat /run/sshd.pid)"
)
"""


class Machines(Rented):
    """Machines as a resource."""

    KIND, DECLARED = MACHINE, Machine
    TIMEOUT_S = 90 * 60.0
    # Everything: the vendor changes a type only within a group and a disk only upwards, and only while the machine is off.
    REPLACE_ON = frozenset(
        {"mark", "hostname", "region", "machineType", "templateId", "diskGb", "networkId", "publicKey", "publicIpType"}
    )

    def request(self, op: Operation, spec: MachineSpec, owner: Owner) -> OrderRequest:
        """Order the startup script, and write down the machine that boots with it."""
        market: Paperspace = op.market()
        script_id, key = _script(op, market, spec, owner)
        known_outputs = {"hostKey": key.public}
        return OrderRequest(
            MACHINE,
            owner,
            spec.hostname,
            Order(MACHINES, body(spec, owner, script_id)),
            advice=lambda error: error.advice or full_region(market, owner.stack, spec),
            hostname=spec.hostname,
            is_billed=True,
            sold=spec.model_dump_json(by_alias=True, include={"machine_type", "disk_gb", "public_ip_type"}),
            outputs=known_outputs,
            adopted=known_outputs,
        )

    def lasting(
        self, market: Paperspace, owner: Owner, resource_id: str, inputs: Values, old: Values
    ) -> dict[str, Any]:
        """Keep the host key."""
        return {"hostKey": old.get("hostKey")}

    def gone(self, op: Operation, market: Paperspace, resource_id: str, inputs: Values, old: Values) -> None:
        """Release the static address of a machine that is gone."""
        if inputs.get("publicIpType") == STATIC:
            # A person who deletes a machine in the console leaves its address behind, which nobody would see in our state.
            market.release_address(resource_id, old.get("publicIp"))

    def drift(self, found: Resource, inputs: Values) -> dict[str, Any]:
        """Return the inputs that somebody changed in the account."""
        on = {switch: True for switch in SWITCHES if found.row.get(switch)}
        # The switches are no inputs of ours: one that turns up in the state shows as a change, which the next update takes back.
        return {**super().drift(found, inputs), **on}

    def finish(
        self, op: Operation, market: Paperspace, spec: MachineSpec, building: Readiness, *, is_new: bool
    ) -> Resource:
        """Wait until it is ready, start one that is off, and put off what would stop it.

        One that was ready before may have lost its address.
        """
        path, wants_address = f"{MACHINES}/{building.sought.id}", not is_new and spec.public_ip_type == STATIC

        def look() -> Resource | Pending:
            nonlocal wants_address
            state = building.look()
            row = building.seen.row if building.seen else {}
            if wants_address and views.lacks_static_address(row):
                wants_address = _restore_address(market, row)
                return Pending("it has lost its static address and gets another one")
            if isinstance(state, Pending) and row.get("state") == OFF:
                _try(market, "PATCH", f"{path}/start", {})
            return state

        machine = op.wait_until(f"{building.what} ready", look)
        on = {switch: False for switch in SWITCHES if machine.row.get(switch)}
        if on:
            market.api.ensure("PUT", path, on)
        return machine

    def delete(self, op: Operation, resource_id: str, inputs: Values, old: Values) -> None:
        """Delete the machine, its static address and its script, and return when the account shows none of them."""
        super().delete(op, resource_id, inputs, old)
        market, owner = op.market(old.get("accountId")), self.owner(op, inputs)
        self.gone(op, market, resource_id, inputs, old)
        journal = op.journal(owner)
        known = {each for each, intent in journal.accepted(SCRIPT).items() if intent.name == op.name}
        listed = market.scripts_of(owner, str(inputs.get("hostname")))
        for script_id in sorted({*known, *(each.id for each in listed)}):
            close(op, market, Resource(SCRIPT, script_id, op.name, owner))
            journal.closed(SCRIPT, script_id)


def body(spec: MachineSpec, owner: Owner, script_id: str) -> dict[str, Any]:
    """Write the order; what is not said here has no stated default, or one that costs money."""
    return {
        "name": full_name(spec.hostname, owner),
        "machineType": spec.machine_type,
        "templateId": spec.template_id,
        "region": spec.region,
        "diskSize": spec.disk_gb,
        "networkId": spec.network_id,
        "publicIpType": spec.public_ip_type,
        "startupScriptId": script_id,
        "startOnCreate": True,
        "emailPassword": False,
        "takeInitialSnapshot": False,
        **dict.fromkeys(SWITCHES, False),
    }


def script_text(spec: MachineSpec, owner: Owner, key: KeyPair) -> str:
    """Write the startup script; it holds the private host key and goes nowhere but into its order."""
    return SCRIPT_TEXT.format(
        owner=owner,
        hostname=spec.hostname,
        public_key=shlex.quote(spec.public_key.strip()),
        host_key=shlex.quote(key.private),
        host_key_public=shlex.quote(key.public),
    )


def host_key(owner: Owner, hostname: str, public_key: str, nonce: str) -> KeyPair:
    """Compute the host key of a machine: HMAC-SHA256 of the stack's private ssh key over stack, mark, host name and nonce.

    Args:
        public_key: the stack's, as the resource names it; another stack's private key would give another host key.
        nonce: of the order; empty for one that an older version sent.

    Raises:
        ProviderError: the stack's private key is not there, or is another one.
    """
    path = Home.of().keys / owner.stack / "id_ed25519"
    secret = _private_key(path, hostname)
    if public_line(secret).split()[:2] != public_key.split()[:2]:
        raise ProviderError(
            f"computing the host key of {hostname}: {path} is not the private part of the stack's public key. "
            "Put the stack's own key folder back and run the command again."
        )
    seed = secret.private_bytes(
        serialization.Encoding.Raw, serialization.PrivateFormat.Raw, serialization.NoEncryption()
    )
    about = "\0".join([PURPOSE, owner.stack, owner.mark, hostname, *filter(None, [nonce])]).encode()
    return KeyPair.of(Ed25519PrivateKey.from_private_bytes(hmac.digest(seed, about, hashlib.sha256)))


def _private_key(path: Path, hostname: str) -> Ed25519PrivateKey:
    try:
        key = serialization.load_ssh_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm):
        key = None  # The reason may quote the file.
    if not isinstance(key, Ed25519PrivateKey):
        raise ProviderError(
            f"computing the host key of {hostname}: {path} cannot be read as the stack's private ed25519 key without a "
            "password. Put the stack's own key folder back and run the command again."
        )
    return key


def _script(op: Operation, market: Paperspace, spec: MachineSpec, owner: Owner) -> tuple[str, KeyPair]:
    """Order the startup script, or make the one of an interrupted run say what this one says, unless a machine has it.

    Returns:
        Its id, and the host key in it.
    """
    label, nonce = f"{BOOT}{spec.hostname}", secrets.token_hex(NONCE_BYTES)
    key, content = _content(label, nonce, spec, owner)
    script = adopt_or_order(op, market, OrderRequest(SCRIPT, owner, label, Order(SCRIPTS, content), is_billed=True))
    if isinstance(script, str):
        return script, key
    # A machine that was ordered with it may still turn up, and has the host key of that order.
    key, content = _content(label, script.outputs.get("nonce", ""), spec, owner)
    if not script.row.get("assignedMachineIds"):
        market.api.ensure("PUT", f"{SCRIPTS}/{script.id}", content)
    return script.id, key


def _content(label: str, nonce: str, spec: MachineSpec, owner: Owner) -> tuple[KeyPair, dict[str, Any]]:
    key = host_key(owner, spec.hostname, spec.public_key, nonce)
    name = full_name("-".join(filter(None, [label, nonce])), owner)
    return key, {"name": name, "script": script_text(spec, owner, key), "isRunOnce": True}


def _restore_address(market: Paperspace, row: Mapping[str, Any]) -> bool:
    """Give a machine another static address, where a deletion was stopped after it had released the old one.

    Only a machine that is off can get one: return whether that is still to be waited for. It is given once, as a late view would
    make it twice. The vendor says of no update that it brings an address where the kind stays: so the kind changes twice.
    """
    path = f"{MACHINES}/{row['id']}"
    if row["state"] == READY:
        _try(market, "PATCH", f"{path}/stop", {})
        return True
    market.release_address(row["id"], None)
    for kind in ("dynamic", STATIC):
        _try(market, "PUT", path, {"publicIpType": kind})
    return False


def _try(market: Paperspace, method: str, path: str, content: Mapping[str, Any]) -> None:
    """Ask for something whose effect the next look shows: it may be so by now, as lists lag, or the answer may get lost."""
    try:
        market.api.once(method, path, content)
    except ApiError as error:
        if error.is_forbidden:
            raise
