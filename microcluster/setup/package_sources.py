"""This machine's package settings (apt sources, pip index, proxies, CA bundle), for image builds."""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from microcluster.setup.errors import CommandFailed
from microcluster.setup.process import STOPPED_BY_LIMIT, asked

APT = Path("/etc/apt")
CA_VARIABLES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
DEBIAN_CA_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
PROXY_VARIABLES = ("http_proxy", "https_proxy", "no_proxy")
PIP_SETTINGS = ("index-url", "extra-index-url", "trusted-host", "proxy", "default-timeout", "timeout")
APT_SETTINGS = ("Acquire::Check-Valid-Until", "Acquire::Check-Date", "Acquire::http::Proxy", "Acquire::https::Proxy")
TOOL_LIMIT_S = 30
Entry = tuple[list[str], list[str], list[str]]
"""Addresses, suites and components of one source of packages."""


def apt_sources(suite: str, apt: Path = APT) -> tuple[str, ...]:
    """Return the host's source lines for Debian's ``suite`` and its updates; empty for another suite."""
    wanted_suites = {suite, f"{suite}-updates", f"{suite}-security"}
    entries: list[Entry] = []
    for path in [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*"))]:
        if path.suffix == ".sources":
            entries += _from_stanzas(path.read_text())
        elif path.suffix == ".list" and path.is_file():
            entries += _from_lines(path.read_text())
    lines = [
        f"deb {address} {suite} main"
        for addresses, suites, components in entries
        for address in addresses
        for suite in suites
        if "main" in components and suite in wanted_suites
    ]
    return _without_passwords(dict.fromkeys(lines), "apt source")


def apt_options(dump: str) -> tuple[str, ...]:
    """Return the host's apt settings that its sources may need (proxies, expired release files), from ``apt-config dump``."""
    lines = (line for line in dump.splitlines() if line.split(" ")[0] in APT_SETTINGS and not line.endswith('"";'))
    return _without_passwords(lines, "apt setting")


def builder_files() -> dict[str, bytes]:
    """Return the files of a builder stage's host folder: pip's settings and the CA bundle."""
    bundle, listing = ca_bundle(os.environ), tool_output((sys.executable, "-m", "pip", "config", "list"))
    return {"pip.conf": pip_configuration(listing).encode(), "ca.crt": bundle.read_bytes() if bundle else b""}


def proxies(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the proxy variables, which Docker takes as build arguments and does not store in the image."""
    both = {name: environment.get(name) or environment.get(name.upper()) for name in PROXY_VARIABLES}
    return {name: value for name, value in both.items() if value}


def ca_bundle(environment: Mapping[str, str]) -> Path | None:
    """Return this machine's CA bundle."""
    named = [environment[name] for name in CA_VARIABLES if environment.get(name)]
    return next((Path(name) for name in [*named, DEBIAN_CA_BUNDLE] if Path(name).is_file()), None)


def pip_configuration(listing: str) -> str:
    """Return a pip.conf with the host's index settings, from ``pip config list``."""
    entries = re.findall(r"^(:env:|global|install)\.([a-z-]+)='(.*)'$", listing, flags=re.MULTILINE)
    configuration = {
        name: value for _, name, value in sorted(entries, reverse=True)
    }  # ":env:" sorts first, so it is last here.
    settings = [f"{name} = {configuration[name]}" for name in PIP_SETTINGS if name in configuration]
    return "\n".join(["[global]", *_without_passwords(settings, "pip setting"), ""])


def tool_output(command: Sequence[str], limit_s: float = TOOL_LIMIT_S) -> str:
    """Return the output of a package tool; an empty text if it is not installed."""
    completed = asked(command, limit_s)
    if completed.returncode == STOPPED_BY_LIMIT:
        raise CommandFailed(f"`{' '.join(command)}` gave {completed.stderr}; run it by hand, then repeat")
    return completed.stdout


def _without_passwords(lines: Iterable[str], kind: str) -> tuple[str, ...]:
    """Return the lines; refuse an address with a password, which an image layer would store."""
    kept = tuple(lines)
    found = [line for line in kept if re.search(r"://[^/\s]*@", line)]
    if found:
        shown = re.sub(r"://[^/\s]*@", "://(secret)@", found[0])
        raise CommandFailed(
            f"the {kind} `{shown}` holds a user name or a password, which would stay in a layer of the image; "
            "name an address without one (pip's index in PIP_INDEX_URL), then repeat"
        )
    return kept


def _from_stanzas(text: str) -> Iterator[Entry]:
    text = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for part in text.split("\n\n"):
        stanza = dict(re.findall(r"^([\w-]+):[ \t]*(.*)$", part, flags=re.MULTILINE))
        if "deb" in stanza.get("Types", "").split() and stanza.get("Enabled", "yes") != "no":
            addresses, suites, components = (stanza.get(key, "").split() for key in ("URIs", "Suites", "Components"))
            yield addresses, suites, components


def _from_lines(text: str) -> Iterator[Entry]:
    for address, suite, components in re.findall(r"^deb\s+(?:\[.*?\]\s+)?(\S+)\s+(\S+)[ \t]*(.*)$", text, re.MULTILINE):
        yield [address], [suite], components.split()
