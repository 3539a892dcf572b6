"""The package index that this computer's pip is set to, handed on to the machines of an account; nothing else outside is."""

import ast
import hashlib
import html
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests
from requests.auth import HTTPBasicAuth
from requests.utils import get_auth_from_url, get_netrc_auth
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

ROOT = "/packages/"
PAGES, FILES = f"{ROOT}simple", f"{ROOT}files"
SYSTEM_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
CONFIGURED = re.compile(r"^(:env:|global|install)\.([a-z-]+)=('.*'|\".*\")$", re.MULTILINE)
PRIORITY = ("global", "install", ":env:")
PROJECT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
DEFAULT_INDEX = re.compile(r"Base URL of the Python Package Index \(default (\S+?)\)")
LINK = re.compile(r"<a\b.*?</a\s*>", re.DOTALL | re.IGNORECASE)
ADDRESS = re.compile(r"""(\bhref\s*=\s*)(["'])(.*?)\2""", re.DOTALL | re.IGNORECASE)
PIP_LIMIT_S, ANSWER_LIMIT_S, PIECE = 60, 60, 1 << 16
LONGEST_PAGE, MOST_REDIRECTS = 64 << 20, 6
METADATA = ".metadata"
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class PipSettings:
    """Package indexes, proxy and trust of this computer's pip."""

    indexes: tuple[str, ...]
    proxy: str = ""
    bundle: str = ""
    trusted: tuple[str, ...] = ()

    @classmethod
    def read(cls) -> "PipSettings":
        """Ask pip itself, for its files, its environment, and its own default."""
        found = sorted(CONFIGURED.findall(_pip("config", "list")), key=lambda entry: PRIORITY.index(entry[0]))
        set_to: Mapping[str, str] = {name: ast.literal_eval(text) for _, name, text in found}
        index = set_to.get("index-url") or DEFAULT_INDEX.findall(_pip("install", "--help"))[0]
        without = set_to.get("no-index", "").lower() in ("1", "true", "yes", "on")
        return cls(
            indexes=() if without else (index, *set_to.get("extra-index-url", "").split()),
            proxy=set_to.get("proxy", ""),
            bundle=set_to.get("cert", str(SYSTEM_BUNDLE) if SYSTEM_BUNDLE.is_file() else ""),
            trusted=tuple(set_to.get("trusted-host", "").split()),
        )


