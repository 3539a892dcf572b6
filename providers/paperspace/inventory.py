"""Everything in an account that carries a mark of microcluster: found in the account's own lists, by its name."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

from core.catalog import paperspace as catalog
from providers.paperspace import claim, machine_view, names, private_network, shared_drive, startup_script
from providers.paperspace.account import DRIVES, MACHINES, NETWORKS, SCRIPTS, Account
from providers.rental.backend import Belonging

Row = dict[str, Any]


def everything(account: Account) -> tuple[Belonging, ...]:
    """List what carries any mark; what is somebody else's is never in it.

    A static address has no name: it goes with its machine.
    """
    account.check_sees_all("listing what bears a mark")
    listings: list[tuple[str, Callable[[Row], tuple[str, Decimal]]]] = [
        (MACHINES, _machine),
        (DRIVES, _drive),
        (NETWORKS, lambda row: (private_network.KIND, catalog.NETWORK.per_hour)),
        (SCRIPTS, _script),
    ]
    with ThreadPoolExecutor(len(listings)) as pool:
        lists = pool.map(lambda listing: account.api.list(listing[0]), listings)
        found = [_belonging(row, *price(row)) for (_, price), rows in zip(listings, lists, strict=True) for row in rows]
    return tuple(each for each in found if each)


def _belonging(row: Row, kind: str, per_hour: Decimal) -> Belonging | None:
    named = names.read(row.get("name"))
    if named is None:
        return None
    since = machine_view.moment(row.get("dtCreated"))
    is_billed = kind not in (claim.KIND, startup_script.KIND)
    return Belonging(
        kind, str(row["id"]), str(row["name"]), named.owner, since, per_hour, is_billed, is_kept=named.is_kept
    )


def _machine(row: Row) -> tuple[str, Decimal]:
    shown = machine_view.inputs(row)
    price = catalog.machine_price_per_hour(shown["machineType"], shown["diskGb"], shown["publicIpType"])
    return machine_view.KIND, price or Decimal(0)


def _drive(row: Row) -> tuple[str, Decimal]:
    rate = catalog.DRIVES.get(shared_drive.size_gb(row))
    return shared_drive.KIND, rate.per_hour if rate else Decimal(0)


def _script(row: Row) -> tuple[str, Decimal]:
    return claim.KIND if claim.journal_of(row) else startup_script.KIND, Decimal(0)
