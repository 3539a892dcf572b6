"""A resource of a stack: created once, read, updated and deleted with proof; whatever fails after its order keeps the id.

A vendor's resource gives its inputs and outputs, what forces a replacement, its order, and what makes it ready.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, ClassVar

from pydantic import ValidationError

from microcluster.accounts.shared import sweep
from microcluster.accounts.shared.account import Market, OrderRequest, Pending, Quote, Resource, Terms
from microcluster.accounts.shared.closing import close
from microcluster.accounts.shared.declared import Declared
from microcluster.accounts.shared.errors import PartialFailure, ProviderError, WaitError
from microcluster.accounts.shared.order import Operation, Session, adopt_or_order
from microcluster.accounts.shared.readiness import GoneError, Readiness, certain, fresh_until
from microcluster.accounts.shared.receipt import as_lines
from microcluster.accounts.shared.redaction import redacted
from microcluster.accounts.shared.spec import Limited, Problem, Spec, Values, other_key, other_mark, problems
from microcluster.core.catalog.billing_rules import Prices
from microcluster.core.home import Home, Owner, owner_in_domain

RENTAL = "rental"


@dataclass(frozen=True)
class Created:
    """An object with its id and all outputs."""

    resource_id: str
    outputs: dict[str, Any]


@dataclass(frozen=True)
class Live:
    """An object as the account shows it; its inputs differ from ours when somebody changed it."""

    inputs: dict[str, Any]
    outputs: dict[str, Any]


class Managed(ABC):
    """Operations that the engine asks of a resource. ``check`` and ``known_outputs`` are pure and never call the account."""

    DECLARED: ClassVar[type[Declared]]
    """Pulumi resource with which a program declares it."""
    REPLACE_ON: ClassVar[frozenset[str]] = frozenset()
    TIMEOUT_S: ClassVar[float] = 90 * 60.0

    def check(self, inputs: Values, old_inputs: Values) -> list[Problem]:
        """Return problems of the inputs."""
        return problems(self.DECLARED.SPEC, inputs)

    def heed(self, session: Session, inputs: Values) -> None:  # noqa: B027 - most have nothing to tell
        """Keep of the inputs what other operations of this process have to know."""

    def known_outputs(self, inputs: Values, old: Values) -> dict[str, Any]:
        """Tell a preview the outputs that are known already; ``old`` is empty for a new object."""
        return {key: old.get(key) for key in self.DECLARED.output_keys()} if old else {}

    def previewed(self, op: Operation, inputs: Values, old: Values) -> dict[str, Any]:
        """Tell a preview the outputs; what it asks an account for, it must do without in a few seconds."""
        return self.known_outputs(inputs, old)

    @abstractmethod
    def create(self, op: Operation, inputs: Values) -> Created:
        """Adopt or order it, and return it ready."""

    @abstractmethod
    def read(self, op: Operation, resource_id: str, inputs: Values, old: Values) -> Live | None:
        """Read a resource; None when it is gone."""

    @abstractmethod
    def update(self, op: Operation, resource_id: str, inputs: Values, old: Values) -> dict[str, Any]:
        """Finish a resource, or change it in place, and return all outputs; ``old`` are the recorded outputs."""

    @abstractmethod
    def delete(self, op: Operation, resource_id: str, inputs: Values, old: Values) -> None:
        """Cancel a resource and return when that is proven."""


class Rented(Managed):
    """A resource of the account that is ordered and cancelled."""

    KIND: ClassVar[str]
    LATER: ClassVar[tuple[str, ...]] = ()
    """The inputs that are put right after an adoption, as in any update."""

    def request(self, op: Operation, spec: Any, owner: Owner) -> OrderRequest:
        """Write down what is looked for, and ordered if it is not there; what follows from its inputs alone its spec writes."""
        return spec.request(owner)

    def lasting(self, market: Any, owner: Owner, resource_id: str, inputs: Values, old: Values) -> dict[str, Any]:
        """Return the outputs that no view of it shows, from the recorded ones if they are there."""
        return {}

    def flaws(self, found: Resource, lasting: Values) -> Sequence[str]:
        """Say why it may not be adopted, whatever its properties are; for example ``it is billed by the month``."""
        return ()

    def finish(self, op: Operation, market: Any, spec: Any, building: Readiness, *, is_new: bool) -> Resource:
        """Wait until it is ready, and give it what no order carries."""
        return building.wait()

    def drift(self, found: Resource, inputs: Values) -> Mapping[str, Any]:
        """Return the inputs that somebody changed, as the account shows them."""
        return {key: value for key, value in found.inputs.items() if key in inputs}

    def gone(self, op: Operation, market: Any, resource_id: str, inputs: Values, old: Values) -> None:
        """Clean up after a resource that is gone."""

    def check(self, inputs: Values, old_inputs: Values) -> list[Problem]:
        """Return problems of the inputs."""
        return other_key(inputs, old_inputs) or super().check(inputs, old_inputs)

    def owner(self, op: Operation, inputs: Values) -> Owner:
        """Read whose it is: a machine's domain says it, and else the key folder with its mark, also after a rename."""
        return owner_in_domain(inputs.get("domain")) or Home.of().owner_of(op.stack, str(inputs.get("mark") or ""))

    def create(self, op: Operation, inputs: Values) -> Created:
        """Adopt the one that an interrupted run ordered, else order it; return it ready."""
        spec, owner = self.DECLARED.SPEC.model_validate(inputs), self.owner(op, inputs)
        request, market = self.request(op, spec, owner), op.market()
        made_or_adopted = adopt_or_order(op, market, request)
        # One that an earlier process has ordered is named by the next refresh: nothing may fail between order and state.
        rental = {RENTAL: op.session.named.get(owner)} if RENTAL in self.DECLARED.output_keys() else {}
        if isinstance(made_or_adopted, str):
            return Created(
                made_or_adopted,
                self._finished(op, market, spec, made_or_adopted, {**request.outputs, **rental}, is_new=True),
            )
        lasting = self.lasting(market, owner, made_or_adopted.id, inputs, request.adopted) | rental
        check_adoptable(made_or_adopted, spec, self.LATER, self.flaws(made_or_adopted, lasting))
        op.log.info(f"Goes on with {made_or_adopted.described}, whose order was accepted before.")
        return Created(made_or_adopted.id, self._finished(op, market, spec, made_or_adopted.id, lasting, is_new=True))

    def read(self, op: Operation, resource_id: str, inputs: Values, old: Values) -> Live | None:
        """Read a resource once it is certain whether it exists; one that is not ready is a partial failure."""
        _refuse_import(op, resource_id, inputs)
        market, owner = op.market(old.get("accountId")), self.owner(op, inputs)
        try:
            live_resource = certain(op, market, Resource(self.KIND, resource_id, op.name, owner))
        except WaitError as error:
            raise PartialFailure(resource_id, dict(old), str(error), dict(inputs)) from error
        if live_resource is None:
            op.journal(owner).closed(self.KIND, resource_id)
        if live_resource is None or not live_resource.is_alive:
            self.gone(op, market, resource_id, inputs, old)
            return None
        live_resource.check_ours(owner, "reading")
        live = {**inputs, **self.drift(live_resource, inputs)}
        lasting = self.lasting(market, owner, resource_id, inputs, old) | self._rental(op, market, owner, old)
        outputs = {**live_resource.outputs, **lasting, "accountId": market.whoami().account_id}
        try:
            state = Readiness(op, market, live_resource).assess(live_resource)
        except ProviderError as error:
            raise PartialFailure(resource_id, outputs, str(error), live) from error
        if isinstance(state, Pending):
            raise PartialFailure(resource_id, outputs, f"{live_resource.described} is not ready: {state.detail}.", live)
        return Live(live, outputs)

    def update(self, op: Operation, resource_id: str, inputs: Values, old: Values) -> dict[str, Any]:
        """Go on with one that was not ready, and change in place what can be changed in place."""
        spec, market = self.DECLARED.SPEC.model_validate(inputs), op.market(old.get("accountId"))
        owner = self.owner(op, inputs)
        lasting = self.lasting(market, owner, resource_id, inputs, old) | self._rental(op, market, owner, old)
        return self._finished(op, market, spec, resource_id, lasting, is_new=False)

    def delete(self, op: Operation, resource_id: str, inputs: Values, old: Values) -> None:
        """Cancel a resource and return when the account shows that it is billed no more."""
        market, owner = op.market(old.get("accountId")), self.owner(op, inputs)
        sought = Resource(self.KIND, resource_id, op.name, owner)
        close(op, market, sought, fresh_until=fresh_until(op, market, sought))
        op.journal(owner).closed(self.KIND, resource_id)

    def _rental(self, op: Operation, market: Market, owner: Owner, old: Values) -> dict[str, Any]:
        """Return the output that names the rental, for what has it."""
        if RENTAL not in self.DECLARED.output_keys():
            return {}
        terms = None if old.get(RENTAL) else market.terms(owner)
        return {RENTAL: terms.rental_id(market.whoami().account_id, owner) if terms else old.get(RENTAL)}

    def _finished(
        self, op: Operation, market: Market, spec: Any, resource_id: str, lasting: Values, *, is_new: bool
    ) -> dict[str, Any]:
        inputs = spec.model_dump(mode="json", by_alias=True)
        known = {**lasting, "accountId": market.whoami().account_id}
        name = str(inputs.get("hostname") or inputs.get("name") or op.name)
        building = Readiness(op, market, Resource(self.KIND, resource_id, name, self.owner(op, inputs)))
        with recorded(op, building, known):
            found = self.finish(op, market, spec, building, is_new=is_new)
        return {**found.outputs, **known}


