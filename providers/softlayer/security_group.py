"""The SecurityGroup resource: a group with exactly the rules that are asked for."""

from collections.abc import Mapping
from typing import Annotated, Any

import pydantic

from providers.grpc.properties import MARK_PATTERN, Problem, Spec, problems
from providers.grpc.resource_protocol import Created, Live
from providers.rental import idempotent_order, reconcile
from providers.rental import owner_mark as marks
from providers.rental.backend import Backend, OrderRequest, Thing
from providers.rental.errors import PartialFailure, ProviderError
from providers.rental.operation import Operation
from providers.rental.waiting import Deadline, Pending, wait_until
from providers.softlayer import security_rule
from providers.softlayer.account import Account
from providers.softlayer.errors import ApiError
from providers.softlayer.security_rule import RuleSpec

KIND = "SecurityGroup"
REPLACE_ON = frozenset({"mark", "name"})
TIMEOUT_S = 60 * 60.0
"""Groups stay attached to a cancelled guest until it is reclaimed: half an hour and more."""
GROUP_MASK = (
    "mask[id,name,description,rules[id,direction,ethertype,protocol,portRangeMin,portRangeMax,remoteIp,remoteGroupId],"
    "networkComponentBindings[networkComponentId,networkComponent[guest[id,hostname,domain]]]]"
)


class GroupSpec(Spec):
    """A group and its rules."""

    mark: Annotated[str, pydantic.StringConstraints(pattern=MARK_PATTERN)]
    name: str
    description: str
    rules: tuple[RuleSpec, ...] = pydantic.Field((), max_length=50)


def check(inputs: Mapping[str, Any], old_inputs: Mapping[str, Any]) -> list[Problem]:
    """Say what is wrong with the inputs."""
    return problems(GroupSpec, inputs)


