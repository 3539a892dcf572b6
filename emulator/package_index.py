"""The package index that this computer's pip is set to, handed on to the machines of an account; nothing else outside is."""

import ast
import html
import os
import re
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import requests
from requests.utils import get_auth_from_url
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

PAGES, FILES = "/packages/simple", "/packages/files"
SYSTEM_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
CONFIGURED = re.compile(r"^(:env:|global|install)\.([a-z-]+)=('.*'|\".*\")$", re.MULTILINE)
PRIORITY = ("global", "install", ":env:")
PROJECT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
DEFAULT_INDEX = re.compile(r"Base URL of the Python Package Index \(default (\S+?)\)")
LINK = re.compile(r"<a\b.*?</a\s*>", re.DOTALL | re.IGNORECASE)
ADDRESS = re.compile(r"""(\bhref\s*=\s*)(["'])(.*?)\2""", re.DOTALL | re.IGNORECASE)
PIP_LIMIT_S, ANSWER_LIMIT_S, PIECE = 60, 60, 1 << 16


@dataclass(frozen=True)
class PipSettings:
    """What this computer's pip is set to."""

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
    """The index as one, whose links lead back here; files come from the hosts to which its pages link, and from no other."""

    settings: PipSettings | None = None
    linked: set[str] = field(default_factory=set)
    """Scheme and host of every link that was handed on."""
    _reading: threading.Lock = field(default_factory=threading.Lock)

    def routes(self) -> list[Route]:
        """Return the paths below which pip finds pages and files."""
        return [Route(PAGES + "/{project}/", self.page), Route(FILES + "/{scheme}/{host}/{path:path}", self.file)]

    def page(self, request: Request) -> Response:
        """Return the links of one project from every index."""
        project, links, is_known = request.path_params["project"], [], False
        if not PROJECT.fullmatch(project):
            return PlainTextResponse("No project has such a name.", 404)
        try:
            for index in self._settings().indexes:
                answer = self._get(f"{index.rstrip('/')}/{project}/", Accept="text/html")
                if answer.status_code == requests.codes.not_found:
                    continue
                answer.raise_for_status()
                is_known = True
                hand_on = partial(self._handed_on, answer.url)
                links += [ADDRESS.sub(hand_on, link) for link in LINK.findall(answer.text)]
        except (requests.RequestException, OSError, IndexError, subprocess.SubprocessError) as failed:
            return _failed(failed)
        if not is_known:
            return PlainTextResponse("No index of this computer's pip has such a project.", 404)
        return HTMLResponse("<!DOCTYPE html><html><body>\n" + "<br>\n".join(links) + "\n</body></html>\n")

    def file(self, request: Request) -> Response:
        """Return a file to which a page has linked."""
        origin = "{scheme}://{host}".format(**request.path_params)
        if origin not in self.linked:
            return PlainTextResponse(f"{origin} is neither the package index nor a host that it links to.", 403)
        query = f"?{request.url.query}" if request.url.query else ""
        try:
            headers = {"Accept-Encoding": "identity"}
            answer = self._get(f"{origin}/{request.path_params['path']}{query}", stream=True, **headers)
        except requests.RequestException as failed:
            return _failed(failed)
        kept = {name: answer.headers[name] for name in ("Content-Type", "Content-Length") if name in answer.headers}
        body = answer.iter_content(PIECE)
        return StreamingResponse(body, answer.status_code, kept, background=BackgroundTask(answer.close))

    def _handed_on(self, page: str, found: re.Match[str]) -> str:
        target = urlsplit(urljoin(page, html.unescape(found[3])))
        host = _host(target.geturl())
        self.linked.add(f"{target.scheme}://{host}")
        path = target._replace(scheme="", netloc="", path=f"{FILES}/{target.scheme}/{host}{target.path}").geturl()
        return f'{found[1]}"{html.escape(path)}"'

    def _settings(self) -> PipSettings:
        with self._reading:
            self.settings = self.settings or PipSettings.read()
            return self.settings

    def _get(self, address: str, *, stream: bool = False, **headers: str) -> requests.Response:
        settings = self._settings()
        host = _host(address)
        logins = {_host(index): get_auth_from_url(index) for index in settings.indexes if "@" in index}
        is_trusted = {host, host.partition(":")[0]} & set(settings.trusted)
        proxies = {"http": settings.proxy, "https": settings.proxy} if settings.proxy else None
        verify = False if is_trusted else settings.bundle or True
        given = {"auth": logins.get(host), "proxies": proxies, "verify": verify, "stream": stream}
        return requests.get(address, headers=headers, timeout=ANSWER_LIMIT_S, **given)


def pip_configuration(address: str) -> str:
    """Return the pip.conf of a machine that finds its index at ``address``."""
    return f"[global]\nindex-url = {address}\ntrusted-host = {urlsplit(address).netloc}\n"


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
