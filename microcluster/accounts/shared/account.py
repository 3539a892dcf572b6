"""Contract between the kernel and a vendor's account.

An ``Account`` answers four questions; one that sells, a ``Market``, answers five more. Journal, adoption, closing, proof, receipt and
sweep are written against them.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from microcluster.accounts.shared.errors import AccountError, CallError, ProviderError
from microcluster.accounts.shared.journal import Journal
from microcluster.accounts.shared.receipt import Charge
from microcluster.core.home import Owner

EXTENSION = r"(?P<minutes>[0-9]{1,9})m-(?P<cents>[0-9]{1,12})c"
TERMS = r"(?P<second>[0-9]{9,11})s-(?P<lease>[0-9]{1,9}|no)m-(?P<budget>[0-9]{1,12}|no)c"


@dataclass(frozen=True)
class Pending:
    """Reason why a wait goes on, and its usual duration."""

    detail: str
    usual_s: float | None = None


@dataclass(frozen=True)
class Identity:
    """Account and user of a key."""

    account_id: str
    name: str
    username: str
    endpoint: str
    is_emulated: bool = False
    """Whether it answers on this computer, so that its machines are emulated and nobody pays."""


@dataclass(frozen=True)
class Quote:
    """Price of an hour of all machines of a stack, None where nobody names one, and its source."""

    per_hour: Decimal | None
    source: str


@dataclass(frozen=True)
class OrderStatus:
    """An order that was accepted."""

    id: str
    described: str
    """The order in a sentence, for example ``its order 7 is PENDING_APPROVAL``."""
    is_waiting: bool = False
    """Whether a person has to approve it first."""
    is_refused: bool = False
    """Whether it was refused or withdrawn."""
    hostnames: tuple[str, ...] = ()
    """Host names of the machines in it."""
    is_shown: bool = True
    """Whether the account shows every machine in it."""


@dataclass(frozen=True)
class Resource:
    """One rented resource, as the account shows it."""

    kind: str
    id: str
    name: str
    """Name in the account's lists."""
    owner: Owner | None
    short_name: str = ""
    """Unique name among the owner's resources of its kind, for example the host name; else ``name`` is unique."""
    what: str = ""
    """Word for the kind in a sentence; empty where it is the kind itself."""
    is_alive: bool = True
    """Ordered and not cancelled; false for a machine that is cancelled and listed for a while."""
    is_billed: bool = False
    """Whether it has a charge, with or without a date on which that ends."""
    is_kept: bool = False
    """Whether it stays, and is billed, when its stack goes."""
    since: datetime | None = None
    per_hour: Decimal = Decimal(0)
    price: str = ""
    """Price with its unit, for example ``4.4 USD an hour``."""
    cancel_by_hand: str = ""
    """The command by which a person cancels it, for what we do not cancel."""
    work: str | None = None
    """Pending work of the account on it; a cancellation has to wait for its end."""
    is_built: bool = True
    """Whether it is provisioned; if not, a time without work means that the order is lost."""
    order: OrderStatus | None = None
    """Order of one that is not built, as far as it names that itself."""
    unready: Pending | None = None
    """Reason why a living machine cannot be used yet; None when it can."""
    ends: str | None = None
    """Date on which an accepted cancellation takes effect."""
    rename: str = ""
    """The command by which a person gives it another domain, which comes right behind it."""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    """The ordered properties, as far as the account shows them; named as in the resource's inputs."""
    outputs: Mapping[str, Any] = field(default_factory=dict)
    """Outputs for the program, as far as they are known."""
    row: Any = None
    """The vendor's own view."""

    @property
    def label(self) -> str:
        """Name the resource as a person types it; two kinds may have the same number."""
        return f"{self.kind}/{self.id}"

    @property
    def described(self) -> str:
        """Name the resource in a sentence."""
        return f"{self.what or self.kind} {self.id} ({self.name})"

    @property
    def called(self) -> str:
        """Name the resource among the stack's own of its kind."""
        return self.short_name or self.name

    def check_ours(self, owner: Owner, doing: str) -> None:
        """Refuse a thing that bears another stack or mark, or none: an id alone proves nothing.

        Raises:
            ProviderError: it is somebody else's, or somebody renamed it; nothing was done to it.
        """
        if self.owner != owner:
            way = f"with '{self.rename}{owner.domain}'" if self.rename else "in the console"
            raise ProviderError(
                f"{doing} {self.described}: it does not bear {owner}, so it is not this stack's, or was renamed. "
                f"Nothing was done to it, and it may be billed. If it is yours, name it back {way} and "
                "run the command again; if not, take it out of the state with 'pulumi state delete'."
            )

    def __str__(self) -> str:
        """Name the resource for a person, with its number."""
        return f"{self.label} ({self.name})"


