"""Paperspace as the kernel sees it: what it lists and finds, how it takes orders and claims, and what its answers mean."""

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, partial
from typing import Any

from microcluster.accounts.paperspace import bills, credentials, views
from microcluster.accounts.paperspace.api import ADMIN, LISTS_LAG_S, LONGEST_CALL_S, Api, ApiError, made_id
from microcluster.accounts.paperspace.specs import LedgerSpec, full_name, owner_of
from microcluster.accounts.paperspace.views import CLAIM, DRIVE, MACHINE, NETWORK, ON, SCRIPT, STATIC, TERMS, VIEWS
from microcluster.accounts.shared.account import (
    Claim,
    Found,
    Identity,
    Market,
    OrderRequest,
    OrderStatus,
    Pending,
    Quote,
    Resource,
)
from microcluster.accounts.shared.api_calls import Row, SharedList, at, at_once, text_at
from microcluster.accounts.shared.errors import AccountError, CallError, ProviderError
from microcluster.accounts.shared.journal import Intent
from microcluster.accounts.shared.order import Operation, adopt_or_order
from microcluster.accounts.shared.receipt import Charge
from microcluster.core.home import UNOWNED, Owner

MACHINES, NETWORKS, DRIVES, SCRIPTS = "/machines", "/private-networks", "/shared-drives", "/startup-scripts"
ADDRESSES, EVENTS = "/public-ips", "/machine-events"
PATHS = {MACHINE: MACHINES, NETWORK: NETWORKS, DRIVE: DRIVES, SCRIPT: SCRIPTS, CLAIM: SCRIPTS}
CLAIM_TEXT = "#!/bin/sh\n# The name of this script says who orders for the stack, or what limits the rental; no machine runs it.\n"


@dataclass(frozen=True)
class Order:
    """A POST that makes something."""

    path: str
    body: Mapping[str, Any]


