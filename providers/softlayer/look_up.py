"""Resources that are only looked up: creating one reads it, deleting one does nothing, and neither costs anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from providers.softlayer.account import Account
from providers.softlayer.calls import Api
from providers.softlayer.errors import ApiError, ProviderError
from providers.softlayer.resource import Created, Live
from providers.softlayer.session import Operation
from providers.softlayer.spec import Problem, Spec, problems

Values = Mapping[str, Any]
Outputs = dict[str, Any]


@dataclass(frozen=True)
class LookUp:
    """One kind of thing that is there already."""

    word: str
    spec: type[Spec]
    find: Callable[[Api, Any], Outputs | None]
    """Reads what the inputs name; None when the account shows none."""
    outputs: tuple[str, ...]
    """The names of what it tells; the first is its id, and also the input by which it is imported."""
    hint: str
    """What a person does when it is not there."""
    TIMEOUT_S: float = 60.0

    @property
    def REPLACE_ON(self) -> frozenset[str]:
        """Another name is another thing."""
        return frozenset(field.alias or name for name, field in self.spec.model_fields.items())

    def check(self, inputs: Values, old_inputs: Values) -> list[Problem]:
        """Say what is wrong with the inputs."""
        return problems(self.spec, inputs)

    def known_outputs(self, inputs: Values, old: Values) -> Outputs:
        """Keep what was read; a preview calls nobody."""
        return {key: old.get(key) for key in (*self.outputs, "accountId")} if old else {}

    def create(self, op: Operation, inputs: Values) -> Created:
        """Read it."""
        account = op.account()
        found = self._found(account, inputs)
        if found is None:
            named = ", ".join(f"{key} {value}" for key, value in inputs.items())
            raise ProviderError(f"looking up the {self.word} with {named}: the account shows none. {self.hint}")
        return Created(found[self.outputs[0]], found)

    def read(self, op: Operation, resource_id: str, inputs: Values, old: Values) -> Live | None:
        """Read it again; None when it is gone."""
        asked = inputs or {self.outputs[0]: resource_id}
        found = self._found(op.account(old.get("accountId")), asked)
        return None if found is None else Live(dict(asked), found)

    def update(self, op: Operation, resource_id: str, inputs: Values, old: Values) -> Outputs:
        """Read it again."""
        return self.create(op, inputs).outputs

    def delete(self, op: Operation, resource_id: str, inputs: Values, old: Values) -> None:
        """Leave it alone: it is not ours."""

    def _found(self, account: Account, inputs: Values) -> Outputs | None:
        try:
            found = self.find(account.api, self.spec.of(inputs))
        except ApiError as error:
            if "access denied" in error.text.lower():
                return None
            raise
        return None if found is None else {**found, "accountId": account.identity().account_id}
