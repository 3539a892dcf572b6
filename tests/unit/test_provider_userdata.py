"""The host key on its way into the order and back."""

import pytest

from providers.softlayer.guest import cloud_config, make_host_key, public_part


def test_the_public_part_is_derived_from_the_user_data_of_the_order():
    key = make_host_key()
    assert public_part(cloud_config(key, "local-1f3a9c42", "gpu-0")) == key.public
    assert key.public.startswith("ssh-ed25519 AAAA")


def test_the_user_data_begins_as_cloud_init_wants_it_and_carries_the_mark():
    lines = cloud_config(make_host_key(), "local-1f3a9c42", "gpu-0").splitlines()
    assert lines[:2] == ["#cloud-config", "# microcluster local-1f3a9c42 gpu-0"]


def test_two_guests_never_share_a_host_key():
    assert make_host_key().public != make_host_key().public


def test_the_private_part_is_not_shown():
    assert "PRIVATE" not in repr(make_host_key())


@pytest.mark.parametrize(
    "data", ["", "#!/bin/sh\ntrue", "ssh_keys: {}", "ssh_keys: {ed25519_private: x}", "{", "ssh_keys: [1]"]
)
def test_user_data_without_a_key_of_ours_has_no_public_part(data):
    assert public_part(data) is None
