"""Paperspace as the kernel sees it: what it lists and finds, how it takes orders, and what its answers mean."""

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from providers.paperspace import (
    bills,
    claim,
    inventory,
    machine,
    machine_lookup,
    machine_view,
    named_goods,
    offers,
    private_network,
    shared_drive,
    startup_script,
)
from providers.paperspace.account import ADMIN, DRIVES, MACHINES, NETWORKS, SCRIPTS, Account
from providers.paperspace.api import LISTS_LAG_S, LONGEST_CALL_S, ApiError, made_id
from providers.rental import closing
from providers.rental.backend import Backend, Belonging, Claim, Found, OrderRequest, OrderStatus, Tell, Thing
from providers.rental.errors import CallError, ProviderError
from providers.rental.operation import Identity, Operation
from providers.rental.owner_mark import Owner
from providers.rental.receipt import Charge
from providers.rental.waiting import Deadline, Pending

PATHS = {
    machine.KIND: MACHINES,
    private_network.KIND: NETWORKS,
    shared_drive.KIND: DRIVES,
    startup_script.KIND: SCRIPTS,
    claim.KIND: SCRIPTS,
}
VIEWS = {
    machine.KIND: machine_view.thing,
    private_network.KIND: private_network.thing,
    shared_drive.KIND: shared_drive.thing,
    startup_script.KIND: startup_script.thing,
    claim.KIND: claim.thing,
}


@dataclass(frozen=True)
class Order:
    """A POST that makes something."""

    path: str
    body: dict[str, Any]

    @property
    def content(self) -> dict[str, Any]:
        """What it asks for, without a script's text, which holds a key."""
        return {"path": self.path, **{name: value for name, value in self.body.items() if name != "script"}}


