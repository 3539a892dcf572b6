"""Read the JSON of pip-audit or govulncheck on standard input; print what has to be mended, and fail if there is something."""

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

EXCEPTIONS = Path(__file__).with_name("exceptions.toml")


def packages(text: str) -> dict[str, str]:
    """Return what pip-audit knows: an id, and of which package it is."""
    listed = json.loads(text)["dependencies"]
    if all("skip_reason" in package for package in listed):
        raise LookupError("the package index has no list of weaknesses")
    return {
        each[
            "id"
        ]: f"{package['name']} {package['version']}, fixed in {', '.join(each['fix_versions']) or 'no version'}"
        for package in listed
        for each in package.get("vulns", ())
    }


def modules(text: str) -> dict[str, str]:
    """Return what govulncheck knows, of its objects one after the other: an id, and of which module it is."""
    messages: list[dict[str, Any]] = json.loads("[" + text.strip().replace("}\n{", "},{") + "]")
    return {
        found["osv"]: f"{found['trace'][0]['module']} {found['trace'][0].get('version', '')}, "
        f"fixed in {found.get('fixed_version', 'no version')}"
        for found in (message["finding"] for message in messages if "finding" in message)
    }


def main(kind: str, name: str) -> int:
    """Print a line for what was looked at, and one for each finding that has to be mended."""
    excepted = {each for rule in tomllib.loads(EXCEPTIONS.read_text())["exceptions"] for each in rule["ids"]}
    try:
        found = {"packages": packages, "modules": modules}[kind](sys.stdin.read())
    except (ValueError, LookupError) as unknown:
        print(f"audit: {name}: left out: {unknown}")
        return 0
    print(f"audit: {name}: {len(found.keys() - excepted)} to mend, {len(found.keys() & excepted)} excepted")
    for each in sorted(found.keys() - excepted):
        print(f"    {each}: {found[each]}. Take a fixed version, or except it with the reason in {EXCEPTIONS}")
    return int(bool(found.keys() - excepted))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
