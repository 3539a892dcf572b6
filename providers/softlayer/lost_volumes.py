"""The volumes of orders whose answer got lost, told by what was ordered: until its notes are set, a volume bears no mark."""

from __future__ import annotations

from providers.softlayer import goods, volume_order, volumes
from providers.softlayer.account import Account
from providers.softlayer.errors import ProviderError
from providers.softlayer.goods import ORDER_PREFIX, Row
from providers.softlayer.journal import Intent, Journal, digest
from providers.softlayer.volume_spec import VolumeSpec
from providers.softlayer.volumes import VOLUMES


def settle(account: Account, journal: Journal) -> None:
    """Write into the journal which orders were accepted after all.

    Raises:
        ProviderError: several volumes may be the one of a lost order, and nobody knows which is.
    """
    for intent in journal.unresolved(account.identity().account_id, kind=VOLUMES.kind):
        found = VOLUMES.the_only(_candidates(account, intent), f"resolving the lost order of volume {intent.name}")
        if found:
            journal.ordered(intent.attempt, f"{ORDER_PREFIX}{goods.order_id(found)}")


def _candidates(account: Account, intent: Intent) -> list[Row]:
    """List the volumes without notes that our user ordered since, with exactly what the order asked for."""
    user = account.identity().username
    return [
        each
        for each in volumes.listed(account.api)
        if goods.is_billed(each)
        and not each.get("notes")
        and goods.ordered_by(each) in (None, user)
        and goods.order_id(each) not in intent.seen
        and _order_of(account, each, intent) == intent.order
    ]


def _order_of(account: Account, volume: Row, intent: Intent) -> str | None:
    """Write the order that would make such a volume, as the journal has it."""
    try:
        spec = VolumeSpec.of({"mark": intent.mark, "name": intent.name, **volumes.live_inputs(volume)})
        return digest(volume_order.prepared(account.api, spec))
    except (ValueError, ProviderError):
        return None  # A volume that we could not have ordered.
