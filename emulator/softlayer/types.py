"""SoftLayer's types with their properties; the data are in ``types.txt``."""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).with_name("types.txt")
PREFIX = "SoftLayer_"
OF_THE_SERVICE = ("getObject", "getAllObjects", "createObject")
OF_OTHERS = {"getCurrentUser": "User_Customer", "getDatacenters": "Location"}


@dataclass(frozen=True)
class Type:
    """One type with all its properties, inherited ones included."""

    name: str
    properties: Mapping[str, str]
    """The type of each; a scalar's is empty."""


def find(name: str | None) -> Type | None:
    """A type by its name, with or without SoftLayer_; None where the table has none."""
    return _load().get((name or "").removeprefix(PREFIX))


def extends(name: str, base: str | None) -> bool:
    """Whether a type has all properties of another one."""
    own, inherited = find(name), find(base)
    return bool(own and inherited and own.properties.items() >= inherited.properties.items())


def count_of(name: str) -> str:
    """The property that counts a list of things: ``subnetCount`` counts ``subnets``."""
    return f"{re.sub('ies$', 'y', name).removesuffix('s')}Count"


def result_of(service: str, method: str) -> str | None:
    """The type of a method's answer, or of each row of its list; None if the table lacks it."""
    short_name = service.removeprefix(PREFIX)
    if method in OF_THE_SERVICE:
        return short_name
    if method in OF_OTHERS:
        return OF_OTHERS[method]
    of_service, name = find(short_name), method.removeprefix("get")
    return of_service.properties.get(name[:1].lower() + name[1:]) if of_service else None


@functools.cache
def _load() -> Mapping[str, Type]:
    own_properties: dict[str, tuple[str, dict[str, str]]] = {}
    name = ""
    for line in DATA.read_text().splitlines():
        if line.startswith("#"):
            continue
        if not line.startswith(" "):
            name, _, base = line.partition(" < ")
            own_properties[name] = (base, {})
        else:
            for word, _, target in (each.partition(":") for each in line.split()):
                own_properties[name][1].update({word: target, count_of(word): ""} if target else {word: target})
    return {name: Type(name, _inherited(name, own_properties)) for name in own_properties}


def _inherited(name: str, own: Mapping[str, tuple[str, dict[str, str]]]) -> dict[str, str]:
    if name not in own:
        return {}
    base, properties = own[name]
    return {**_inherited(base, own), **properties}
