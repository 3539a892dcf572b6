"""Getting a volume: the living one that an interrupted run ordered, else a new order, which has no place for a mark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from providers.softlayer import accepted, goods, placing, volume_order, volumes
from providers.softlayer.account import Account
from providers.softlayer.errors import ProviderError
from providers.softlayer.goods import Row
from providers.softlayer.session import Operation
from providers.softlayer.spec import difference
from providers.softlayer.volume_spec import VolumeSpec
from providers.softlayer.volumes import VOLUMES
from providers.softlayer.waiting import Pending


def adopt_or_order(op: Operation, account: Account, spec: VolumeSpec) -> str:
    """Return the id of the living volume, or that of a new order."""

    def prepare() -> tuple[Any, Callable[[], str]]:
        order = volume_order.prepared(account.api, spec)
        op.log.progress("ordering")
        return order, lambda: volume_order.send(account.api, order)

    wanted = placing.Wanted(
        what=f"volume {spec.name} ({spec.size_gb} GB in {spec.datacenter})",
        mark=spec.mark,
        kind=VOLUMES.kind,
        look=lambda: _living(op, account, spec),
        prepare=prepare,
        alike=lambda: _alike(account, spec),
    )
    made = placing.obtain(op, account, wanted)
    return made if isinstance(made, str) else _adopt(op, spec, dict(made))


def _living(op: Operation, account: Account, spec: VolumeSpec) -> Row | Pending | None:
    """Find it by its notes; by an order that the journal knows; or, while an answer is lost, as the new one that fits."""
    billed = [each for each in volumes.listed(account.api) if goods.is_billed(each)]
    doing = f"ordering volume {spec.name}"
    ours = [each for each in billed if VOLUMES.bears(each, spec.mark) and volumes.name_of(each) == spec.name]
    if ours:
        return VOLUMES.the_only(ours, doing)
    bare = [each for each in billed if not each.get("notes")]
    ordered, waiting = accepted.unseen(op, account, spec.mark, VOLUMES.kind, billed)
    known = VOLUMES.the_only([each for each in ordered if not each.get("notes")], doing)
    return known or waiting or VOLUMES.the_only(_new(op, account, spec, bare), doing)


def _new(op: Operation, account: Account, spec: VolumeSpec, bare: list[Row]) -> list[Row]:
    """List what a lost order may have made: what fits and was not there before."""
    identity = account.identity()
    lost = op.journal(spec.mark).unresolved(identity.account_id, op.name, VOLUMES.kind)
    seen = {order for each in lost for order in each.seen}
    fitting = [each for each in bare if volume_order.fits(each, spec, identity.username)]
    return [each for each in fitting if goods.order_id(each) not in seen] if lost else []


def _alike(account: Account, spec: VolumeSpec) -> tuple[str, ...]:
    """List the orders of the volumes that could be taken for ours before it is ordered: those are somebody else's."""
    user = account.identity().username
    found = [each for each in volumes.listed(account.api) if volume_order.fits(each, spec, user)]
    return tuple(sorted(filter(None, map(goods.order_id, found))))


def _adopt(op: Operation, spec: VolumeSpec, volume: Row) -> str:
    wanted = spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    live = volumes.live_inputs(volume)
    keys = difference({key: wanted.get(key) for key in live}, live, ()).changed
    differing = [f"{key} is {live[key]} there and {wanted.get(key)} here" for key in keys]
    ends = volume["billingItem"].get("cancellationDate")
    if differing or ends:
        raise ProviderError(
            f"adopting {volumes.described(volume)}, which an earlier run ordered: "
            f"{'; '.join(differing) or f'it is cancelled and ends on {ends}'}. Nothing was touched. "
            "Put the program back as it was, or cancel that volume, or give the new one another name, and run it again."
        )
    op.log.told(f"Goes on with {volumes.described(volume)}, whose order was accepted before.")
    return str(volume["id"])