class Ledger(Managed):
    """The first resource of a stack and the last to go, never replaced.

    The account is checked before the first order and proven clean after the last cancellation.
    """

    def known_outputs(self, inputs: Values, old: Values) -> dict[str, Any]:
        """Price the cluster by the dated list, which needs no account."""
        known = super().known_outputs(inputs, old)
        try:
            prices = self.DECLARED.SPEC.model_validate(inputs).prices()
        except ValidationError:  # A preview need not know all inputs.
            return known
        return {**known, **priced(prices)} if prices else known

    @abstractmethod
    def checked(self, op: Operation, market: Any, spec: Any, old: Values) -> dict[str, Any]:
        """Check the account for all that is to come, order nothing, and return the outputs."""

    def check(self, inputs: Values, old_inputs: Values) -> list[Problem]:
        """Return problems of the inputs."""
        return other_mark(inputs, old_inputs) or problems(self.DECLARED.SPEC, inputs)

    def create(self, op: Operation, inputs: Values) -> Created:
        """Check the account; order nothing."""
        spec: Any = self.DECLARED.SPEC.model_validate(inputs)
        outputs = self.checked(op, op.market(), spec, {})
        _check_budget(spec, outputs)
        return Created(str(Owner(spec.stack, spec.mark)), outputs)

    def heed(self, session: Session, inputs: Values) -> None:
        """Keep the limits for whatever is ordered first."""
        with suppress(ValidationError):
            session.limits = limits_of(self.DECLARED.SPEC.model_validate(inputs))

    def read(self, op: Operation, resource_id: str, inputs: Values, old: Values) -> Live | None:
        """Prove that the key still belongs to the recorded account; nothing else of a ledger can drift."""
        _refuse_import(op, resource_id, inputs)
        op.market(old.get("accountId"))
        return Live(dict(inputs), {key: old.get(key) for key in self.DECLARED.output_keys()})

    def update(self, op: Operation, resource_id: str, inputs: Values, old: Values) -> dict[str, Any]:
        """Check the cluster anew, and let the limits of a changed stack file count from now on."""
        market, spec = op.market(old.get("accountId")), self.DECLARED.SPEC.model_validate(inputs)
        outputs, owner = self.checked(op, market, spec, old), Owner(spec.stack, spec.mark)
        terms = market.terms(owner)
        if terms is None or _per_hour(outputs) > _per_hour(old):  # Else nothing is ordered that was not checked.
            _check_budget(spec, outputs)
        if terms:
            market.terms(owner, replace(limits_of(spec), first_order=terms.first_order))
        return outputs

    def delete(self, op: Operation, resource_id: str, inputs: Values, old: Values) -> None:
        """Cancel whatever in the account still bears the mark, prove that nothing is billed, and log the receipt."""
        owner = Owner(str(inputs.get("stack") or op.stack), str(inputs["mark"]))
        found = sweep.clean(op, op.market(old.get("accountId")), owner)
        op.log.info(as_lines(found, owner.mark))


