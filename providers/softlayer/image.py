"""The Image resource: an image template that guests may be ordered from, by its id or GUID."""

from __future__ import annotations

from typing import Annotated, Any, Self

import pydantic

from providers.softlayer.calls import Api
from providers.softlayer.errors import ApiError
from providers.softlayer.look_up import LookUp
from providers.softlayer.spec import ObjectId, Spec

SERVICE = "Virtual_Guest_Block_Device_Template_Group"
MASK = "mask[id,globalIdentifier,name,publicFlag,children[blockDevices[diskSpace,diskImage[capacity]]]]"
GIGABYTE = 2**30


class ImageSpec(Spec):
    """Which one."""

    image_id: ObjectId | None = None
    guid: Annotated[str, pydantic.StringConstraints(pattern=r"^[0-9a-fA-F-]{36}$")] | None = None

    @pydantic.model_validator(mode="after")
    def _one_name(self) -> Self:
        if (self.image_id is None) == (self.guid is None):
            raise ValueError("name either imageId or guid, and not both")
        return self


def find(api: Api, spec: ImageSpec) -> dict[str, Any] | None:
    """Read an image; None when there is none, or none that this account may use."""
    try:
        found = api.read(SERVICE, "getObject", id=spec.guid or int(spec.image_id or 0), mask=MASK)
    except ApiError as error:
        if error.is_gone:
            return None
        raise
    image_id = int(found["id"])
    return {
        "imageId": str(image_id),
        "guid": found.get("globalIdentifier"),
        "name": found.get("name"),
        "isPublic": bool(found.get("publicFlag")),
        "cloudInit": bool(api.read(SERVICE, "isCloudInit", id=image_id)),
        "bootMode": api.read(SERVICE, "getBootMode", id=image_id) or None,
        "sizeGb": _size_gb(found),
    }


def _size_gb(found: dict[str, Any]) -> int:
    """Add up the disks of the copy in the datacenter where they take most."""
    copies = [
        sum(_disk_gb(device) for device in child.get("blockDevices") or []) for child in found.get("children") or []
    ]
    return max(copies, default=0)


def _disk_gb(device: dict[str, Any]) -> int:
    capacity = (device.get("diskImage") or {}).get("capacity")
    return int(float(capacity)) if capacity else round(int(device.get("diskSpace") or 0) / GIGABYTE)


OUTPUTS = ("imageId", "guid", "name", "isPublic", "cloudInit", "bootMode", "sizeGb")
HINT = (
    "It is gone, or belongs to another account that does not share it; 'slcli image list' shows those that can be used."
)
IMAGE = LookUp("image", ImageSpec, find, OUTPUTS, HINT)
