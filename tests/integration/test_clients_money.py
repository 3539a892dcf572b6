"""The official client reads the emulated account's money: orders, billing items, invoices, cancellations, the summary."""

import json
from decimal import Decimal
from typing import Any

import pytest
import SoftLayer
from SoftLayer.managers.account import AccountManager
from SoftLayer.managers.ordering import OrderingManager

from tests.integration.official import DOMAIN, GUEST, Slcli, cancel_all, client_of, order

PACKAGE = "PUBLIC_CLOUD_SERVER"
GUEST_ORDER = "SoftLayer_Container_Product_Order_Virtual_Guest"
ITEMS = [
    "OS_UBUNTU_18_04_LTS_BIONIC_BEAVER_MINIMAL_64_BIT",
    "1_GBPS_PUBLIC_PRIVATE_NETWORK_UPLINKS",
    "BANDWIDTH_0_GB_2",
    "1_IP_ADDRESS",
    "REBOOT_REMOTE_CONSOLE",
    "MONITORING_HOST_PING",
    "NOTIFICATION_EMAIL_AND_TICKET",
    "AUTOMATED_NOTIFICATION",
    "UNLIMITED_SSL_VPN_USERS_1_PPTP_VPN_USER_PER_ACCOUNT",
    "NESSUS_VULNERABILITY_ASSESSMENT_REPORTING",
]


@pytest.fixture(scope="module")
def slcli(account_emulator):
    return Slcli(account_emulator.config_file)


@pytest.fixture(params=["xmlrpc", "rest"])
def client(request, account_emulator):
    return client_of(account_emulator, request.param)


@pytest.fixture(scope="module", autouse=True)
def rented(account_emulator):
    """An hourly guest and a monthly one, by their billing items."""
    client = client_of(account_emulator)
    monthly = {"hourly": False, "flavor": "AC1_8X60X25", "disks": ["25"]}
    guests = {"hourly": order(client), "monthly": order(client, hostname="pays-monthly", **monthly)}
    yield {name: client.call("Virtual_Guest", "getBillingItem", id=each)["id"] for name, each in guests.items()}
    cancel_all(client)


def extras(hostname: str) -> dict[str, object]:
    return {"virtualGuests": [{"hostname": hostname, "domain": DOMAIN}]}


def open_items(client: SoftLayer.API.BaseClient) -> list[int]:
    return [each["id"] for each in AccountManager(client).get_account_billing_items(mask="mask[id]")]


def test_the_summary_counts_what_the_account_holds_and_names_the_next_invoice(client, rented):
    summary = AccountManager(client).get_summary()
    assert (summary["virtualGuestCount"], summary["userCount"], summary["hardwareCount"]) == (2, 1, 0)
    total = sum(
        entry["nextInvoiceTotalRecurringAmount"] for entry in AccountManager(client).get_account_billing_items()
    )
    assert float(summary["nextInvoiceTotalAmount"]) == pytest.approx(total, rel=0.05)
    assert summary["pendingInvoice"]["invoiceTotalAmount"] == summary["nextInvoiceTotalAmount"]


def test_every_open_item_is_listed_with_its_price_place_and_owner(client, rented):
    items = {each["id"]: each for each in AccountManager(client).get_account_billing_items()}
    hourly, monthly = items[rented["hourly"]], items[rented["monthly"]]
    assert (hourly["hourlyFlag"], monthly["hourlyFlag"]) == (True, False)
    assert (hourly["hourlyRecurringFee"], monthly["recurringFee"]) == (4.496, pytest.approx(1306.11))
    assert hourly["location"]["name"] == "lon04"
    assert hourly["orderItem"]["order"]["userRecord"]["displayName"] == "local"


@pytest.mark.parametrize(
    ("wanted", "count"), [({"category": "guest_core"}, 2), ({"category": "network_vlan"}, 0), ({"create": "1999"}, 0)]
)
def test_open_items_are_filtered_by_category_and_date(client, wanted, count):
    assert len(AccountManager(client).get_account_billing_items(**wanted)) == count


def test_an_item_is_shown_with_its_children(client, rented):
    item = AccountManager(client).get_item_detail(rented["hourly"])
    assert {"guest_disk1", "port_speed", "ram", "os"} <= {each["categoryCode"] for each in item["children"]}
    child = next(each for each in item["children"] if each["categoryCode"] == "guest_disk1")
    again = AccountManager(client).get_item_detail(child["id"])
    assert (again["description"], again["parentId"]) == ("2000 GB (SAN)", item["id"])


def test_orders_are_listed_and_looked_up(client):
    orders = AccountManager(client).get_account_all_billing_orders()
    assert {each["status"] for each in orders} == {"COMPLETED"}
    assert {each["orderTotalAmount"] for each in orders} >= {"4.50", "1306.11"}
    detail = OrderingManager(client).get_order_detail(min(each["id"] for each in orders))
    assert "2000 GB (SAN)" in {each["description"] for each in detail["items"]}


def test_the_pending_invoice_is_shown_line_by_line(client, rented):
    invoice = client.call("Account", "getPendingInvoice", mask="mask[id,invoiceTotalAmount]")
    items = AccountManager(client).get_billing_items(invoice["id"])
    lines = [Decimal(each["recurringAfterTaxAmount"]) for top in items for each in (top, *top["children"])]
    assert abs(sum(lines) - Decimal(invoice["invoiceTotalAmount"])) < 15  # An hour may begin between the two calls.
    assert {each["hostName"] for each in items} >= {"gpu-0", "pays-monthly"}
    assert {each["location"]["name"] for each in items} == {"lon04"}


