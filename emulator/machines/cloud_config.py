"""What a machine takes from its user data: the host key that the customer chose, as cloud-init would."""

from __future__ import annotations

import yaml

HEADER = "#cloud-config"


def host_key(user_data: str) -> str | None:
    """The private ed25519 host key in cloud-init's user data; None for any other user data, as on a real machine."""
    if not user_data.startswith(HEADER):
        return None
    try:
        document = yaml.safe_load(user_data)
    except yaml.YAMLError:
        return None
    keys = document.get("ssh_keys") if isinstance(document, dict) else None
    key = keys.get("ed25519_private") if isinstance(keys, dict) else None
    return key.rstrip("\n") + "\n" if isinstance(key, str) else None
