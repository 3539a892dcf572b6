"""Catalogs of the vendors, with their prices."""

from decimal import Decimal

import pytest

from microcluster.accounts.paperspace import catalog as paperspace
from microcluster.accounts.softlayer import catalog as softlayer
from microcluster.core.catalog.gpus import GPUS, LARGER


def test_a_disk_makes_a_guest_dearer() -> None:
    bare = softlayer.price_per_hour("AC1_8X60X25", (), 100)
    assert bare == Decimal("1.948")
    assert softlayer.price_per_hour("AC1_8X60X25", (2000,), 100) > bare
    assert softlayer.price_per_hour("AC9_1X1X1", (), 1000) is None


def test_the_published_example_costs_what_its_parts_cost_together() -> None:
    prices = paperspace.prices("P4000x2", 2, 50, "dynamic", 250)
    assert (prices.per_hour, prices.per_month) == (Decimal("2.0891"), 2 * (5 + 3) + 16 + 1)


@pytest.mark.parametrize("given", ["ny2", "NY2", "East Coast (NY2)"])
def test_a_region_has_one_slug_however_it_is_written(given: str) -> None:
    assert paperspace.slug(given) == "ny2"


def test_every_machine_type_has_a_known_gpu_and_is_sold_somewhere() -> None:
    assert {each.gpu for each in paperspace.MACHINE_TYPES.values()} <= GPUS.keys()
    sold = {label for label in paperspace.MACHINE_TYPES if "G" in label.partition("-")[2]}
    assert {label.partition("x")[0] for label in sold} == LARGER.keys()
    regions = [set(each.regions) for each in paperspace.MACHINE_TYPES.values()]
    assert all(regions) and set.union(*regions) <= set(paperspace.REGIONS)