def limits_of(spec: Limited) -> Terms:
    """Return the limits of a stack file as the account keeps them; it says itself when the rental began."""
    return Terms(0, spec.lease_minutes, spec.budget_cents)


def _check_budget(spec: Any, outputs: Values) -> None:
    """Refuse an order that the guard would end before the job could do anything, by what the account itself asks."""
    per_hour = _per_hour(outputs)
    least = per_hour * spec.least_hours
    if spec.budget_cents is not None and spec.budget_cents < least * 100:
        raise ProviderError(
            f"checking the budget of stack {spec.stack}: ${spec.budget_cents / 100:.2f} does not pay {spec.least_hours} started hours at "
            f"${per_hour:.2f} ({outputs['priceSource']}), which preparation, data, an hour of training and the guard's reserve take. "
            f"Nothing was ordered. Set guard.budget to at least {least:.2f}, or choose cheaper machines."
        )


def _per_hour(outputs: Values) -> Decimal:
    return Decimal(outputs.get("pricePerHour") or 0)


def priced(found: Prices | Quote) -> dict[str, str]:
    """Write down what the whole cluster costs an hour, as text; empty where nobody knows."""
    price = "" if found.per_hour is None else f"{found.per_hour:f}"
    return {"pricePerHour": price, "priceSource": found.source}


