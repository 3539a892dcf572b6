"""Subnet, Router and Image: read by id or name, never changed, never deleted."""

from __future__ import annotations

import pytest

from tests.integration.provider_driver import Driver, Failed, Resource

OWN, PARAVIRTUAL, PUBLIC, FOREIGN = "2263543", "2263001", "2263700", "2263900"


@pytest.fixture
def driver(account_emulator, onlooker):
    with Driver(account_emulator.config_file) as running:
        yield running


@pytest.mark.parametrize("asked", [{"imageId": OWN}, {"guid": "5f2c8c7e-3a0b-4b5e-9d3f-7f0c2a64b001"}])
def test_an_image_is_read_by_its_id_or_guid(driver, asked):
    made = driver.create("Image", "image", asked)
    told = {key: value for key, value in made.outputs.items() if key not in ("accountId", *asked)}
    known = {"imageId": OWN, "guid": "5f2c8c7e-3a0b-4b5e-9d3f-7f0c2a64b001", "name": "docker-nvidia-ubuntu16"}
    known |= {"isPublic": False, "cloudInit": True, "bootMode": "HVM", "sizeGb": 25}
    assert {**told, **asked} == known
    assert driver.read(made).inputs == asked


def test_an_image_that_no_gpu_boots_says_so(driver):
    outputs = driver.create("Image", "image", {"imageId": PARAVIRTUAL}).outputs
    assert (outputs["bootMode"], outputs["cloudInit"]) == ("PV", False)
    assert driver.create("Image", "image", {"imageId": PUBLIC}).outputs["isPublic"] is True


@pytest.mark.parametrize("asked", [{"imageId": "7"}, {"imageId": FOREIGN}])
def test_an_image_that_is_missing_or_belongs_to_another_account_is_a_sentence(driver, asked):
    with pytest.raises(Failed, match=f"looking up the image with imageId {asked['imageId']}: the account shows none"):
        driver.create("Image", "image", asked)


def test_a_router_is_found_by_its_hostname_and_by_its_id(driver):
    made = driver.create("Router", "router", {"hostname": "bcr01a.lon06"})
    assert (made.outputs["datacenter"], made.outputs["pod"]) == ("lon06", "lon06.pod01")
    assert made.outputs["space"] == "PRIVATE"
    assert driver.create("Router", "router", {"routerId": made.id}).outputs["hostname"] == "bcr01a.lon06"
    with pytest.raises(Failed, match="several have this name.*Name one of them"):
        driver.create("Router", "router", {"hostname": "bcr01a"})


def test_a_subnet_is_read_and_imported_and_deleting_it_leaves_it_alone(driver, onlooker):
    onlooker.order("gpu-0")
    subnet = onlooker.client.call("Account", "getSubnets", mask="mask[id,networkIdentifier,cidr]")[0]
    imported = driver.read(Resource("Subnet", "subnet", str(subnet["id"]), {}, {}))
    assert imported.inputs == {"subnetId": str(subnet["id"])}
    made = driver.create("Subnet", "subnet", imported.inputs)
    assert made.outputs["network"] == f"{subnet['networkIdentifier']}/{subnet['cidr']}"
    assert made.outputs["datacenter"] == "lon06"
    driver.delete(made)
    assert driver.read(made).id == made.id
    assert driver.read(Resource("Subnet", "subnet", "999999", {"subnetId": "999999"}, {})) is None
