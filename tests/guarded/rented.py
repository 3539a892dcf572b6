"""A rented stack in an emulated account whose clock is stepped, beside what other people have there; and who judges with full rights."""

import base64
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

from starlette.responses import PlainTextResponse

from emulator.softlayer import guests, users
from emulator.softlayer.api import SoftLayer
from emulator.softlayer.billing import charged
from emulator.softlayer.calls import Call, Credentials
from emulator.softlayer.faults import Fault
from emulator.softlayer.records import BillingItem, Guest
from microcluster.accounts.shared.account import Terms
from microcluster.accounts.softlayer.account import claim_notes
from microcluster.core.home import Owner
from tests.chaos.accounts import AccountServer, Rented
from tests.chaos.softlayer import MARK, guest_template

STACK, COPIED = "test", "copied"
OWNER = Owner(STACK, MARK)
PERSON = "person"
"""The user whose key the computers have; its rights may be taken."""
SETTINGS = {
    "clock_step_s": 1.0,
    "clock_start": "2026-11-23T08:00:00+00:00",
    "provisioning_s": 30.0,
    "reclaim_s": 20.0,
    "history": False,
    "restricted_user": PERSON,
    "restricted_permissions": tuple(sorted(users.PERMISSIONS)),
}
HOUR_S = 3600.0
GATEWAY = PlainTextResponse("", status_code=503)
_NUMBERS = count()


