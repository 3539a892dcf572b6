"""The packages beside the guests' own as the API shows them: storage, VLANs, portable volumes."""

from __future__ import annotations

from ..account import Account
from ..catalogue import Package
from ..views import View
from . import goods, places


def package(account: Account, record: Package) -> View:
    """A package, sold in every datacenter."""
    categories = {price.category.code: price.category for price in record.prices}.values()
    return View(
        {"id": record.id, "keyName": record.key_name, "name": record.name, "isActive": 1, "unitSize": None},
        {
            "statusCode": lambda: "ACTIVE",
            "type": lambda: {"keyName": record.key_name},
            "categories": lambda: [
                {"id": each.id, "categoryCode": each.code, "name": each.name} for each in categories
            ],
            "items": lambda: goods.items(account, record.prices),
            "itemPrices": lambda: [goods.price(account, each) for each in record.prices],
            "activePresets": list,
            "regions": lambda: [places.region(each) for each in account.catalogue.datacenters],
        },
    )