class Paperspace(Market):
    """One team through one key."""

    machine = MACHINE
    lists_lag_s, settled_s = LISTS_LAG_S, LISTS_LAG_S + LONGEST_CALL_S

    def __init__(self, api: Api) -> None:
        self.api = api
        self.secrets = (api.credentials.api_key,)
        self._lists = {path: self._shared(path) for path in (MACHINES, NETWORKS, DRIVES, SCRIPTS)}

    def whoami(self) -> Identity:
        """Ask once who we are; the first proof that the key is valid."""
        session, key = self.session, self.api.credentials
        team, user = session["team"], session.get("user") or {}
        who = str(user.get("email") or user.get("id") or "the key's user")
        return Identity(str(team["id"]), text_at(team, "namespace"), who, key.endpoint, key.is_local)

    def hidden(self) -> str | None:
        """Say why this user is shown only what was assigned to it."""
        for membership in at(self.session, "user.teamMemberships") or []:
            # A number in one place may be a text in the other.
            is_here = str(at(membership, "team.id")) == self.whoami().account_id
            if is_here and not (membership.get("isAdmin") or membership.get("isOwner")):
                return (
                    f"{self.whoami().username} is a member of team {self.whoami().name} and no admin, so machines, "
                    f"networks, drives and addresses may be there and billed that this key does not show. Nothing was done. "
                    f"Use an admin's key, or have the user made one ({ADMIN}), and run the command again."
                )
        return None

    def resources(self, owner: Owner | None = None, kind: str | None = None, max_age_s: float = 0.0) -> list[Resource]:
        """List resources with stack and mark, or with any mark. A static address has no name: it goes with its machine."""
        self.check_sees_all("listing what bears a mark")
        kinds = [kind] if kind else [MACHINE, DRIVE, NETWORK, SCRIPT]
        found = [each for listed in at_once(partial(self._listed, owner), kinds) for each in listed]
        return [each for each in found if each.owner is not None and kind in (None, each.kind)]

    def under(self, kind: str, owner: Owner, max_age_s: float = 0.0) -> list[Row]:
        """List the rows whose names carry exactly this stack and mark."""
        return self._lists[PATHS[kind]].under(owner, max_age_s)

    def find(self, kind: str, object_id: str, owner: Owner, *, fresh: bool, max_age_s: float = 0.0) -> Found:
        """Read one thing by its id."""
        self.check_sees_all(f"looking for {kind} {object_id}")
        listed = self.under(kind, owner, max_age_s) if max_age_s else []
        row = next((each for each in listed if each["id"] == object_id), None) or self.api.find(PATHS[kind], object_id)
        if kind == MACHINE and (row is None or row.get("state") not in ON):
            events = self.events(object_id)
            ending = views.deletion(events)
            if ending is not None:
                return Pending(f"machine {object_id} is being deleted (event {ending.get('id')})")
            if row is not None:
                return views.machine(row, events)
        if row is None and fresh:
            return Pending(f"the account does not show {kind} {object_id} yet, as it was ordered only now")
        return VIEWS[kind](row) if row else None

    def events(self, machine_id: str) -> list[Row]:
        """Read a machine's events; of one that is gone the account need not know any."""
        listed = self.api.found(lambda: self.api.list(EVENTS, machineId=machine_id)) or []
        return [each for each in listed if each.get("machineId") == machine_id]

    def quote(self, stack: str, nodes: int, order: Mapping[str, Any]) -> Quote:
        """Price machines by the vendor's list: the API shows no price."""
        prices = LedgerSpec(mark=UNOWNED, stack=stack, nodes=nodes, **order).prices()
        return Quote(prices.per_hour, prices.source)

    def order(self, order: Order) -> str:
        """Send an order, exactly once, and return the id of what it makes."""
        return made_id(self.api.once("POST", order.path, order.body), f"POST {order.path}")

    def standing(
        self, owner: Owner, hostname: str | None, since: datetime | None, numbers: Sequence[str], max_age_s: float = 0.0
    ) -> OrderStatus | None:
        """Find a machine that the startup script of this host name is assigned to; read by its id, a script does not lag."""
        for script in self.scripts_of(owner, hostname) if hostname else ():
            row = self.api.find(SCRIPTS, script.id) or {}
            for machine_id in row.get("assignedMachineIds") or []:
                if self.find(MACHINE, str(machine_id), owner, fresh=False) is not None:
                    return OrderStatus(script.id, f"startup script {script.id} is assigned to machine {machine_id}")
        return None

    def scripts_of(self, owner: Owner, hostname: str) -> list[Resource]:
        """List the startup scripts of a machine."""
        found = [views.script(row) for row in self.under(SCRIPT, owner)]
        return [each for each in found if each.called == f"{views.BOOT}{hostname}"]

    def claim(self, owner: Owner, *, key_ids: Sequence[str] = (), max_age_s: float = 0.0) -> Claim | None:
        """Read it in the names of the stack's claim and of its terms, startup scripts that no machine runs.

        The oldest one counts, and only once the account's list shows it: a list that shows it also shows every older one, so that
        of two computers which begin at the same time one sees the other.
        """
        scripts = self.under(SCRIPT, owner, max_age_s)
        oldest_first = sorted(scripts, key=lambda row: (str(row.get("dtCreated")), str(row["id"])))
        claim = next(filter(None, map(views.claim_of, oldest_first)), None)
        return claim and replace(claim, terms=next(filter(None, map(views.terms_of, oldest_first)), None))

    def write_claim(self, claim: Claim, owner: Owner) -> None:
        """Write the claim into the names of its scripts; a name that says it already stays, as its list may lag."""
        listed = self.under(SCRIPT, owner)
        names = {claim.object_id: full_name(views.claim_label(claim), owner)}
        if claim.terms:
            name = full_name(f"{TERMS}-{claim.terms.word}", owner)
            of_terms = [str(row["id"]) for row in listed if views.terms_of(row)]
            names |= dict.fromkeys(of_terms, name)
            if not of_terms:
                self._make_terms(name, owner)
        said = {str(row["id"]): row.get("name") for row in listed}
        for script_id, name in names.items():
            if said.get(script_id) != name:
                self.api.ensure("PUT", f"{SCRIPTS}/{script_id}", {"name": name})

    def make_claim(self, op: Operation, owner: Owner) -> Claim:
        """Make the claim, and return once the list shows one."""
        name = full_name(views.claim_label(Claim("", op.journal(owner).identity())), owner)
        # Whatever is ordered first makes it: in the journal it has a name of its own.
        of_stack = replace(op, urn=f"{op.urn.rsplit('::', 1)[0]}::{CLAIM}")
        request = OrderRequest(CLAIM, owner, CLAIM, Order(SCRIPTS, {"name": name, "script": CLAIM_TEXT}))
        adopt_or_order(of_stack, self, request)

        def look() -> Claim | Pending:
            unlisted = Pending("waits for the account's list of startup scripts, which has to show the claim")
            return self.claim(owner) or unlisted

        return op.wait_until(request.what, look, 2 * self.settled_s)

    def _make_terms(self, name: str, owner: Owner) -> None:
        """Make their script. A second one after a lost answer does no harm: the oldest counts, and all go at the end."""
        journal = self.journal(owner)
        attempt = journal.intend(Intent(TERMS, CLAIM, called=TERMS)).attempt
        try:
            journal.ordered(attempt, self.order(Order(SCRIPTS, {"name": name, "script": CLAIM_TEXT})))
        except CallError:
            journal.lost(attempt)
            raise

    def charges(self, owner: Owner, known: Iterable[str] = (), *, exact: bool = True) -> tuple[Charge, ...]:
        """List past and running charges."""
        return bills.charges(self, owner, known)

    def end(self, resource: Resource) -> Pending | None:
        """Delete something; a machine has to be off first, and a network empty."""
        return self._end_machine(resource) if resource.kind == MACHINE else self._delete(resource)

    def release_address(self, machine_id: str, address: str | None) -> None:
        """Release the static addresses of a machine, and the one that it was last seen with unless another machine has it now."""
        held: dict[str, Any] = {str(row["ip"]): row.get("assignedMachineId") for row in self.api.list(ADDRESSES)}
        ours = [each for each, holder in held.items() if holder == machine_id]
        if address and not held.get(address):
            ours.append(address)
        for each in ours:
            self.api.remove(ADDRESSES, each)

    def _end_machine(self, machine: Resource) -> Pending | None:
        """Stop a machine, or delete it once it is off, as the vendor's documents ask.

        A static address is released before, while the machine still says that it is ours: an address has no name, and one that
        stays without its machine is billed for ever.
        """
        row = machine.row
        if row.get("state") in ON:
            self.api.once("PATCH", f"{MACHINES}/{machine.id}/stop", {})
            return Pending("it is being stopped, before it is deleted")
        self.release_address(machine.id, row.get("publicIp") if row.get("publicIpType") == STATIC else None)
        self.api.once("DELETE", f"{MACHINES}/{machine.id}")
        return None

    def _delete(self, resource: Resource) -> Pending | None:
        try:
            self.api.once("DELETE", f"{PATHS[resource.kind]}/{resource.id}")
        except ApiError as error:
            if error.is_forbidden:
                raise
            if resource.kind == NETWORK:
                self._end_strays(resource)
            return Pending(f"the API does not delete it ({error.text}); {resource.price}")
        return None

    def _end_strays(self, network: Resource) -> None:
        """Go on with the end of what stands in a network that goes and bears its mark: its order's answer got lost."""
        for kind in (MACHINE, DRIVE):
            for row in self.under(kind, network.owner):
                stray = self.find(kind, str(row["id"]), network.owner, fresh=False)
                is_stray = isinstance(stray, Resource) and stray.inputs["networkId"] == network.id and not stray.work
                if is_stray and stray.owner == network.owner and not stray.is_kept:
                    self.journal(network.owner).found(kind, stray.called, stray.id)
                    with suppress(ApiError):  # The next look at the network tries again.
                        self.end(stray)

    def _listed(self, owner: Owner | None, kind: str) -> list[Resource]:
        rows = self.under(kind, owner) if owner else self.api.list(PATHS[kind])
        return [VIEWS[kind](row) for row in rows]

    def _shared(self, path: str) -> SharedList:
        # Not the API's own filter by name: how it matches is not documented, and what it hides would be ordered again.
        return SharedList(lambda owner: [row for row in self.api.list(path) if owner_of(row.get("name")) == owner])

    @cached_property
    def session(self) -> Row:
        """The key's user and team, for which is asked once."""
        doing = f"opening the account at {self.api.credentials.endpoint}"
        source = f"the key file or {credentials.VARIABLE}"

        def ask(attempts: int) -> Any:
            return self.api.read("/auth/session", attempts=attempts, expect=dict | None)

        session = self.api.opened(ask, doing, source, "python -m emulator start paperspace")
        if not at(session, "team.id"):
            # The API answers a key that it does not know with null and status 200.
            raise AccountError(
                f"{doing}: the API does not know this key. Check {source}; a key is shown once, so that a lost one has to be made anew in the console."
            )
        return session


