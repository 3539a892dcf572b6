"""What networks and drives do the same: adopted by name, kept by name, looked for until it is certain, removed with patience."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from core.catalog import paperspace as catalog
from providers.grpc.properties import Problem, Spec, problems
from providers.grpc.resource_protocol import Created, Live, Values
from providers.paperspace import claim, names
from providers.paperspace.api import ApiError
from providers.rental import owner_mark as marks
from providers.rental.backend import Backend, OrderRequest, Tell, Thing
from providers.rental.closing import check_ours
from providers.rental.errors import ProviderError
from providers.rental.idempotent_order import adopt_or_order
from providers.rental.machine import check_adoptable
from providers.rental.operation import Operation
from providers.rental.owner_mark import Owner
from providers.rental.reconcile import certain
from providers.rental.waiting import Deadline, Pending, wait_until

LATER = ("keep",)
"""What is put right after an adoption: it stands in the name, and that is all of them that can be changed."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Wait:
    """How long to wait, and whom to tell."""

    deadline: Deadline
    tell: Tell


class NamedGood(ABC):
    """A network or a drive as a resource: adopted by name, kept by name."""

    KIND: str
    PATH: str
    SPEC: type[Spec]
    OUTPUTS: tuple[str, ...]
    REPLACE_ON: frozenset[str]
    TIMEOUT_S = 30 * 60.0

    @abstractmethod
    def request(self, owner: Owner, spec: Any) -> OrderRequest:
        """Write what is looked for, and ordered if it is not there."""

    @abstractmethod
    def shown(self, row: Row) -> dict[str, Any]:
        """Read the outputs that the account shows with it."""

    def check(self, inputs: Values, old_inputs: Values) -> list[Problem]:
        """Say what is wrong with the inputs."""
        return problems(self.SPEC, inputs)

    def known_outputs(self, inputs: Values, old: Values) -> dict[str, Any]:
        """Tell what stays."""
        return {key: old.get(key) for key in self.OUTPUTS} if old else {}

    def create(self, op: Operation, inputs: Values) -> Created:
        """Adopt the one that is there, else order it."""
        spec, backend = self.SPEC.of(inputs), op.backend()
        request = self.request(Owner(op.stack, spec.mark), spec)
        found = obtain(op, backend, request)
        if isinstance(found, Thing):
            check_adoptable(found, spec.model_dump(by_alias=True), LATER)
            op.log.info(f"Goes on with {found.label}, which was there before.")
        else:
            found = certain(op, backend, request.owner, self.KIND, found) or _vanished(request, found)
        self._rename(backend, found, keep=spec.keep)
        return Created(found.id, self._outputs(backend, found))

    def read(self, op: Operation, resource_id: str, inputs: Values, old: Values) -> Live | None:
        """Read it; an import is refused unless it is this stack's."""
        backend = op.backend(old.get("accountId"))
        found = self._found(op, backend, resource_id, inputs)
        return found and Live({**inputs, **found.inputs}, self._outputs(backend, found))

    def update(self, op: Operation, resource_id: str, inputs: Values, old: Values) -> dict[str, Any]:
        """Let its name say whether it is kept."""
        backend = op.backend(old.get("accountId"))
        found = self._found(op, backend, resource_id, inputs)
        if found is not None:
            self._rename(backend, found, keep=bool(inputs.get("keep")))
        return {key: old.get(key) for key in self.OUTPUTS}

    def delete(self, op: Operation, resource_id: str, inputs: Values, old: Values) -> None:
        """Delete it once nothing uses it, or leave it if it is kept."""
        backend, owner = op.backend(old.get("accountId")), Owner(op.stack, str(inputs.get("mark") or ""))
        if inputs.get("keep"):
            found = backend.find(self.KIND, resource_id, owner, fresh=False)
            if isinstance(found, Thing):
                op.log.info(f"Keeps {found.label}: {found.price}.")
            return
        backend.remove(self.KIND, resource_id, owner, op.deadline, op.log.progress)
        op.journal(owner.mark).closed(backend.identity().account_id, self.KIND, resource_id)

    def _found(self, op: Operation, backend: Backend, resource_id: str, inputs: Values) -> Thing | None:
        """Look until it is certain whether it exists."""
        owner = Owner(op.stack, str(inputs.get("mark") or ""))
        found = certain(op, backend, owner, self.KIND, resource_id)
        if found is not None and not inputs:
            marks.permit_import(op.stack, found.label, found.owner)
        elif found is not None:
            check_ours(found, owner, "reading")
        return found

    def _outputs(self, backend: Backend, found: Thing) -> dict[str, Any]:
        return {**self.shown(found.row), "accountId": backend.identity().account_id}

    def _rename(self, backend: Backend, found: Thing, *, keep: bool) -> None:
        if found.is_kept != keep:
            name = names.full(found.name, found.owner, keep=keep)
            backend.account.api.ensure("PUT", f"{self.PATH}/{found.id}", {"name": name})


def thing(kind: str, row: Row, price: str, inputs: Mapping[str, Any]) -> Thing:
    """Read a network or a drive.

    Args:
        inputs: those that only this kind has.
    """
    named = names.read(row.get("name"))
    name, is_kept = named.label if named else str(row.get("name") or ""), bool(named and named.is_kept)
    mark, region = named.owner.mark if named else "", catalog.slug(str(row.get("region") or ""))
    return Thing(
        kind,
        str(row["id"]),
        name,
        named.owner if named else None,
        f"{kind} {row['id']} ({row.get('name')})",
        is_billed=True,
        is_kept=is_kept,
        price=price,
        inputs={"mark": mark, "name": name, "region": region, "keep": is_kept, **inputs},
        row=row,
    )


def obtain(op: Operation, backend: Backend, request: OrderRequest) -> Thing | str:
    """Adopt or order something that costs money; only the computer that holds the stack's claim orders."""
    backend.account.check_sees_all(f"ordering {request.what}")
    claim.hold(op, backend, request.owner)
    return adopt_or_order(op, backend, request)


def remove(
    found: Callable[[], Thing | None], send: Callable[[], Any], free: Callable[[], None], owner: Owner, wait: Wait
) -> None:
    """Delete something as soon as nothing uses it; what is gone, another's by now, or kept is left alone.

    Args:
        found: reads it by its id.
        send: asks the account once to delete it.
        free: called when that is refused; removes what stands in its way.
    """
    first = found()
    if first is None or first.owner != owner or first.is_kept:
        return

    def look() -> bool | Pending:
        thing = found()
        if thing is None or thing.owner != owner:
            return True
        try:
            send()
        except ApiError as error:
            if error.is_forbidden or error.is_unauthorised:
                raise ProviderError(
                    f"deleting {thing.label}: the key's user may not ({error.text}); it is billed: {thing.price}. Use the "
                    "key of an admin of the team and run the command again."
                ) from error
            free()
            return Pending(f"the API does not delete it ({error.text}); {thing.price}")
        return Pending("deleted, and still shown") if found() else True

    wait_until(f"{first.label} deleted", look, wait.deadline, wait.tell)


def _vanished(request: OrderRequest, made: str) -> Thing:
    raise ProviderError(
        f"ordering {request.what}: the account made it as {made} and does not know it any more. Run 'pulumi up --refresh'."
    )