@dataclass
class Account:
    """The account, as it is; whoever asks over its address sees less."""

    server: AccountServer
    rented: Rented
    terms: Terms | None = None
    ordered: list[int] = field(default_factory=list)
    """The guests of the rental that is guarded."""

    def __post_init__(self) -> None:
        self.api = SoftLayer(self.rented.account)
        self.key = Credentials("local", self.rented.account.settings.api_key)
        self.call("Virtual_Guest", "createObject", guest_template(f"{COPIED}-{MARK}.microcluster"))
        self.strangers = self._of_others()

    @property
    def clock(self) -> float:
        """Its time; the emulator's own way asks the computer's clock too, which is another one here."""
        return self.rented.account.clock.virtual0

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(self.clock, UTC)

    def pass_(self, seconds: float) -> None:
        with self.rented.account.lock:
            self.rented.account.clock.step(seconds)
            self.api.advance()

    def call(self, service: str, method: str, *arguments: Any, identifier: Any = None) -> Any:
        """Call with every right, past the wire."""
        call = Call(f"SoftLayer_{service}", method, arguments, identifier, None, credentials=self.key)
        result = self.api.reply(call).result
        if isinstance(result, Fault):
            raise result
        return result.value

    def order(self, nodes: int, lease_h: Decimal | None, budget: Decimal | None, *, named: bool = True) -> None:
        """Order as `make up` does: the stack's key with its claim, then the guests; a version of before wrote no terms."""
        began = int(self.clock)
        minutes, cents = (None if each is None else round(each * unit) for each, unit in ((lease_h, 60), (budget, 100)))
        self.terms = Terms(began, minutes, cents)
        notes = claim_notes(OWNER, "0badcafe", terms=self.terms if named else None)
        if kept := self.claims():  # Of a rental of which the key could not be removed.
            self.call("Security_Ssh_Key", "editObject", {"notes": notes}, identifier=kept[0].id)
        else:
            blob = b"\0\0\0\x0bssh-ed25519\0\0\0 " + f"{next(_NUMBERS):032}".encode()
            key = {"key": f"ssh-ed25519 {base64.b64encode(blob).decode()}", "label": str(OWNER), "notes": notes}
            self.call("Security_Ssh_Key", "createObject", key)
        for rank in range(nodes):
            template = guest_template(OWNER.domain) | {"hostname": f"gpu-{rank}"}
            self.ordered.append(self.call("Virtual_Guest", "createObject", template)["id"])

    def limit(self, budget: Decimal, *, named: bool) -> None:
        """Write a budget too, which follows from the price."""
        self.terms = replace(self.terms, budget_cents=round(budget * 100))
        if named:
            notes = claim_notes(OWNER, "0badcafe", terms=self.terms)
            self.call("Security_Ssh_Key", "editObject", {"notes": notes}, identifier=self.claims()[0].id)

    def cancel(self) -> None:
        """Cancel what the stack holds, as Pulumi's destroy does with the provider."""
        self.pass_(60)
        for guest in self.guests():
            self.call("Virtual_Guest", "deleteObject", identifier=guest.id)
        for key in self.claims():
            self.call("Security_Ssh_Key", "deleteObject", identifier=key.id)

    def guests(self) -> list[Guest]:
        """Return the living guests of the stack, those of orders that wait included."""
        return [
            each for each in self._store.guests.read_all() if each.domain == OWNER.domain and each.cancelled is None
        ]

    def claims(self) -> list[Any]:
        return [each for each in self._store.ssh_keys.read_all() if each.notes.startswith(f"{OWNER.notes} ")]

    def items(self) -> list[BillingItem]:
        return [each for each in self._store.billing_items.read_all() if each.domain == OWNER.domain]

    @property
    def open(self) -> list[BillingItem]:
        return [each for each in self.items() if each.closed is None]

    @property
    def bill(self) -> Decimal:
        """What the stack's items are charged up to now."""
        return sum((charged(each, self.clock) for each in self.items()), Decimal(0))

    @property
    def began(self) -> float:
        return min(each.opened for each in self.items())

    @property
    def last_end(self) -> float:
        return max(each.closed or math.inf for each in self.items())

    def lease_end(self) -> float:
        """Return when the lease is over; never without one."""
        minutes = self.terms.lease_minutes
        return math.inf if minutes is None else self.terms.first_order + 60 * minutes

    def budget_end(self) -> float:
        """Return when another started hour costs more than the budget."""
        if self.terms.budget_cents is None:
            return math.inf
        per_hour = sum((Decimal(fee.hourly) for each in self.items() for fee in each.fees), Decimal(0))
        return self.began + float(Decimal(self.terms.budget_cents) / 100 // per_hour) * HOUR_S

    def touched(self) -> list[str]:
        """Say what of other people's things is not as it was."""
        now = self._of_others()
        return [f"{each} of somebody else is touched" for each, was in self.strangers.items() if now.get(each) != was]

    def permits(self, *rights: str) -> bool:
        """Whether the person's user has these rights."""
        return set(rights) <= set(self.rented.account.settings.restricted_permissions)

    def allow(self, *taken: str) -> None:
        """Let the person's user do everything but this."""
        rights = tuple(sorted(users.PERMISSIONS - set(taken)))
        object.__setattr__(self.rented.account.settings, "restricted_permissions", rights)

    @contextmanager
    def approval(self) -> Iterator[None]:
        """Let orders wait for a person's approval."""
        object.__setattr__(self.rented.account.settings, "approval", "pending")
        yield
        object.__setattr__(self.rented.account.settings, "approval", "auto")

    def approve(self) -> None:
        """Approve all that waits."""
        with self.rented.account.lock, self.rented.account.change():
            for order in list(self._store.orders.read_all()):
                if order.status == guests.PENDING:
                    guests.approve(self.rented.account, order.id)

    @contextmanager
    def reached(self, is_online: Callable[[], bool]) -> Iterator[None]:
        """Let a gateway answer instead of the account while a computer is not online."""
        wire = self.server.wire
        account = wire.account

        async def answer(scope: Any, receive: Any, send: Any) -> None:
            await (account if is_online() else GATEWAY)(scope, receive, send)

        wire.account = answer
        yield
        wire.account = account

    def key_file(self, user: str = PERSON) -> str:
        """Return the text of a file that opens it."""
        return self.rented.config_file.read_text().replace("username = local", f"username = {user}")

    @property
    def _store(self) -> Any:
        return self.rented.account.store

    def _of_others(self) -> dict[str, Any]:
        kinds = ("guests", "billing_items", "ssh_keys", "security_groups")
        found = {f"{kind} {each.id}": each for kind in kinds for each in getattr(self._store, kind).read_all()}
        return {
            name: (getattr(each, "cancelled", None), getattr(each, "closed", None), getattr(each, "notes", ""))
            for name, each in found.items()
            if getattr(each, "domain", "") != OWNER.domain
            and not getattr(each, "notes", "").startswith(f"{OWNER.notes} ")
        }


@contextmanager
def opened(server: AccountServer, folder: Path) -> Iterator[Account]:
    """Open an account in which only other people's things are."""
    with server.opened(folder, **SETTINGS) as rented:
        yield Account(server, rented)
