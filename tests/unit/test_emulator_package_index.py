"""The package index that machines see: this computer's own, and the hosts to which it links, and nothing else."""

import base64
import html
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import requests
from staging_server import published
from starlette.applications import Starlette

from emulator.shared import package_index
from emulator.shared.package_index import FILES, PAGES, PackageIndex, PipSettings
from tests.chaos.accounts import Door

WHEEL = b"the content of a wheel"


@contextmanager
def site(pages: dict[str, bytes], login: str = "") -> Iterator[str]:
    """A server of these pages; with a login it answers nobody else."""
    with published(**pages) as publisher:
        publisher.login = f"Basic {base64.b64encode(login.encode()).decode()}" if login else None
        yield publisher.address("").rstrip("/")


@contextmanager
def account(*indexes: str) -> Iterator[Callable[[str], requests.Response]]:
    """A client that asks an account as its machines do."""
    door = Door(Starlette(routes=PackageIndex(PipSettings(indexes)).routes()))
    yield lambda path: requests.get(f"http://127.0.0.1:{door.port}{path}", timeout=10)
    door.close()


def linked(page: requests.Response) -> list[str]:
    """The paths of the links on a page, without what follows a number sign."""
    return [html.unescape(each).partition("#")[0] for each in re.findall(r'href="([^"]*)"', page.text)]


def test_a_projects_links_lead_to_the_account_with_hash_and_file() -> None:
    with site({"f/one-1.0%2Bcpu.whl": WHEEL}) as files:
        link = f'<a href="{files}/f/one-1.0%2Bcpu.whl#sha256=12" data-requires-python="&gt;=3.7">one-1.0.whl</a>'
        with site({"simple/one/": f"<html>{link}</html>".encode()}) as index, account(f"{index}/simple/") as ask:
            page = ask(f"{PAGES}/one/")
            assert '/one-1.0%2Bcpu.whl#sha256=12"' in page.text and "127.0.0.1" not in page.text
            assert 'data-requires-python="&gt;=3.7"' in page.text
            [path] = linked(page)
            assert ask(path).content == WHEEL


def test_a_wheel_s_description_comes_from_beside_it() -> None:
    pages = {"one/": b'<a href="/f/one-1.whl" data-core-metadata="true">one</a>', "f/one-1.whl.metadata": b"Name: one"}
    with site(pages) as index, account(index) as ask:
        [path] = linked(ask(f"{PAGES}/one/"))
        assert ask(f"{path}.metadata").content == b"Name: one"


def test_nothing_is_fetched_that_no_page_has_linked_to() -> None:
    pages = {"one/": b'<a href="/f/one-1.whl">one</a>', "f/one-1.whl": WHEEL, "secret": b"inside"}
    with site(pages) as index, account(index) as ask:
        [path] = linked(ask(f"{PAGES}/one/"))
        for wanted in (f"{FILES}/{index.replace('://', '/')}/secret", f"{FILES}/0/secret", f"{path}.metadata.metadata"):
            assert b"inside" not in ask(wanted).content
        assert ask(f"{FILES}/{index.replace('://', '/')}/secret").status_code == 403
        assert ask(f"{path.rpartition('/')[0]}/secret").content == WHEEL, "only the digest counts"


def test_several_indexes_are_one_and_an_unknown_project_is_not_found() -> None:
    with (
        site({"one/": b'<a href="one-1.whl">one-1.whl</a>', "one/one-1.whl": b"1"}) as first,
        site({"one/": b'<a href="../one-2.whl">one-2.whl</a>', "one-2.whl": b"2"}) as second,
        account(first, second) as ask,
    ):
        assert [ask(path).content for path in linked(ask(f"{PAGES}/one/"))] == [b"1", b"2"]
        assert ask(f"{PAGES}/two/").status_code == 404


def test_no_machine_sees_the_password_of_an_index_address() -> None:
    pages = {"simple/one/": b'<a href="/f/one-1.whl">one-1.whl</a>', "f/one-1.whl": WHEEL}
    with site(pages, login="me:hidden") as index, account(f"{index.replace('://', '://me:hidden@')}/simple") as ask:
        page = ask(f"{PAGES}/one/")
        assert "hidden" not in page.text
        assert ask(linked(page)[0]).content == WHEEL
    with account(f"{index.replace('://', '://me:hidden@')}/simple") as ask:  # It does not answer any more.
        answer = ask(f"{PAGES}/one/")
    assert answer.status_code == 502 and "hidden" not in answer.text


@contextmanager
def listening_site(answer: Callable[[str], bytes]) -> Iterator[tuple[str, list[str | None]]]:
    """A server that keeps the login of every request, and answers by path; its answers are whole."""
    logins: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            logins.append(self.headers.get("Authorization"))
            self.wfile.write(answer(self.path))

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", logins
        server.shutdown()


FOUND = b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n"


def test_the_login_goes_neither_to_a_linked_host_nor_over_a_redirect(monkeypatch, tmp_path) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password of-netrc\n")
    monkeypatch.setenv("NETRC", str(netrc))
    with listening_site(lambda path: FOUND + WHEEL) as (files, seen_there):

        def answers(path: str) -> bytes:
            moved = f"HTTP/1.0 302 Found\r\nLocation: {files.replace('://', '://you:other@')}/moved\r\n\r\n"
            page = f'<a href="{files}/f/one-1.whl">1</a><a href="/f/one-2.whl">2</a>'
            return moved.encode() if path.startswith("/f/") else FOUND + page.encode()

        with listening_site(answers) as (index, seen_here), account(index.replace("://", "://me:hidden@")) as ask:
            for path in linked(ask(f"{PAGES}/one/")):
                assert ask(path).content == WHEEL
    assert seen_there == [None, None]
    assert len(seen_here) == 2 and None not in seen_here


def test_the_login_is_not_sent_unenciphered_over_the_network() -> None:
    index = PackageIndex(PipSettings(("http://me:hidden@index.test/simple", "https://me:hidden@safe.test/simple")))
    request = requests.Request("GET", "http://index.test/simple/one/").prepare()
    for address in ("http://index.test/simple/one/", "http://safe.test/simple/one/", "https://index.test/simple/one/"):
        assert "Authorization" not in index._login(address)(request).headers
    assert "Authorization" in index._login("https://safe.test/f/one-1.whl")(request).headers


def test_a_page_without_end_is_given_up(monkeypatch) -> None:
    monkeypatch.setattr(package_index, "LONGEST_PAGE", 1 << 20)
    with listening_site(lambda path: FOUND + bytes(3 << 20)) as (index, _), account(index) as ask:
        assert ask(f"{PAGES}/one/").status_code == 502


def test_the_index_is_the_one_that_this_computers_pip_is_set_to(monkeypatch, tmp_path_factory):
    file = tmp_path_factory.mktemp("pip") / "pip.conf"
    file.write_text("[global]\nindex-url = http://one.test/simple\n[install]\nindex-url = http://two.test/simple\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    assert PipSettings.read().indexes == ("http://two.test/simple",)
    monkeypatch.setenv("PIP_INDEX_URL", "http://three.test/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "http://four.test/simple http://five.test/simple")
    assert PipSettings.read().indexes == tuple(f"http://{name}.test/simple" for name in ("three", "four", "five"))
    file.write_text("")
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name)
    [usual] = PipSettings.read().indexes  # pip's own default, which pip itself says.
    assert usual.startswith("https://")
