from decimal import Decimal

import pytest

from core.catalog import softlayer as catalog


@pytest.mark.parametrize(("flavor", "dollars"), [("AC1_16X120X100", 9), ("AC2_16X120X100", 13)])
def test_a_pair_with_disks_costs_what_the_procedure_states(flavor: str, dollars: int) -> None:
    price = catalog.price_per_hour(flavor, (2000,), 1000)
    assert price is not None
    assert round(2 * price) == dollars


def test_a_flavor_that_is_not_known_has_no_price() -> None:
    assert catalog.price_per_hour("AC9_1X1X1", (), 1000) is None


def test_a_disk_makes_a_guest_dearer() -> None:
    bare = catalog.price_per_hour("AC1_8X60X25", (), 100)
    assert bare == Decimal("1.948")
    assert catalog.price_per_hour("AC1_8X60X25", (2000,), 100) > bare


def test_lon06_sells_p100_only_and_dal10_v100_only() -> None:
    assert {name[:3] for name in catalog.sold_in("lon06")} == {"AC1", "ACL"}
    assert all("2_" in name for name in catalog.sold_in("dal10"))


def test_two_terabytes_are_sold_as_2000() -> None:
    assert 2000 in catalog.DATA_DISK_SIZES_GB
    assert 2048 not in catalog.DATA_DISK_SIZES_GB