Found = Resource | Pending | None
"""Result of a look: the resource, ``Pending`` while nobody can know, None when it is certainly gone."""


@dataclass(frozen=True)
class OrderRequest:
    """Wanted resource: looked for first, ordered only if it is certainly not there."""

    kind: str
    owner: Owner
    name: str
    """Unique name among the owner's resources of its kind, for example the host name."""
    order: Any = field(repr=False)
    """The vendor's order, as it is prepared and sent; it may hold a private host key."""
    look: Callable[[], Found] | None = None
    """Function that looks for a resource without a name of its own."""
    advice: Callable[[CallError], str | None] = lambda error: error.advice
    """Function that advises a person after a refusal, where a wrong stack file is not the only cause."""
    hostname: str | None = None
    """A machine's host name, by which orders and charges that name nothing else are recognized."""
    is_billed: bool = False
    """Whether it costs money: then only one computer orders for a stack at a time, and a lost order is not sent again."""
    key_ids: Sequence[str] = ()
    """The ssh keys that its order names."""
    is_unique: bool = False
    """Whether the account refuses a second one, so that a refusal may mean that a lagging list does not show the first."""
    sold: str = ""
    """Facts for the price list, kept in the journal for accounts that show no bill."""
    outputs: Mapping[str, Any] = field(default_factory=dict)
    """Outputs for the program that nobody can read back."""
    adopted: Mapping[str, Any] = field(default_factory=dict)
    """Outputs that also hold for one that an earlier run ordered."""

    @property
    def what(self) -> str:
        """Name the requested resource in a sentence, for example ``guest gpu-0 of v100-1f3a9c42``."""
        return f"{self.kind} {self.name} of {self.owner}"


@dataclass(frozen=True)
class Extension:
    """Hours and dollars that a person has allowed beyond the stack file."""

    hours: Decimal = Decimal(0)
    dollars: Decimal = Decimal(0)

    def __bool__(self) -> bool:
        """Tell whether anything was allowed."""
        return bool(self.hours or self.dollars)

    def __add__(self, other: "Extension") -> "Extension":
        return Extension(self.hours + other.hours, self.dollars + other.dollars)

    def __str__(self) -> str:
        """Write the extension for a person."""
        parts = [f"+{self.hours.normalize():f} h"] if self.hours else []
        return ", ".join(parts + ([f"+${self.dollars:.2f}"] if self.dollars else []))

    @property
    def word(self) -> str:
        """Write the extension as letters, digits and dashes, which every account keeps."""
        return f"{round(self.hours * 60)}m-{round(self.dollars * 100)}c"

    @classmethod
    def read(cls, word: str) -> "Extension":
        """Read such a word; whatever else stands there allows nothing."""
        found = re.fullmatch(EXTENSION, word)
        return cls(Decimal(found["minutes"]) / 60, Decimal(found["cents"]) / 100) if found else cls()


