"""Cost of a run's machines now, as their account says."""

from collections.abc import Callable
from datetime import UTC, datetime

from microcluster.accounts.registry import DEFAULT
from microcluster.accounts.shared.opened_account import OpenedAccount
from microcluster.accounts.shared.rental import last_rental
from microcluster.command_line.parts import SENTENCES, sentence
from microcluster.core.home import Owner
from microcluster.core.plain_text import note
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.lifecycle.account_opening import open_account
from microcluster.planning.run_cost import Cost


def cost_of(cluster: ClusterFacts, say: Callable[[str], None] = note) -> Cost:
    """Return the cost of a stack that is up, as its account says."""
    return cost_by(lambda: (account_of(cluster), cluster.owner), say)


def cost_by(opened: Callable[[], tuple[OpenedAccount, Owner]], say: Callable[[str], None]) -> Cost:
    """Return the cost of the last rental in an account that ``opened`` opens; unknown where that fails."""
    account, now = None, datetime.now(UTC)
    try:
        account, owner = opened()
        rental = last_rental(account.charges_listed(owner), now)
    except SENTENCES as error:
        say(sentence(str(error)))
        return Cost(None, None, emulated=bool(account and account.is_emulated))
    oldest = min((row for row in rental.open + rental.kept if row.hourly), key=lambda row: row.opened, default=None)
    next_hour = oldest.price.paid_until(oldest.opened, now).astimezone(UTC) if oldest else None
    return Cost(rental.billed_per_hour, rental.cost, rental.currency, next_hour, account.is_emulated)


def account_of(cluster: ClusterFacts) -> OpenedAccount:
    """Open the account in which a stack that is up was ordered."""
    return open_account(cluster.account or DEFAULT, cluster.account_config_file)
