"""What an account has to say for orders to be safe: the contract between the kernel and a vendor.

A vendor implements ``Backend`` once. Journal, adoption, closing, proof, receipt and sweep are written against it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from providers.rental.errors import CallError
from providers.rental.operation import Identity, Operation
from providers.rental.owner_mark import Owner
from providers.rental.receipt import Charge
from providers.rental.waiting import Deadline, Pending

Tell = Callable[[str], None]


@dataclass(frozen=True)
class OrderRequest:
    """What an operation wants to have: looked for first, ordered only if it is certainly not there."""

    kind: str
    owner: Owner
    what: str
    """The subject of the sentences, for example ``guest gpu-0 of v100-1f3a9c42``."""
    name: str
    """What tells it from others of its kind and owner, for example its host name."""
    spec: Any
    """What the backend needs to write the order."""
    hostname: str | None = None
    """For machines: what orders and charges that name nothing else are recognized by."""
    is_named: bool = True
    """Whether it is found by its name among the stack's own things; else by ``Backend.look``."""
    is_unique: bool = False
    """Whether the account refuses a second one, so that a refusal may mean that a lagging list does not show the first."""
    key_ids: Sequence[str] | None = None
    """For what costs money: the ssh keys that its order names. Only one computer orders for a stack at a time."""
    sold: str = ""
    """What a price list needs to know of it, kept in the journal for accounts that show no bill."""

    @property
    def content(self) -> Mapping[str, Any]:
        """What the journal remembers of it, as a digest."""
        return {"kind": self.kind, "name": self.name, "spec": self.spec}


@dataclass(frozen=True)
class Thing:
    """One object as the account shows it."""

    kind: str
    id: str
    name: str
    owner: Owner | None
    label: str
    """For a sentence, for example ``guest 101 (gpu-0.v100-1f3a9c42.microcluster)``."""
    is_alive: bool = True
    """Ordered and not cancelled."""
    is_billed: bool = False
    """Whether it has a charge, with or without a date on which that ends."""
    is_kept: bool = False
    """It stays, and is billed, when its stack goes."""
    work: str | None = None
    """What the account is doing with it; a cancellation has to wait for its end."""
    is_built: bool = True
    """False between order and provisioning, where a time without work means that the order is lost."""
    unready: Pending | None = None
    """What a living machine still lacks; None when it can be used."""
    ends: str | None = None
    """When a cancellation that was accepted takes effect."""
    price: str = ""
    """For example ``4.4 USD an hour``."""
    rename: str = ""
    """The command by which a person gives it another domain, which comes right behind it."""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    """The ordered properties, as far as the account shows them; named as in the resource's inputs."""
    outputs: Mapping[str, Any] = field(default_factory=dict)
    """What the program wants to know of it, as far as it is known."""
    row: Any = None
    """The vendor's own view."""


Found = Thing | Pending | None
"""It is there; nobody can know yet; it is certainly gone."""


@dataclass(frozen=True)
class OrderStatus:
    """An order that was accepted."""

    id: str
    described: str
    """For a sentence, for example ``its order 7 is PENDING_APPROVAL``."""
    is_waiting: bool = False
    """A person has to approve it first."""
    is_refused: bool = False
    """It was refused or withdrawn."""


@dataclass(frozen=True)
class Belonging:
    """One thing of one stack, of whatever kind, as the account lists it."""

    kind: str
    id: str
    name: str
    owner: Owner
    since: datetime | None = None
    per_hour: Decimal = Decimal(0)
    is_billed: bool = False
    is_alive: bool = True
    """False for a machine that is cancelled and listed for a while; one that waits for approval is alive and not billed."""
    is_kept: bool = False
    """It stays, and is billed, when its stack goes."""
    cancel_by_hand: str = ""
    """The command by which a person cancels it, for what we do not cancel."""

    @property
    def label(self) -> str:
        """Name it shortly; the numbers of two kinds may be the same."""
        return f"{self.kind}/{self.id}"

    def __str__(self) -> str:
        """Name it for a person."""
        return f"{self.label} ({self.name})"


@dataclass(frozen=True)
class Claim:
    """What stands in the account for "this journal orders for the stack": an object of the stack, and the journal it names."""

    object_id: str
    journal: str | None