@dataclass(frozen=True)
class Terms:
    """Begin and limits of a rental, kept in the account, so that whoever has its key can name it and end it.

    Attributes:
        first_order: the second of its first order since 1970, by the account's clock.
        lease_minutes, budget_cents: its limits as they were when something was ordered last; None without one. Of a queue the
            lease is in minutes of nodes.
    """

    first_order: int
    lease_minutes: int | None = None
    budget_cents: int | None = None

    def rental_id(self, account_id: str, owner: Owner) -> str:
        """Name the rental; no other one has its name, in whatever account."""
        return f"{account_id}-{owner.mark}-{self.first_order}"

    @property
    def word(self) -> str:
        """Write the terms as letters, digits and dashes, which every account keeps."""
        lease, budget = ("no" if each is None else each for each in (self.lease_minutes, self.budget_cents))
        return f"{self.first_order}s-{lease}m-{budget}c"

    @classmethod
    def read(cls, word: str) -> "Terms | None":
        """Read such a word; whatever else stands there says nothing of a rental."""
        found = re.fullmatch(TERMS, word)
        if found is None:
            return None
        lease, budget = (None if found[key] == "no" else int(found[key]) for key in ("lease", "budget"))
        return cls(int(found["second"]), lease, budget)


@dataclass(frozen=True)
class Claim:
    """Record in the account of the journal that orders for a stack; it stands at an object of the stack."""

    object_id: str
    journal: str | None
    extended: str = ""
    """The word of an ``Extension``, which stands beside the journal, as every guard of the stack has to see it."""
    terms: Terms | None = None
    """Begin and limits of the rental; None where nothing was ordered yet, or by a version that wrote none."""


class Account(ABC):
    """One account, read. Lists may lag; what is read by its id does not, but may not be shown yet."""

    machine: str
    """The kind that runs programs and costs most of the money."""
    secrets: tuple[str, ...] = ()
    """Values of the key's file that must not be printed."""

    @abstractmethod
    def whoami(self) -> Identity:
        """Ask once who we are; the first proof that the key is valid."""

    @abstractmethod
    def resources(
        self, owner: Owner | None = None, kind: str | None = None, max_age_s: float = 0.0
    ) -> Sequence[Resource]:
        """List resources with the mark, or with any mark of microcluster; cancelled ones included.

        Args:
            max_age_s: how old the list of one stack's machines may be.
        """

    @abstractmethod
    def charges(self, owner: Owner, known: Iterable[str] = (), *, exact: bool = True) -> Sequence[Charge]:
        """List past and running charges, oldest first.

        Args:
            known: ids of machines that the lists may not show yet.
            exact: as it is at this moment; else from lists alone, which is quick, and may be minutes behind.
        """

    @abstractmethod
    def end(self, resource: Resource) -> Pending | None:
        """Cancel or remove it, effective at once; ``Pending`` if something else has to end first.

        Raises:
            CallError: it was refused.
        """

    def journal(self, owner: Owner) -> Journal:
        """Return this computer's journal of what a stack orders here."""
        return Journal(owner.stack, owner.mark, self.whoami().account_id)

    @property
    def clock_ahead_s(self) -> float:
        """Seconds by which this computer's clock is ahead of the account's; 0 where that is not known."""
        return 0.0

    @abstractmethod
    def extension(self, owner: Owner, new: Extension | None = None) -> Extension:
        """Read how much more a person has allowed this rental, or write it, where every guard of the stack reads it.

        Raises:
            ProviderError: nothing is rented at which it could be written.
        """

    @abstractmethod
    def terms(self, owner: Owner, new: Terms | None = None) -> Terms | None:
        """Read when the rental began and what limits it, or write it; None where nothing says it.

        Raises:
            ProviderError: nothing is rented at which it could be written.
        """

    def hidden(self) -> str | None:
        """Say why something may be billed that this user does not see; None if it sees all."""
        return None

    def check_sees_all(self, doing: str) -> None:
        """Refuse to believe in an absence, or to order, with a user who is not shown everything.

        Raises:
            AccountError: the text says what is missing, and where it is granted.
        """
        hidden = self.hidden()
        if hidden:
            raise AccountError(f"{doing}: {hidden}")