def known_outputs(inputs: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Tell what stays."""
    return {key: old.get(key) for key in ("groupId", "accountId")} if old else {}


def create(op: Operation, inputs: Mapping[str, Any]) -> Created:
    """Adopt the group that an interrupted run made, else make it; then give it its rules."""
    spec, backend = GroupSpec.of(inputs), op.backend()
    owner, what = marks.Owner(op.stack, spec.mark), f"security group {spec.name}"
    made = idempotent_order.adopt_or_order(op, backend, OrderRequest(KIND, owner, what, spec.name, _head(op, spec)))
    group_id = made if isinstance(made, str) else made.id
    return Created(group_id, _with_rules(op, backend, spec, group_id))


def read(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> Live | None:
    """Read the group; rules that somebody changed show as changed."""
    account = op.backend(old.get("accountId")).account
    group = account.api.find("Network_SecurityGroup", resource_id, GROUP_MASK)
    if group is None:
        return None
    owner = marks.owner_in_notes(group.get("description"))
    if not inputs:
        marks.permit_import(op.stack, f"security group {resource_id} ('{group.get('name')}')", owner)
    description = str(group.get("description") or "").partition(": ")[2]
    live = {"mark": owner.mark if owner else "", **inputs, "name": str(group["name"]), "description": description}
    if not inputs or not _same_rules(GroupSpec.of(inputs), group):
        live["rules"] = [security_rule.inputs_of(rule, int(resource_id)) for rule in group.get("rules") or []]
    return Live(live, {"groupId": resource_id, "accountId": account.identity().account_id})


def update(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Change description and rules in place."""
    spec, backend = GroupSpec.of(inputs), op.backend(old.get("accountId"))
    account = backend.account
    found = account.api.find("Network_SecurityGroup", resource_id, "mask[id,name,description]")
    if found is not None and not _bears(found, op, spec):
        raise ProviderError(
            f"changing security group {resource_id} ('{found['name']}'): its description does not begin with "
            f"'{marks.notes(marks.owner(op.stack, spec.mark))}', so it is not this stack's, or was described anew. Nothing was "
            "done to it. If it is yours, put that back and run the command again; if not, take it out of the state with "
            "'pulumi state delete'."
        )
    account.api.ensure("Network_SecurityGroup", "editObject", _head(op, spec), id=int(resource_id))
    return _with_rules(op, backend, spec, resource_id)


def delete(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> None:
    """Remove the group as soon as the last guest has let go of it."""
    account = op.backend(old.get("accountId")).account
    owner = marks.Owner(op.stack, str(inputs.get("mark") or old.get("mark")))
    remove(account, resource_id, owner, op.deadline, op.log.progress)
    op.journal(owner.mark).closed(account.identity().account_id, KIND, resource_id)


def remove(account: Account, group_id: str, owner: marks.Owner, deadline: Deadline, tell: Any) -> None:
    """Remove a group that bears the mark; a group that is gone, or somebody else's by now, is left alone."""

    def look() -> bool | Pending:
        group = account.api.find("Network_SecurityGroup", group_id, GROUP_MASK)
        if group is None or not marks.notes_are(group.get("description"), owner):
            return True
        try:
            _detach(account, group, owner)
            account.api.once("Network_SecurityGroup", "deleteObject", id=int(group_id))
        except ApiError as error:
            if error.is_forbidden:
                user = account.api.credentials.username
                raise ProviderError(
                    f"removing security group {group_id}: user {user} may not ({error.text}); nothing is billed for it. Grant "
                    f"it with 'slcli user edit-permissions {user} --enable -p MANAGE_SECURITY_GROUPS' and run the command again."
                ) from error
            foreign = _foreign_wearers(group, owner)
            users = f"by {', '.join(foreign)}, not ours" if foreign else "while cancelled guests are reclaimed"
            return Pending(f"still in use {users}; nothing is billed for it ({error.text})")
        return True

    wait_until(f"security group {group_id} removed", look, deadline, tell)


def listed(account: Account, owner: marks.Owner) -> list[Thing]:
    """List the groups that bear stack and mark."""
    groups = account.api.read_all("Network_SecurityGroup", "getAllObjects", mask="mask[id,name,description]")
    return [thing for each in groups if (thing := _thing(each)).owner == owner]


def find(account: Account, group_id: str, *, fresh: bool) -> Thing | Pending | None:
    """Read a group by its id."""
    group = account.api.find("Network_SecurityGroup", group_id, GROUP_MASK)
    if group is None and fresh:
        return Pending(f"the account does not show security group {group_id} yet, as it was made only now")
    return group and _thing(group)


def _thing(group: Mapping[str, Any]) -> Thing:
    name, owner = str(group.get("name") or ""), marks.owner_in_notes(group.get("description"))
    return Thing(KIND, str(group["id"]), name, owner, f"security group {group['id']} ('{name}')", row=group)


def _bears(group: Mapping[str, Any], op: Operation, spec: GroupSpec) -> bool:
    return marks.notes_are(group.get("description"), marks.Owner(op.stack, spec.mark))


def _with_rules(op: Operation, backend: Backend, spec: GroupSpec, group_id: str) -> dict[str, Any]:
    account = backend.account
    outputs = {"groupId": group_id, "accountId": account.identity().account_id}

    def look() -> bool | Pending:
        group = account.api.find("Network_SecurityGroup", group_id, GROUP_MASK)
        if group is None and group_id in reconcile.fresh(op, backend, spec.mark, KIND):
            return Pending("the account does not show it yet, as it was made only now")
        if group is None:
            raise ProviderError("the account does not show it any more. Run 'pulumi up --refresh'.")
        try:
            _settle_rules(account, spec, group)
        except ApiError as error:
            if not error.is_transient:
                raise
            return Pending(f"looking which rules it has, as the answer got lost ({error.text})")
        return True

    try:
        wait_until(f"the rules of security group {group_id}", look, op.deadline, op.log.progress)
    except ProviderError as error:
        reason = f"giving security group {group_id} ({spec.name}) its rules: {error}"
        raise PartialFailure(group_id, outputs, reason) from error
    return outputs


def _settle_rules(account: Account, spec: GroupSpec, group: dict[str, Any]) -> None:
    """Add what is missing before removing what is too many, so that nobody is cut off in between."""
    group_id = int(group["id"])
    wanted = [rule.template(group_id) for rule in spec.rules]
    present = {security_rule.identity(rule): int(rule["id"]) for rule in group.get("rules") or []}
    missing = [rule for rule in wanted if security_rule.identity(rule) not in present]
    surplus = [
        rule_id for key, rule_id in present.items() if key not in {security_rule.identity(rule) for rule in wanted}
    ]
    if missing:
        account.api.once("Network_SecurityGroup", "addRules", missing, id=group_id)
    if surplus:
        account.api.once("Network_SecurityGroup", "removeRules", surplus, id=group_id)


def _same_rules(spec: GroupSpec, group: Mapping[str, Any]) -> bool:
    wanted = {security_rule.identity(rule.template(int(group["id"]))) for rule in spec.rules}
    return wanted == {security_rule.identity(rule) for rule in group.get("rules") or []}


def _head(op: Operation, spec: GroupSpec) -> dict[str, Any]:
    mark_first = f"{marks.notes(marks.owner(op.stack, spec.mark))}: {spec.description}"
    return {"name": spec.name, "description": mark_first}


def _detach(account: Account, group: Mapping[str, Any], owner: marks.Owner) -> None:
    """Take our own guests out of the group; what somebody else put it on is theirs to take off."""
    bindings = group.get("networkComponentBindings") or []
    ours = [int(each["networkComponentId"]) for each in bindings if marks.guest_is(_wearer(each), owner)]
    if ours:
        account.api.once("Network_SecurityGroup", "detachNetworkComponents", ours, id=int(group["id"]))


def _foreign_wearers(group: Mapping[str, Any], owner: marks.Owner) -> list[str]:
    wearers = [_wearer(each) for each in group.get("networkComponentBindings") or []]
    foreign = [each for each in wearers if each and not marks.guest_is(each, owner)]
    return sorted({f"guest {each['id']} ({each['hostname']}.{each['domain']})" for each in foreign})


def _wearer(binding: Mapping[str, Any]) -> Mapping[str, Any]:
    return (binding.get("networkComponent") or {}).get("guest") or {}
