"""SoftLayer's types with their properties; the data are in ``types.txt``."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).with_name("types.txt")
PREFIX = "SoftLayer_"
SCALAR = ""
"""The type of what has no properties of its own."""
OF_THE_SERVICE = ("getObject", "getAllObjects", "createObject", "createObjects", "getPublicImages")
RESULTS = {  # of methods whose name does not show it
    "getCurrentUser": "User_Customer",
    "getDatacenters": "Location",
    "getStorageLocations": "Location",
    "getUpgradeItemPrices": "Product_Item_Price",
    "getAttachedNetworkStorages": "Network_Storage",
}


@dataclass(frozen=True)
class Type:
    """One type with all its properties, inherited ones included."""

    name: str
    base: str
    properties: Mapping[str, str]
    """The type of each; a scalar's is empty."""

    def property_type(self, name: str) -> str | None:
        """The type of a property; None where the type has no such property."""
        found = self.properties.get(name)
        return SCALAR if found is None and self._is_count(name) else found

    def _is_count(self, name: str) -> bool:
        """Whether it is the ``thingCount`` of a list of things."""
        stem = name.removesuffix("Count")
        plurals = (f"{stem}s", f"{stem}es", f"{stem.removesuffix('y')}ies", stem)
        return stem != name and any(self.properties.get(each) for each in plurals)


def find(name: str | None) -> Type | None:
    """A type by its name, with or without SoftLayer_; None where the table has none."""
    return _load().get((name or "").removeprefix(PREFIX))


def result_of(service: str, method: str) -> str | None:
    """The type of a method's answer, or of each row of its list; None if the table lacks it."""
    own = service.removeprefix(PREFIX)
    if method in RESULTS:
        return RESULTS[method]
    if method in OF_THE_SERVICE:
        return own
    of_service = find(own)
    name = method.removeprefix("get")
    return of_service.property_type(name[:1].lower() + name[1:]) if of_service and name != method else None


def shown_as(declared: str, name: str) -> str | None:
    """The type of a property of an object that is declared so, and may be of a type that extends it."""
    for each in (find(declared), *_extending(declared)):
        found = each.property_type(name) if each else None
        if found is not None:
            return found
    return None


@functools.cache
def _extending(declared: str) -> tuple[Type, ...]:
    below = [each for each in _load().values() if each.base == declared.removeprefix(PREFIX)]
    return (*below, *(deeper for each in below for deeper in _extending(each.name)))


@functools.cache
def _load() -> Mapping[str, Type]:
    own: dict[str, tuple[str, dict[str, str]]] = {}
    name = ""
    for line in DATA.read_text().splitlines():
        if line.startswith("#"):
            continue
        if not line.startswith(" "):
            name, _, base = line.partition(" < ")
            own[name] = (base, {})
        else:
            pairs = (word.partition(":") for word in line.split())
            own[name][1].update((word, target) for word, _, target in pairs)
    return {name: Type(name, base, _inherited(name, own)) for name, (base, _) in own.items()}


def _inherited(name: str, own: Mapping[str, tuple[str, dict[str, str]]]) -> dict[str, str]:
    if name not in own:
        return {}
    base, properties = own[name]
    return {**_inherited(base, own), **properties}