def account_of(
    key_file: str | None,
    exported: Mapping[str, str] = os.environ,
    stop: threading.Event | None = None,
    time_scale: float = 1.0,
) -> Paperspace:
    """Return the account of a key; nobody is called yet.

    Raises:
        CredentialsError: there is no key that could open it.
    """
    return Paperspace(Api(credentials.load(key_file, exported), stop, time_scale))


def drive_password(key_file: str | None, exported: Mapping[str, str], drive_id: str, owner: Owner) -> str:
    """Read the password of a drive of this stack, at the moment of mounting; it is kept nowhere.

    Raises:
        ProviderError: the drive is gone, or not this stack's, or its password cannot stand in a file of credentials.
    """
    market = account_of(key_file, exported)
    market.whoami()
    drive = market.api.find(DRIVES, drive_id)
    doing = f"reading the password of drive {drive_id}"
    if drive is None:
        raise ProviderError(f"{doing}: the account does not know it. Run 'make up', which orders what is missing.")
    if owner_of(drive.get("name")) != owner:
        raise ProviderError(
            f"{doing}: its name does not carry {owner}, so it is not this stack's. Nothing was mounted."
        )
    password = drive.get("password")
    if not isinstance(password, str) or not password or not password.isprintable():
        raise ProviderError(f"{doing}: the account shows none that a file of credentials can hold. Ask the vendor.")
    return password
