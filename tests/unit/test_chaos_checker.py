"""The checker finds what it is there to find."""

import pytest

from tests.chaos.checker import judge, wrong_receipts

MARK = "1f3a9c42"
OWNER = f"test-{MARK}"
NAME = f"gpu-0.test-{MARK}.microcluster"
DESTROYED = {"owner": OWNER, "names": frozenset(), "orders": 1}
UP = {"owner": OWNER, "names": frozenset({NAME}), "orders": 1}


def event(at, happened, what="billing_item", number=1, **facts):
    told = {"host": "gpu-0", "domain": f"test-{MARK}.microcluster", "per_hour": "2.50", "notes": None, **facts}
    return {"kind": "event", "at": at, "event": happened, "what": what, "id": number, **told}


def receipt_of(total, *hosts):
    dated = "2026-11-25 07:00:00 to 2026-11-25 07:30:00 UTC, 2.50 USD"
    rows = "".join(
        f"\n  {host:<10} V100, disks and port: {dated}\n  {host:<10} its disk of 50 GB: {dated}" for host in hosts
    )
    return f"receipt:{rows}\nopen billing items with mark {MARK}: 0; rented for {total} in all"


def test_a_machine_that_was_ordered_once_and_cancelled_is_right():
    history = [event(0, "made"), event(7200, "closed")]
    assert judge(history, **DESTROYED).breaches == []
    assert wrong_receipts(history, OWNER, [receipt_of("5.00", "gpu-0"), "and no receipt"]) == []


def test_a_machine_billed_unwanted_is_an_orphan_one_wanted_unbilled_is_reported():
    assert judge([event(0, "made")], **DESTROYED).orphans == [f"{NAME} is billed as item 1"]
    assert judge([event(0, "made"), event(5, "closed")], **UP).orphans == [f"{NAME} is wanted and not billed"]


def test_a_second_order_is_a_duplicate_even_if_cancelled_at_once():
    history = [event(0, "made"), event(1, "made", number=2), event(2, "closed", number=2)]
    assert len(judge(history, **UP).duplicates) == 2


def test_an_order_after_the_cancellation_is_a_duplicate_where_one_was_enough():
    history = [event(0, "made"), event(1, "closed"), event(2, "made", number=2)]
    assert judge(history, **UP).duplicates == [f"{NAME} was ordered 2 times, not 1"]
    assert judge(history, OWNER, frozenset({NAME})).breaches == []


@pytest.mark.parametrize("total", ["2.40", "0.00", "10.50"])
def test_a_receipt_that_is_off_by_more_than_one_hour_is_wrong(total):
    history = [event(0, "made"), event(7201, "closed")]
    assert len(wrong_receipts(history, OWNER, [receipt_of(total, "gpu-0")])) == 1


@pytest.mark.parametrize("named", [(), ("gpu-0",), ("gpu-1", "gpu-1")])
def test_a_charged_machine_without_a_receipt_line_is_missed(named):
    lives = [event(0, "made"), event(5, "closed"), event(9, "made", number=2), event(12, "closed", number=2)]
    wrong = wrong_receipts(lives, OWNER, [receipt_of("5.00", *named)])
    assert wrong == ["the receipt does not name gpu-0, for which the account charged"] * (2 - named.count("gpu-0"))


@pytest.mark.parametrize(
    ("what", "notes"), [("ssh_key", f"microcluster test-{MARK}"), ("security_group", f"x {OWNER}: y")]
)
def test_an_unbilled_object_that_is_left_is_reported(what, notes):
    made = event(0, "made", what, domain=None, host=None, notes=notes)
    assert judge([made], **DESTROYED).orphans == [f"{what} 1 is left"]
    assert judge([made, {**made, "event": "removed"}], **DESTROYED).breaches == []


def test_two_groups_of_one_name_are_a_duplicate():
    made = event(0, "made", "security_group", domain=None, host=None, notes=f"microcluster test-{MARK}: members")
    assert len(judge([made, {**made, "id": 2}], OWNER, frozenset()).duplicates) == 2


@pytest.mark.parametrize(
    "domain", ["example.com", f"test-{MARK}0.microcluster", "test-00000000.microcluster", f"copy-{MARK}.microcluster"]
)
def test_what_is_somebody_elses_must_not_change(domain):
    history = [event(0, "made", domain=domain), event(1, "closed", domain=domain)]
    assert judge(history, **DESTROYED).orphans == ["somebody else's billing_item 1 was closed"]