class Paperspace(Backend):
    """One account, as a ``Backend``."""

    machine, machine_label = machine.KIND, machine.KIND
    other_kinds = (startup_script.KIND, shared_drive.KIND, private_network.KIND, claim.KIND)
    lists_lag_s, longest_call_s = LISTS_LAG_S, LONGEST_CALL_S
    grant_cancelling = ADMIN

    def __init__(self, account: Account) -> None:
        self.account = account
        self.claim_lock = threading.Lock()

    @property
    def username(self) -> str:
        """The key's user."""
        return self.account.identity().username

    @property
    def secrets(self) -> tuple[str, ...]:
        """The key."""
        return self.account.secrets

    def identity(self) -> Identity:
        """Ask once who we are."""
        return self.account.identity()

    def list(self, kind: str, owner: Owner) -> list[Thing]:
        """List what bears stack and mark."""
        return [VIEWS[kind](row) for row in self.account.under(PATHS[kind], owner)]

    def find(
        self, kind: str, object_id: str, owner: Owner, *, fresh: bool, max_age_s: float = 0.0
    ) -> Thing | Pending | None:
        """Read one thing by its id."""
        if kind == machine.KIND:
            return machine_lookup.find(self.account, owner, object_id, fresh=fresh, max_age_s=max_age_s)
        row = self.account.api.find(PATHS[kind], object_id)
        if row is None and fresh:
            return Pending(f"the account does not show {kind} {object_id} yet, as it was ordered only now")
        return VIEWS[kind](row) if row else None

    def look(self, op: Operation, request: OrderRequest) -> Found:
        """Look for the stack's claim: any of them will do."""
        return claim.look(op, self, request.owner)

    def prepare(self, request: OrderRequest) -> Order:
        """Write the order."""
        body = request.spec
        if request.kind == machine.KIND:
            spec, script_id = request.spec
            body = machine.body(spec, request.owner, script_id)
        return Order(PATHS[request.kind], dict(body))

    def order(self, order: Order) -> str:
        """Send an order, exactly once, and return the id of what it makes."""
        return made_id(self.account.api.once("POST", order.path, order.body), f"POST {order.path}")

    def order_status(self, order_id: str, owner: Owner) -> None:
        """An order has no number of its own here."""

    def order_of(self, machine: Thing, max_age_s: float) -> OrderStatus | None:
        """Read from a machine's create event that it will never be built."""
        return machine_view.failed_creation(machine_lookup.events(self.account, machine.id))

    def waiting_order(self, owner: Owner) -> None:
        """Nobody approves an order here; a machine is shown as soon as it is ordered."""

    def unshown(self, owner: Owner, hostname: str, since: datetime | None) -> str | None:
        """Find a machine that the startup script of this host name is assigned to; read by its id, a script does not lag."""
        for script in startup_script.of_machine(self.account, owner, hostname):
            row = self.account.api.find(SCRIPTS, script.id) or {}
            for machine_id in row.get("assignedMachineIds") or []:
                if machine_lookup.find(self.account, owner, str(machine_id), fresh=False) is not None:
                    return f"startup script {script.id} is assigned to machine {machine_id}"
        return None

    def advice(self, request: OrderRequest, error: CallError) -> str | None:
        """Say what a person does after a refusal."""
        if not isinstance(error, ApiError):
            return None
        if error.is_forbidden:
            return (
                f"Use the key of an admin of the team ({ADMIN}), or ask the vendor whether the team's limit is reached."
            )
        if error.is_gone:
            return "Something that it names is gone: run 'pulumi up --refresh'."
        if request.kind == machine.KIND:
            spec = request.spec[0]
            if not offers.has_room(self.account, spec.machine_type, spec.region):
                there = offers.where_else(self.account, request.owner.stack, spec.machine_type, spec.region)
                return f"{spec.region} has no {spec.machine_type} at the moment. {there}"
        return None

    def read_claim(self, owner: Owner, key_ids: Sequence[str], max_age_s: float) -> Claim | None:
        """Read the journal's name in the name of the stack's claim."""
        return claim.read(self.account, owner, max_age_s)

    def write_claim(self, owner: Owner, claimed: Claim) -> None:
        """Write the journal's name into the claim."""
        claim.write(self.account, owner, claimed)

    def cancel(self, thing: Thing) -> Pending | None:
        """Stop a machine, or delete it once it is off."""
        return machine_lookup.cancel(self.account, thing)

    def check_visible(self, thing: Thing) -> None:
        """Refuse to take anything for gone if this user is shown only what was assigned to it."""
        self.account.check_sees_all(f"looking at {thing.label}")

    def check_to_prove(self) -> None:
        """Refuse to call an account clean for a user who does not see all of it."""
        self.account.check_sees_all("proving that nothing is billed any more")

    def everything(self) -> tuple[Belonging, ...]:
        """List what bears any mark of microcluster."""
        return inventory.everything(self.account)

    def remove(self, kind: str, object_id: str, owner: Owner, deadline: Deadline, tell: Tell) -> None:
        """Delete a script, a drive or a network that bears the mark."""
        if kind not in VIEWS or kind == machine.KIND:
            raise ProviderError(f"removing {kind} {object_id}: microcluster makes no such thing. Remove it by hand.")

        def found() -> Thing | None:
            row = self.account.api.find(PATHS[kind], object_id)
            return VIEWS[kind](row) if row else None

        send = partial(self.account.api.once, "DELETE", f"{PATHS[kind]}/{object_id}")

        def free() -> None:
            if kind == private_network.KIND:
                self._remove_strays(object_id, owner, deadline, tell)

        named_goods.remove(found, send, free, owner, named_goods.Wait(deadline, tell))

    def _remove_strays(self, network_id: str, owner: Owner, deadline: Deadline, tell: Tell) -> None:
        """Remove what stands in a network that goes, bears its mark, and is in no state: its order's answer got lost."""
        for row in self.account.under(MACHINES, owner):
            if row.get("networkId") == network_id:
                closing.close(self, str(row["id"]), owner, deadline, tell)
        for drive in self.list(shared_drive.KIND, owner):
            if drive.inputs["networkId"] == network_id:
                self.remove(shared_drive.KIND, drive.id, owner, deadline, tell)

    def charges(self, owner: Owner, known_ids: Iterable[str] = ()) -> tuple[Charge, ...]:
        """List what was and is billed."""
        return bills.charges(self.account, owner, known_ids)

    def charged_names(self, owner: Owner) -> "list[str]":
        """List the host name of each machine that was charged."""
        return [each.host for each in self.charges(owner) if each.category == machine.KIND]