def test_packages_presets_items_places_and_categories_are_listed(client):
    manager = OrderingManager(client)
    assert PACKAGE in {each["keyName"] for each in manager.list_packages()}
    assert "AC2_16X120X100" in {each["keyName"] for each in manager.list_presets(PACKAGE)}
    assert {"GUEST_DISK_2000_GB_SAN", ITEMS[0]} <= {each["keyName"] for each in manager.list_items(PACKAGE)}
    required = {each["itemCategory"]["categoryCode"] for each in manager.list_categories(PACKAGE) if each["isRequired"]}
    assert {"os", "port_speed", "bandwidth"} <= required
    assert not required & {"guest_core", "guest_disk1"}
    places = [each["location"]["name"] for region in manager.package_locations(PACKAGE) for each in region["locations"]]
    assert {"lon04", "dal13"} <= set(places)


@pytest.mark.parametrize("place", ["lon04", "LON04"])
def test_an_order_by_key_names_is_verified_with_the_presets_price(client, place):
    before = open_items(client)
    manager = OrderingManager(client)
    wanted = {"complex_type": GUEST_ORDER, "preset_keyname": "AC2_8X60X100", "extras": extras("verified")}
    (container,) = manager.verify_order(PACKAGE, place, ITEMS, **wanted)["orderContainers"]
    assert container["postTaxRecurringHourly"] == "2.99"
    assert open_items(client) == before


def test_an_order_by_key_names_is_placed_and_costs_what_was_verified(client):
    wanted = {"complex_type": GUEST_ORDER, "preset_keyname": "AC2_8X60X100", "extras": extras("placed")}
    receipt = OrderingManager(client).place_order(PACKAGE, "lon04", ITEMS, **wanted)
    (guest,) = receipt["orderDetails"]["orderContainers"][0]["virtualGuests"]
    item = client.call("Virtual_Guest", "getBillingItem", id=guest["id"], mask="mask[hourlyRecurringFee]")
    assert (receipt["placedOrder"]["status"], item["hourlyRecurringFee"]) == ("APPROVED", 2.99)
    cancel_placed(client)


def shown(table: list[dict[str, Any]]) -> dict[str, Any]:
    """A table of keys and values, as they are in it."""
    return {row["Key"]: row["Value"] for row in table}


def cancel_placed(client: SoftLayer.API.BaseClient) -> None:
    manager = SoftLayer.VSManager(client)
    for guest in manager.list_instances(hostname="placed", mask="mask[id,billingItem]"):
        if guest.get("billingItem"):
            manager.wait_for_ready(guest["id"], 30, delay=0.1, pending=True)
            manager.cancel_instance(guest["id"])


def test_the_command_line_places_an_order_by_key_names(slcli, account_emulator):
    words = ("order", "place", "--preset", "AC2_8X60X100", "--complex-type", GUEST_ORDER)
    words = (*words, "--extras", json.dumps(extras("placed")))
    assert slcli.json(*words, "--verify", PACKAGE, "LON04", *ITEMS)
    placed = slcli.json(*words, PACKAGE, "lon04", *ITEMS)
    assert placed["status"] == "APPROVED"
    looked_up = shown(slcli.json("order", "lookup", placed["id"]))
    assert (looked_up["Order Total Amount"], looked_up["Ordered By"]) == ("2.99", "local (Active)")
    cancel_placed(client_of(account_emulator))


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("order", "package-list"), PACKAGE),
        (("order", "preset-list", PACKAGE), "AC2_16X120X100"),
        (("order", "item-list", PACKAGE), "GUEST_DISK_2000_GB_SAN"),
        (("order", "category-list", PACKAGE), "guest_core"),
        (("account", "summary"), "microcluster emulator"),
        (("account", "orders"), "COMPLETED"),
        (("account", "billing-items"), f"pays-monthly.{DOMAIN}"),
        (("account", "invoices", "--all", "--closed"), "[]"),
        (("account", "events"), "[]"),
        (("account", "licenses"), "{}"),
        (("call-api", "Account", "getNextInvoiceTotalAmount"), "."),
        (("summary",), '"virtual_servers": 2'),
    ],
)
def test_the_command_line_shows_the_account(slcli, words, text):
    assert text in slcli.text(*words)


def test_an_item_is_shown_and_cancelled_on_its_anniversary_from_the_command_line(slcli, account_emulator):
    client = client_of(account_emulator)
    guest_id = order(client, hostname="leaves-later", hourly=False)
    item_id = client.call("Virtual_Guest", "getBillingItem", id=guest_id)["id"]
    before = shown(slcli.json("account", "item-detail", item_id))
    assert (before["FQDN"], before["cancellationDate"]) == (f"leaves-later.{DOMAIN}", None)
    slcli.text("account", "cancel-item", item_id)
    assert shown(slcli.json("account", "item-detail", item_id))["cancellationDate"] > before["createDate"]
    assert item_id not in [each["Id"] for each in slcli.json("account", "billing-items")]
    assert account_emulator.status()["open_billing_items"] == 3
    assert "is already cancelled" in slcli.refused("account", "cancel-item", item_id)
    assert "pending" in slcli.refused("vs", "cancel", guest_id)
    client.call("Billing_Item", "voidCancelService", id=item_id)
    slcli.text("vs", "cancel", guest_id)


def test_an_hourly_item_ends_at_once_from_the_command_line(slcli, account_emulator):
    client = client_of(account_emulator)
    guest_id = order(client, hostname="leaves-now", **{"disks": GUEST["disks"][:1]})
    item_id = client.call("Virtual_Guest", "getBillingItem", id=guest_id)["id"]
    slcli.text("account", "cancel-item", item_id)
    assert client.call("Virtual_Guest", "getBillingItem", id=guest_id) in (None, "")
    assert item_id not in open_items(client)
