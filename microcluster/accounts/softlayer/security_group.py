"""The SecurityGroup resource: a group with exactly the rules that are asked for."""

from collections.abc import Mapping
from typing import Any

from microcluster.accounts.shared.account import Pending, Resource
from microcluster.accounts.shared.order import Operation
from microcluster.accounts.shared.readiness import Readiness
from microcluster.accounts.shared.resource import Rented
from microcluster.accounts.shared.spec import Values
from microcluster.accounts.softlayer.account import SoftLayer
from microcluster.accounts.softlayer.declared import SecurityGroup
from microcluster.accounts.softlayer.errors import ApiError
from microcluster.accounts.softlayer.specs import GROUP, GroupSpec

SERVICE = "Network_SecurityGroup"
RULE_KEYS = ("direction", "ethertype", "protocol", "portRangeMin", "portRangeMax", "remoteIp", "remoteGroupId")

Rule = Mapping[str, Any]


class Groups(Rented):
    """Groups as a resource."""

    KIND, DECLARED = GROUP, SecurityGroup
    REPLACE_ON = frozenset({"mark", "name"})
    TIMEOUT_S = 60 * 60.0
    # Groups stay attached to a cancelled guest until it is reclaimed: half an hour and more.
    LATER = ("description",)

    def finish(
        self, op: Operation, market: SoftLayer, spec: GroupSpec, building: Readiness, *, is_new: bool
    ) -> Resource:
        """Set description and rules of the group."""

        def look() -> Resource | Pending:
            group = building.look()
            if isinstance(group, Pending):
                return group
            head = spec.head(building.sought.owner)
            if group.row.get("description") != head["description"]:
                market.api.ensure(SERVICE, "editObject", head, id=int(group.id))
            try:
                _change_rules(market, spec, group)
            except ApiError as error:
                if not error.is_transient:
                    raise
                return Pending(f"looking which rules it has, as the answer got lost ({error.text})")
            return group

        return op.wait_until(f"the rules of {building.what}", look)

    def drift(self, found: Resource, inputs: Values) -> dict[str, Any]:
        """Return the inputs that somebody changed in the account; rules that mean the same are the same."""
        rules, group_id = found.row.get("rules") or [], int(found.id)
        wanted = {identity(rule.template(group_id)) for rule in GroupSpec.model_validate(inputs).rules}
        if wanted == {identity(rule) for rule in rules}:
            return dict(found.inputs)
        return {**found.inputs, "rules": [inputs_of(rule, group_id) for rule in rules]}


def _change_rules(market: SoftLayer, spec: GroupSpec, group: Resource) -> None:
    """Add what is missing before removing what is too many, so that nobody is cut off in between."""
    group_id = int(group.id)
    wanted_rules = {identity(template): template for template in (rule.template(group_id) for rule in spec.rules)}
    present = {identity(rule): int(rule["id"]) for rule in group.row.get("rules") or []}
    missing = [template for key, template in wanted_rules.items() if key not in present]
    surplus = [rule_id for key, rule_id in present.items() if key not in wanted_rules]
    if missing:
        market.api.once(SERVICE, "addRules", missing, id=group_id)
    if surplus:
        market.api.once(SERVICE, "removeRules", surplus, id=group_id)


def identity(rule: Rule) -> tuple[str, ...]:
    """Reduce a rule to what makes it this rule, whether we wrote it or the API shows it."""
    # The API answers '' where nothing was given, and numbers or digit strings for ports and ids.
    return tuple("" if rule.get(key) is None else str(rule[key]) for key in RULE_KEYS)


def inputs_of(rule: Rule, group_id: int) -> dict[str, Any]:
    """Read back, as inputs, a rule that the API shows."""
    live_inputs = {
        "direction": rule.get("direction"),
        "protocol": rule.get("protocol") or None,
        "portMin": rule.get("portRangeMin") if rule.get("portRangeMin") != "" else None,
        "portMax": rule.get("portRangeMax") if rule.get("portRangeMax") != "" else None,
        "remoteCidr": rule.get("remoteIp") or None,
        "remoteSelf": str(rule.get("remoteGroupId")) == str(group_id) or None,
    }
    return {key: value for key, value in live_inputs.items() if value is not None}
