"""The PrivateNetwork and SharedDrive resources: adopted by name, kept by name, and removed once nothing uses them."""

from typing import Any

from microcluster.accounts.paperspace.account import DRIVES, NETWORKS, Order, Paperspace
from microcluster.accounts.paperspace.declared import PrivateNetwork, SharedDrive
from microcluster.accounts.paperspace.specs import DriveSpec, full_name
from microcluster.accounts.paperspace.views import DRIVE, NETWORK
from microcluster.accounts.shared.account import OrderRequest, Resource
from microcluster.accounts.shared.order import Operation
from microcluster.accounts.shared.readiness import Readiness
from microcluster.accounts.shared.resource import Rented
from microcluster.accounts.shared.spec import Values
from microcluster.core.home import Owner


class _Named(Rented):
    """A resource whose name carries its owner and whether it is kept. Only the name can be changed."""

    PATH: str
    TIMEOUT_S = 30 * 60.0
    LATER = ("keep",)

    def body(self, spec: Any) -> dict[str, Any]:
        """Return the fields of the order besides the name."""
        return {"region": spec.region}

    def request(self, op: Operation, spec: Any, owner: Owner) -> OrderRequest:
        """Write down what is looked for by its name."""
        order = Order(self.PATH, {"name": full_name(spec.name, owner, keep=spec.keep), **self.body(spec)})
        return OrderRequest(
            self.KIND,
            owner,
            spec.name,
            order,
            is_billed=True,
            sold=spec.model_dump_json(by_alias=True),
        )

    def finish(self, op: Operation, market: Paperspace, spec: Any, building: Readiness, *, is_new: bool) -> Resource:
        """Rename the resource where its name does not say whether it is kept."""
        resource = building.wait()
        if resource.is_kept != spec.keep:
            name = full_name(resource.called, resource.owner, keep=spec.keep)
            market.api.ensure("PUT", f"{self.PATH}/{resource.id}", {"name": name})
        return resource

    def delete(self, op: Operation, resource_id: str, inputs: Values, old: Values) -> None:
        """Delete the resource once nothing uses it, or leave it if it is kept."""
        if inputs.get("keep"):
            op.log.info(f"Keeps {self.KIND} {resource_id}, which is billed until it is deleted.")
            return
        super().delete(op, resource_id, inputs, old)


class Networks(_Named):
    """Networks as a resource: machines and drives of one region that reach each other."""

    KIND, PATH, DECLARED = NETWORK, NETWORKS, PrivateNetwork
    REPLACE_ON = frozenset({"mark", "name", "region"})


class Drives(_Named):
    """Drives as a resource; a drive's password goes into no output and no state."""

    KIND, PATH, DECLARED = DRIVE, DRIVES, SharedDrive
    REPLACE_ON = frozenset({"mark", "name", "region", "sizeGb", "networkId"})

    def body(self, spec: DriveSpec) -> dict[str, Any]:
        """Return the fields of the order, with the drive's size and network."""
        return {"size": spec.size_gb, "region": spec.region, "networkId": spec.network_id}
