"""The host key on its way into the order and back."""

import pytest

from providers.rental.resource import HostKey
from providers.softlayer.guest import public_part
from providers.softlayer.specs import cloud_config


def test_the_user_data_carries_the_mark_and_a_fresh_host_key_whose_public_part_is_read_back():
    key = HostKey.fresh()
    data = cloud_config(key, "local-1f3a9c42", "gpu-0")
    assert data.splitlines()[:2] == ["#cloud-config", "# microcluster local-1f3a9c42 gpu-0"]
    assert public_part(data) == key.public
    assert key.public.startswith("ssh-ed25519 AAAA") and key.public != HostKey.fresh().public
    assert "PRIVATE" not in repr(key)


@pytest.mark.parametrize(
    "data", ["", "#!/bin/sh\ntrue", "ssh_keys: {}", "ssh_keys: {ed25519_private: x}", "{", "ssh_keys: [1]"]
)
def test_user_data_without_a_key_of_ours_has_no_public_part(data):
    assert public_part(data) is None