def check_adoptable(found: Resource, spec: Spec, later: Sequence[str] = (), flaws: Sequence[str] = ()) -> None:
    """Refuse to adopt what is not what is wanted.

    Raises:
        ProviderError: the text has every difference.
    """
    wanted = spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    compared = [key for key in found.inputs if key in wanted and key not in later]
    differing = [
        f"{key} is {found.inputs[key]} there and {wanted[key]} here"
        for key in sorted(compared)
        if found.inputs[key] != wanted[key]
    ]
    differing += flaws
    if differing:
        raise ProviderError(
            f"adopting {found.described}, which an earlier run ordered: {'; '.join(differing)}. Nothing was "
            "touched. Put the stack file back as it was, or cancel that one, and run the command again."
        )


@contextmanager
def recorded(op: Operation, building: Readiness, known: Mapping[str, Any]) -> Iterator[None]:
    """Let the id of what was ordered reach the state, whatever goes wrong.

    Args:
        known: the outputs that do not come from the account's view of it.

    Raises:
        PartialFailure: for every error inside.
    """
    try:
        yield
    except GoneError as error:
        raise PartialFailure(building.sought.id, dict(known), f"{building.what}: {error}") from error
    except Exception as error:  # noqa: BLE001  # Whatever it is.
        seen = building.seen
        if seen.is_billed if seen else building.is_machine:
            standing = "ordered and billed"
        elif building.is_machine:
            standing = "ordered, and not billed before it is approved"
        else:
            standing = "made, and not billed" if seen else "ordered, and not shown yet"
        outputs = {**(seen.outputs if seen else {}), **known}
        reason = f"{building.what} is {standing}: {_sentence(op, error)}"
        raise PartialFailure(building.sought.id, outputs, reason) from error


def _sentence(op: Operation, error: Exception) -> str:
    """Return an error as a sentence; an unforeseen one may quote a key."""
    if isinstance(error, ProviderError):
        return str(error)
    return f"{redacted(f'{type(error).__name__}: {error}', *op.session.secrets)}. This is a bug."


def _refuse_import(op: Operation, resource_id: str, inputs: Values) -> None:
    if not inputs:
        raise ProviderError(
            f"importing {op.name} ({resource_id}): microcluster refuses `pulumi import`. `pulumi up` takes over what bears this stack's "
            "mark, and nothing else. Leave it out of the state."
        )
