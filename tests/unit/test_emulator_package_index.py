"""The package index that machines see: this computer's own, and the hosts to which it links, and nothing else."""

import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import requests
from staging_server import published
from starlette.applications import Starlette

from emulator.package_index import FILES, PAGES, PackageIndex, PipSettings
from tools.chaos.accounts import Door

WHEEL = b"the content of a wheel"


@contextmanager
def site(pages: dict[str, bytes], login: str = "") -> Iterator[str]:
    """A server of these pages; with a login it answers nobody else."""
    with published(**pages) as publisher:
        publisher.login = f"Basic {base64.b64encode(login.encode()).decode()}" if login else None
        yield publisher.address("").rstrip("/")


@contextmanager
def account(*indexes: str) -> Iterator[Callable[[str], requests.Response]]:
    """What asks an account as its machines do."""
    door = Door(Starlette(routes=PackageIndex(PipSettings(indexes)).routes()))
    yield lambda path: requests.get(f"http://127.0.0.1:{door.port}{path}", timeout=10)
    door.close()


def served(address: str) -> str:
    """The path at which a file of a linked host is found."""
    return f"{FILES}/{address.replace('://', '/')}"


def test_links_of_a_project_lead_back_to_the_account_with_their_hash_and_the_file_comes_whole() -> None:
    with site({"f/one-1.0.whl": WHEEL}) as files:
        link = f'<a href="{files}/f/one-1.0.whl#sha256=12" data-requires-python="&gt;=3.7">one-1.0.whl</a>'
        with site({"simple/one/": f"<html>{link}</html>".encode()}) as index, account(f"{index}/simple/") as ask:
            page = ask(f"{PAGES}/one/").text
            assert f'href="{served(files)}/f/one-1.0.whl#sha256=12"' in page
            assert 'data-requires-python="&gt;=3.7"' in page
            assert ask(f"{served(files)}/f/one-1.0.whl").content == WHEEL


def test_another_host_is_refused_and_so_is_a_file_host_that_no_page_has_named() -> None:
    with site({"secret": b"inside"}) as other, site({}) as index, account(index) as ask:
        answer = ask(f"{served(other)}/secret")
        assert (answer.status_code, "neither the package index" in answer.text) == (403, True)


def test_several_indexes_are_one_and_a_project_that_none_has_is_not_found() -> None:
    with (
        site({"one/": b'<a href="one-1.whl">one-1.whl</a>'}) as first,
        site({"one/": b'<a href="../one-2.whl">one-2.whl</a>'}) as second,
        account(first, second) as ask,
    ):
        page = ask(f"{PAGES}/one/").text
        assert f"{served(first)}/one/one-1.whl" in page and f"{served(second)}/one-2.whl" in page
        assert ask(f"{PAGES}/two/").status_code == 404


def test_a_password_in_the_indexs_address_is_used_here_and_no_machine_sees_it_even_when_nobody_answers() -> None:
    pages = {"simple/one/": b'<a href="/f/one-1.whl">one-1.whl</a>', "f/one-1.whl": WHEEL}
    with site(pages, login="me:hidden") as index, account(f"{index.replace('://', '://me:hidden@')}/simple") as ask:
        assert "hidden" not in ask(f"{PAGES}/one/").text
        assert ask(f"{served(index)}/f/one-1.whl").content == WHEEL
    with account(f"{index.replace('://', '://me:hidden@')}/simple") as ask:  # It does not answer any more.
        answer = ask(f"{PAGES}/one/")
    assert answer.status_code == 502 and "hidden" not in answer.text


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