class Market(Account):
    """An account that sells."""

    api: Any
    """The vendor's API, whose answers bear a date."""
    lists_lag_s: float
    """Longest lag of the lists behind an accepted order or cancellation."""
    settled_s: float
    """Seconds after the end of an order's call until the lists show whatever it made."""

    @abstractmethod
    def find(self, kind: str, object_id: str, owner: Owner, *, fresh: bool, max_age_s: float = 0.0) -> Found:
        """Read one thing by its id; None when it is certainly gone, ``Pending`` when nobody can know.

        Args:
            fresh: whether it was ordered so recently that the account need not show it yet.
            max_age_s: above 0, an answer that old will do, so that all who wait can share one list.

        Raises:
            ProviderError: this user may not see whether it has ended.
        """

    def prepare(self, op: Any, request: OrderRequest) -> Any:
        """Return the order, ready to be sent. It may ask the account, and order what has to be there before, and may fail.

        Args:
            op: the ``Operation``.
        """
        return request.order

    @abstractmethod
    def order(self, order: Any) -> str:
        """Send an order, exactly once, and return the id of what it makes.

        Raises:
            OrderWithoutId: it was accepted, and the receipt names only the order.
            CallError: a refusal that is known, or anything else.
        """

    @abstractmethod
    def quote(self, stack: str, nodes: int, order: Mapping[str, Any]) -> Quote:
        """Return the price of machines, and order nothing.

        Args:
            order: the other fields of the ledger that say what is rented.

        Raises:
            ProviderError: the account would refuse the order.
        """

    @property
    def clock_ahead_s(self) -> float:
        """Clock difference by the date in its newest answer."""
        return self.api.clock_ahead_s

    def orders(self, owner: Owner, max_age_s: float = 0.0) -> Sequence[OrderStatus]:
        """List the orders of a stack, oldest first."""
        return ()

    @abstractmethod
    def standing(
        self, owner: Owner, hostname: str | None, since: datetime | None, numbers: Sequence[str], max_age_s: float = 0.0
    ) -> OrderStatus | None:
        """Find what shows that something was ordered although no list shows the thing itself; each is read by its id.

        Args:
            hostname: of a machine.
            since: when an order was sent whose answer got lost, by the account's clock; None if there was none.
            numbers: the account's own, of orders that it accepted.
            max_age_s: how old the lists may be that say what to read.
        """

    @abstractmethod
    def claim(self, owner: Owner, *, key_ids: Sequence[str] = (), max_age_s: float = 0.0) -> Claim | None:
        """Read which journal orders for the stack: the only trace of another computer or of a lost journal."""

    @abstractmethod
    def write_claim(self, claim: Claim, owner: Owner) -> None:
        """Write journal and extension at the claim's object."""

    def make_claim(self, op: Any, owner: Owner) -> Claim | None:
        """Make the stack's claim, where no resource of the stack bears it; return the one that counts.

        Args:
            op: the operation that orders first.
        """
        return None

    def extension(self, owner: Owner, new: Extension | None = None) -> Extension:
        """Read the extension in the stack's claim, or write it there."""
        claim = self.claim(owner)
        if new is not None:
            claim = replace(_writable(claim, owner), extended=new.word)
            self.write_claim(claim, owner)
        return Extension.read(claim.extended if claim else "")

    def terms(self, owner: Owner, new: Terms | None = None) -> Terms | None:
        """Read the rental's terms in the stack's claim, or write them there."""
        claim = self.claim(owner)
        if new is not None:
            claim = replace(_writable(claim, owner), terms=new)
            self.write_claim(claim, owner)
        return claim.terms if claim else None


def _writable(claim: Claim | None, owner: Owner) -> Claim:
    """Refuse to write where nobody would read it.

    Raises:
        ProviderError: the text says what to run first.
    """
    doing = f"recording the limits of stack {owner.stack}"
    if claim is None:
        raise ProviderError(f"{doing}: the account has no claim of it, so nothing is rented.")
    if claim.journal is None:
        raise ProviderError(
            f"{doing}: its claim in the account names no journal any more. `make up STACK={owner.stack}` "
            "writes it again; then run the same command again."
        )
    return claim
