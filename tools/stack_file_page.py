"""Write the tables of docs/stack-file.md from the model of the stack file: ``python -m tools.stack_file_page``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from microcluster import catalog, config
from microcluster.config import rules
from microcluster.config.model import StackFile

PAGE = Path(__file__).parents[1] / "docs" / "stack-file.md"
BEGIN, END = "<!-- from here: python -m tools.stack_file_page -->", "<!-- to here -->"
STACK = "v100"
"""The stack whose values show where a default comes from."""
TYPES = {"integer": "number", "number": "number", "string": "text", "array": "list of texts", "boolean": "yes or no"}
RANGES = {
    "cluster.datacenter": ", ".join(catalog.DATACENTERS),
    "cluster.flavor": ", ".join(f"{name} ({flavor.gpus}x {flavor.gpu})" for name, flavor in catalog.FLAVORS.items()),
    "cluster.adminCidrs": "IPv4 networks, together not more than a /8",
    "cluster.portSpeedMbps": ", ".join(map(str, catalog.PORT_SPEEDS_MBPS)) + "; with more than one node 1000",
    "cluster.dataDiskGb": ", ".join(map(str, catalog.DATA_DISK_SIZES_GB)),
    "cluster.os": ", ".join(catalog.OPERATING_SYSTEMS) + "; not with `image`",
    "cluster.image": "id or global identifier of an image of the account; not with `os`",
    "cluster.router": "id of a backend router; not with `privateVlan`",
    "cluster.privateVlan": "id of a VLAN; not with `router`",
    "container.image": "image reference with its registry",
    "container.name": "a lower-case word of at most 31 characters",
    "container.registryKeyFile": "path that begins with `~/`, `/` or `$MICROCLUSTER_HOME/`",
    "job.preflight": "`run`, or `skip: ` and a reason that is kept with the run",
    "job.data": "https address of a tar (`#sha256=HEX` pins it), or a folder or tar of this computer",
}
MEANINGS = {
    "configFile": (
        "path",
        "the client's usual sources",
        "file with user, key and endpoint, in the official client's format",
    ),
    "timeScale": (
        "number",
        "1",
        f"above 0 and up to {rules.LONGEST_TIME_SCALE}: the unit of all waits of the provider, for tests",
    ),
    "importMark": ("text", "not set", "the one other owner mark whose things may be imported"),
}


def tables() -> str:
    """Return the tables of all sections."""
    origins = {path: (value, source) for path, value, source in config.read_file(STACK).origins}
    text = ["| key | type | default | range |", "|---|---|---|---|"]
    text += [_row(path, schema, origins) for path, schema in _keys()]
    text += ["", "Keys of the account, `softlayer:...`:", "", "| key | type | default | range |", "|---|---|---|---|"]
    text += [f"| `softlayer:{key}` | {' | '.join(MEANINGS[key])} |" for key in rules.ACCOUNT_KEYS]
    return "\n".join(text)


def written() -> str:
    """Return the page with the tables as they should be."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    return f"{before}{BEGIN}\n\n{tables()}\n\n{END}{rest.partition(END)[2]}"


def _keys() -> Iterator[tuple[str, Mapping[str, Any]]]:
    schema = StackFile.model_json_schema()
    for section, named in schema["properties"].items():
        model = schema["$defs"][named["$ref"].rpartition("/")[2]]
        for key, facts in model["properties"].items():
            yield f"{section}.{key}", facts


def _row(path: str, schema: Mapping[str, Any], origins: Mapping[str, tuple[Any, str]]) -> str:
    one = next((each for each in schema.get("anyOf", ()) if each.get("type") != "null"), schema)
    value, source = origins.get(path, (None, "not set"))
    return f"| `{path}` | {_type(one)} | {_default(value, source)} | {RANGES.get(path) or _range(one)} |"


def _type(schema: Mapping[str, Any]) -> str:
    return "word" if {"enum", "const"} & set(schema) else TYPES[schema["type"]]


def _default(value: Any, source: str) -> str:
    if source == "stack file":
        return "required"
    return f"`{value}`" if source == "default" else re.sub(r" (at \$|\(16 bits).*", "", source)


def _range(schema: Mapping[str, Any]) -> str:
    words = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    if words:
        return ", ".join(f"`{word}`" for word in words)
    return f"{schema['minimum']:,} to {schema['maximum']:,}" if "maximum" in schema else ""


if __name__ == "__main__":
    PAGE.write_text(written())
