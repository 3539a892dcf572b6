"""Fate of an accepted order: built with a gap, or held for a person."""

import pytest

from emulator.softlayer import guests
from emulator.softlayer.faults import Fault
from tests.unit.emulated import Emulated, template

READY = "id,provisionDate,primaryIpAddress,billingItem[id],activeTransaction[transactionGroup[name]]"


def seen(emulated: Emulated, guest_id: int, calls: int) -> list[dict]:
    return [emulated.call("Virtual_Guest", "getObject", identifier=guest_id, mask=READY) for _ in range(calls)]


def group_of(guest: dict) -> str | None:
    return guest["activeTransaction"]["transactionGroup"]["name"] if "activeTransaction" in guest else None


def decide(emulated: Emulated, word: str) -> None:
    (number,) = emulated.account.store.orders
    getattr(guests, word)(emulated.account, number)
    emulated.account.store.flush()


def test_a_guest_has_addresses_at_once_and_is_ready_after_two_transactions(tmp_path):
    emulated = Emulated(tmp_path, provisioning_s=40.0, gap_s=8.0)
    ordered = emulated.call("Virtual_Guest", "createObject", template())
    assert ordered["provisionDate"] is None
    assert not {"primaryIpAddress", "primaryBackendIpAddress", "billingItem", "activeTransaction"} & ordered.keys()
    story = seen(emulated, ordered["id"], 45)
    assert story[0]["primaryIpAddress"] and not story[0]["provisionDate"]
    groups = [group_of(each) for each in story if not each["provisionDate"]]
    assert list(dict.fromkeys(groups)) == ["Cloud Instance Provision", None, "Service Setup"]
    assert story[-1]["provisionDate"]
    assert len(groups) == pytest.approx(40, abs=3)


def test_a_guest_that_waits_for_approval_is_neither_built_nor_billed(tmp_path):
    emulated = Emulated(tmp_path, approval="pending")
    guest_id = emulated.order()
    waiting = seen(emulated, guest_id, 30)[-1]
    assert not waiting["provisionDate"]
    assert not {"billingItem", "activeTransaction"} & waiting.keys()
    assert emulated.call("Account", "getAllTopLevelBillingItems") == []
    assert emulated.call("Account", "getOrders")[0]["status"] == "PENDING_APPROVAL"


def test_an_approved_order_is_built_and_billed_from_then_on(tmp_path):
    emulated = Emulated(tmp_path, approval="pending")
    guest_id = emulated.order()
    seen(emulated, guest_id, 5)
    decide(emulated, "approve")
    after = seen(emulated, guest_id, 20)
    assert group_of(after[0]) == "Cloud Instance Provision"
    assert after[-1]["provisionDate"]
    item = next(iter(emulated.account.store.billing_items.values()))
    assert item.opened == emulated.history("call")[5]["at"]
    assert [line["event"] for line in emulated.history("event") if line["what"] == "order"] == ["made", "approved"]


def test_an_approved_order_moves_on_to_completed_when_its_guest_is_there(tmp_path):
    emulated = Emulated(tmp_path)
    emulated.order()
    (order,) = emulated.call("Account", "getOrders")
    assert order["status"] == "APPROVED"
    emulated.account.clock.step(60)
    assert emulated.call("Billing_Order", "getObject", identifier=order["id"])["status"] == "APPROVED"
    seen(emulated, emulated.account.store.orders[order["id"]].guest_ids[0], 30)
    assert emulated.call("Billing_Order", "getObject", identifier=order["id"])["status"] == "COMPLETED"


def test_a_held_order_is_carried_out_after_its_caller_was_sent_away(tmp_path):
    emulated = Emulated(tmp_path)
    emulated.script("Virtual_Guest::createObject", "held", seconds=130)
    with pytest.raises(Fault, match="held"):
        emulated.order()
    emulated.account.clock.step(120)
    assert emulated.call("Account", "getVirtualGuests") == []
    emulated.account.clock.step(20)
    assert [each["hostname"] for each in emulated.call("Account", "getVirtualGuests")] == ["gpu-0"]


def test_a_refused_order_leaves_nothing_but_itself(tmp_path):
    emulated = Emulated(tmp_path, approval="pending")
    guest_id = emulated.order()
    decide(emulated, "refuse")
    with pytest.raises(Fault) as gone:
        seen(emulated, guest_id, 1)
    assert gone.value.code == "SoftLayer_Exception_ObjectNotFound"
    assert len(emulated.account.store.vlans) == 0
    assert emulated.call("Account", "getOrders")[0]["status"] == "REFUSED"
    with pytest.raises(Fault, match="does not wait for approval"):
        decide(emulated, "approve")


def test_cancelling_every_guest_that_waits_cancels_the_order(tmp_path):
    emulated = Emulated(tmp_path, approval="pending")
    one = emulated.call("Virtual_Guest", "generateOrderTemplate", template())
    both = [one["virtualGuests"][0] | {"hostname": name} for name in ("gpu-0", "gpu-1")]
    made = emulated.call("Product_Order", "placeOrder", one | {"quantity": 2, "virtualGuests": both})
    order = next(iter(emulated.account.store.orders.read_all()))
    for guest, status in zip(made["orderDetails"]["virtualGuests"], ("PENDING_APPROVAL", "CANCELLED"), strict=True):
        emulated.call("Virtual_Guest", "deleteObject", identifier=guest["id"])
        assert order.status == status
    assert len(emulated.account.store.guests) == len(emulated.account.store.billing_items) == 0


def test_tags_in_an_order_are_ignored_and_set_by_their_own_call(tmp_path):
    emulated = Emulated(tmp_path)
    guest_id = emulated.order(tagReferences=[{"tag": {"name": "mine"}}], tags="mine")
    mask = "id,tagReferences[tag[name]]"
    assert emulated.call("Virtual_Guest", "getObject", identifier=guest_id, mask=mask)["tagReferences"] == []
    emulated.call("Virtual_Guest", "setTags", "mine", identifier=guest_id)
    assert emulated.call("Virtual_Guest", "getObject", identifier=guest_id, mask=mask)["tagReferences"]


OURS = "test-1f3a9c42.microcluster"


@pytest.mark.parametrize(
    ("hostname", "domain"),
    [
        *((name, OURS) for name in ("gpu_0", "gpu--0", "gpu.-0", "gpu-", "0", "g" * 64, ".".join(["g" * 60] * 4))),
        *(("gpu-0", domain) for domain in ("12345678.microcluster", "test-1f3a9c42.micro-cluster", "microcluster")),
    ],
)
def test_a_name_that_the_vendor_forbids_is_refused_in_its_words(tmp_path, hostname, domain):
    with pytest.raises(Fault, match="InvalidHostname: The hostname and domain must be alphanumeric strings"):
        Emulated(tmp_path).call("Virtual_Guest", "createObject", template(hostname) | {"domain": domain})
