"""An emulated Paperspace account on a free loopback port."""

from typing import Any

import requests

from tests.integration.conftest import AccountEmulator
from tests.unit.emulated_paperspace import order

KEY = {"Authorization": "Bearer local"}
LIMIT_S = 20


class Paperspace(AccountEmulator):
    """One emulated Paperspace account, without machines behind its machines."""

    vendor = "paperspace"
    defaults = {"provisioning_s": 300.0}

    def send(self, method: str, path: str, **given: Any) -> requests.Response:
        authority = self.state / "authority.pem"
        with requests.Session() as session:
            session.trust_env = False
            session.verify = str(authority) if authority.exists() else True
            return session.request(method, f"{self.root}/v1{path}", timeout=LIMIT_S, headers=KEY, **given)

    def names(self, path: str, **query: Any) -> list[str]:
        return [each["name"] for each in self.send("GET", path, params=query).json()["items"]]

    def order(self, name: str) -> requests.Response:
        """Order a machine in a network of its name."""
        return self.send("POST", "/machines", json=order(name) | {"networkId": self.network(name)["id"]})

    def network(self, name: str) -> dict[str, Any]:
        return self.send("POST", "/private-networks", json={"name": name, "region": "ny2"}).json()