class Backend(ABC):
    """One account. Lists may lag; what is read by its id does not, but may not be shown yet.

    What an account does not know (orders that wait for a person, charges that a user may not see) keeps its default here.
    """

    machine: str
    """The journal's name of the kind that costs money."""
    machine_label: str
    """The same kind as a person reads and types it, in a ``Belonging``."""
    other_kinds: Sequence[str]
    """The journal's names of what else is removed with the stack."""
    lists_lag_s: float
    """So far the lists may lag behind an accepted order or cancellation."""
    longest_call_s: float
    """So long after an order was sent, at the latest, the account has carried it out, even if its caller has left."""
    username: str = ""
    grant_cancelling: str = ""
    """The command by which a person grants the user the right to cancel."""
    secrets: tuple[str, ...] = ()
    """What was read of the key's file and must not be printed."""

    @abstractmethod
    def identity(self) -> Identity:
        """Ask once who we are."""

    @abstractmethod
    def list(self, kind: str, owner: Owner) -> Sequence[Thing]:
        """List what bears stack and mark, cancelled things included."""

    @abstractmethod
    def find(self, kind: str, object_id: str, owner: Owner, *, fresh: bool, max_age_s: float = 0.0) -> Found:
        """Read one thing by its id; None when it is certainly gone, ``Pending`` when nobody can know.

        Args:
            fresh: whether it was ordered so recently that the account need not show it yet.
            max_age_s: above 0, an answer that old will do, so that all who wait can share one list.
        """

    def look(self, op: Operation, request: OrderRequest) -> Found:
        """Look whether something is there that has no name of its own, as an ssh key that is known by its material."""
        return None

    def prepare(self, request: OrderRequest) -> Any:
        """Write the order; it has ``content``. Apart from ``order`` because it may ask the account, and may fail harmlessly."""
        return request

    @abstractmethod
    def order(self, order: Any) -> str:
        """Send an order, exactly once, and return the id of what it makes.

        Raises:
            OrderWithoutId: it was accepted, and the receipt names only the order.
        """

    def order_status(self, order_id: str, owner: Owner) -> OrderStatus | None:
        """Read an order that was accepted; None if it was refused since, or all that it made has ended."""
        return None

    def order_of(self, machine: Thing, max_age_s: float) -> OrderStatus | None:
        """Read the order that a machine which is not built yet came from; None where there is none, or no list shows it."""
        return None

    def waiting_order(self, owner: Owner) -> OrderStatus | None:
        """Find an order that waits for a person's approval and shows no machine yet: nobody may take it for lost."""
        return None

    def unshown(self, owner: Owner, hostname: str, since: datetime | None) -> str | None:
        """Say what shows that a machine of this host name was ordered although no list shows the machine itself.

        Args:
            since: when an order was sent whose answer got lost, by this computer's clock; None if there was none.
        """
        return None

    def advice(self, request: OrderRequest, error: CallError) -> str | None:
        """Say what a person does after a refusal, if there is more to say than that the stack file is wrong."""
        return None

    @abstractmethod
    def read_claim(self, owner: Owner, key_ids: Sequence[str], max_age_s: float) -> Claim | None:
        """Read which journal orders for the stack: the only trace of another computer, or of a lost journal."""

    @abstractmethod
    def write_claim(self, owner: Owner, claim: Claim) -> None:
        """Write the journal's name into the account."""

    @abstractmethod
    def cancel(self, thing: Thing) -> Pending | None:
        """Cancel a machine, effective at once; ``Pending`` if that began something else, which has to end first.

        Raises:
            CallError: it was refused.
        """

    def check_visible(self, thing: Thing) -> None:
        """Refuse to believe that a thing has ended if this user may not see its charge.

        Raises:
            ProviderError: the text names the right that is missing.
        """
        return

    def check_to_prove(self) -> None:
        """Refuse to call an account clean for a user who does not see all of it."""
        return

    @abstractmethod
    def everything(self) -> Sequence[Belonging]:
        """List what bears any mark of microcluster, of every kind."""

    @abstractmethod
    def remove(self, kind: str, object_id: str, owner: Owner, deadline: Deadline, tell: Tell) -> None:
        """Remove something else that bears the mark; what is gone, another's by now, or kept is left alone."""

    @abstractmethod
    def charges(self, owner: Owner, known_ids: Iterable[str] = ()) -> Sequence[Charge]:
        """List what was and is billed as it is now, with what the lists may not show yet."""

    def charged_names(self, owner: Owner) -> Sequence[str]:
        """List the host name of each charge that the account's list shows."""
        return [each.host for each in self.charges(owner)]