@dataclass
class PackageIndex:
    """The index as one, whose links lead back here; only what a page of it links to is fetched, address by address."""

    settings: PipSettings | None = None
    links: dict[str, str] = field(default_factory=dict)
    """The address of every link that was handed on, by its digest."""
    _reading: threading.Lock = field(default_factory=threading.Lock)

    def routes(self) -> list[Route]:
        """Return the paths below which pip finds pages and files."""
        return [Route(PAGES + "/{project}/", self.page), Route(FILES + "/{digest}/{name:path}", self.file)]

    def page(self, request: Request) -> Response:
        """Return the links of one project from every index."""
        project, links, is_known = request.path_params["project"], [], False
        if not PROJECT.fullmatch(project):
            return PlainTextResponse("No project has such a name.", 404)
        try:
            for index in self._settings().indexes:
                with self._get(f"{index.rstrip('/')}/{project}/", Accept="text/html") as answer:
                    if answer.status_code == requests.codes.not_found:
                        continue
                    answer.raise_for_status()
                    is_known = True
                    hand_on = partial(self._handed_on, answer.url)
                    page = b"".join(islice(answer.iter_content(PIECE), 1 + LONGEST_PAGE // PIECE))
                    if len(page) > LONGEST_PAGE:
                        raise requests.RequestException
                    text = page.decode(answer.encoding or "utf-8", errors="replace")
                    links += [ADDRESS.sub(hand_on, link) for link in LINK.findall(text)]
        except (requests.RequestException, OSError, IndexError, subprocess.SubprocessError) as failed:
            return _failed(failed)
        if not is_known:
            return PlainTextResponse("No index of this computer's pip has such a project.", 404)
        return HTMLResponse("<!DOCTYPE html><html><body>\n" + "<br>\n".join(links) + "\n</body></html>\n")

    def file(self, request: Request) -> Response:
        """Return a file to which a page has linked."""
        digest, name = request.path_params["digest"], request.path_params["name"]
        address = self.links.get(digest)
        if address is None:
            return PlainTextResponse("No page of the package index has linked to this.", 403)
        path, mark, query = address.partition("?")
        if name.endswith(METADATA):  # pip asks for a wheel's beside it.
            address = "".join((path.removesuffix(METADATA), METADATA, mark, query))
        try:
            answer = self._get(address, **{"Accept-Encoding": "identity"})
        except requests.RequestException as failed:
            return _failed(failed)
        kept = {name: answer.headers[name] for name in ("Content-Type", "Content-Length") if name in answer.headers}
        body = answer.iter_content(PIECE)
        return StreamingResponse(body, answer.status_code, kept, background=BackgroundTask(answer.close))

    def _handed_on(self, page: str, found: re.Match[str]) -> str:
        target = urlsplit(_without_login(urljoin(page, html.unescape(found[3]))))
        address = target._replace(fragment="").geturl()
        digest = hashlib.sha256(address.encode()).hexdigest()
        self.links[digest] = address
        path = target._replace(
            scheme="", netloc="", query="", path=f"{FILES}/{digest}/{target.path.rpartition('/')[2]}"
        )
        return f'{found[1]}"{html.escape(path.geturl())}"'

    def _settings(self) -> PipSettings:
        with self._reading:
            self.settings = self.settings or PipSettings.read()
            return self.settings

    def _get(self, address: str, **headers: str) -> requests.Response:
        """The answer at the end of an address's redirects, each of which gets its own settings and no other's login."""
        settings = self._settings()
        request_options = {"proxies": {"http": settings.proxy, "https": settings.proxy} if settings.proxy else None}
        for _ in range(MOST_REDIRECTS):
            host, address = _host(address), _without_login(address)
            is_trusted = {host, host.partition(":")[0]} & set(settings.trusted)
            request_options |= {
                "verify": False if is_trusted else settings.bundle or True,
                "auth": self._login(address),
            }
            request_options |= {"headers": headers, "stream": True, "allow_redirects": False}
            answer = requests.get(address, timeout=ANSWER_LIMIT_S, **request_options)
            if not answer.is_redirect:
                return answer
            answer.close()
            address = urljoin(address, answer.headers["Location"])
        raise requests.TooManyRedirects

    def _login(self, address: str) -> Callable[[Any], Any]:
        """The index's login for an address of the index itself, and over the network only where it is enciphered."""
        parts = urlsplit(address)
        is_private = parts.scheme == "https" or parts.hostname in LOOPBACK_NAMES
        own = [each for each in self._settings().indexes if is_private and _origin(each) == _origin(address)]
        login = own and (get_auth_from_url(own[0]) if "@" in own[0] else get_netrc_auth(own[0]))
        # With nothing at all, requests would look for a login in the person's ~/.netrc.
        return HTTPBasicAuth(*login) if login else lambda request: request


def pip_configuration(address: str) -> str:
    """Return the pip.conf of a machine that finds its index at ``address``."""
    return f"[global]\nindex-url = {address}\ntrusted-host = {urlsplit(address).netloc}\n"


def _origin(address: str) -> tuple[str, str]:
    return urlsplit(address).scheme, _host(address).lower()


def _without_login(address: str) -> str:
    return urlsplit(address)._replace(netloc=_host(address)).geturl()


def _host(address: str) -> str:
    """The host and port of an address, without a login."""
    return urlsplit(address).netloc.rpartition("@")[2]


def _failed(error: Exception) -> Response:
    kind = type(error).__name__  # Its text may hold the index's password.
    return PlainTextResponse(f"Asking the package index of this computer's pip failed ({kind}).", 502)


def _pip(*words: str) -> str:
    argv = (sys.executable, "-m", "pip", "--disable-pip-version-check", *words)
    wide = {**os.environ, "COLUMNS": "500"}  # So that no address is broken into two lines.
    return subprocess.run(argv, capture_output=True, text=True, timeout=PIP_LIMIT_S, check=True, env=wide).stdout
