"""Fetching archives from a publisher on the loopback that breaks off, lies and sends elsewhere."""

import hashlib
import json
import random
import time
from types import SimpleNamespace

import pytest
from staging_server import published

from agent.data import archives
from agent.data.archives import TRIES, Fetcher, refuse_scheme
from agent.data.progress import Refused

CONTENT = random.Random(1).randbytes(300_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def publisher():
    with published(a=CONTENT) as one:
        yield one


@pytest.fixture
def fetch(tmp_path, publisher, monkeypatch):
    """Return a function that fetches what the publisher calls "a", as the loopback allows, and never sleeps."""

    def fetched(sleep=lambda seconds: None, **given):
        monkeypatch.setattr(archives, "SCHEME", "http")
        monkeypatch.setattr(archives, "time", SimpleNamespace(sleep=sleep, monotonic=time.monotonic))
        fetcher = Fetcher(str(tmp_path / "archives"), str(tmp_path / "archives.json"))
        archive = {"name": "a.tgz", "address": publisher.address("a"), "most_bytes": 10**6, **given}
        with open(fetcher.fetch(archive), "rb") as file:
            return file.read()

    return fetched


def test_what_was_fetched_is_written_down_and_not_fetched_again(fetch, publisher, tmp_path):
    assert fetch() == fetch() == CONTENT
    assert len(publisher.asked) == 1
    record = {"bytes": len(CONTENT), "sha256": SHA256}
    assert json.loads((tmp_path / "archives.json").read_text()) == {publisher.address("a"): record}
    assert [path.name for path in (tmp_path / "archives").iterdir()] == ["a.tgz"]


def test_a_connection_that_breaks_is_taken_up_where_it_broke(fetch, publisher):
    publisher.cut_after = [100_000, 50_000]
    assert fetch() == CONTENT
    assert [start for _, start in publisher.asked] == [None, "bytes=100000-", "bytes=150000-"]


@pytest.mark.parametrize(
    ("left", "asked"),
    [(CONTENT[:200_000], ["bytes=200000-"]), (b"x" * 200_000, ["bytes=200000-", None])],
    ids=["of this archive", "of another day"],
)
def test_what_a_killed_staging_has_left_is_used_or_fetched_anew(fetch, publisher, tmp_path, left, asked):
    (tmp_path / "archives").mkdir()
    (tmp_path / "archives" / "a.tgz.part").write_bytes(left)
    (tmp_path / "archives" / "a.tgz.part.of").write_text(json.dumps({"validator": '"one"', "bytes": len(CONTENT)}))
    assert fetch(sha256=SHA256) == CONTENT
    assert [start for _, start in publisher.asked] == asked


def test_a_file_that_changed_since_the_connection_broke_is_fetched_from_its_beginning(fetch, publisher):
    publisher.cut_after = [100_000]
    other = bytes(reversed(CONTENT))

    def change(seconds):
        publisher.files["a"], publisher.tag = other, '"two"'

    assert fetch(sleep=change) == other


@pytest.mark.parametrize("habit", [{"tag": None}, {"ranges": False}], ids=["no validator", "no ranges"])
def test_a_publisher_that_cannot_go_on_is_asked_for_the_whole_again(fetch, publisher, habit):
    for name, value in habit.items():
        setattr(publisher, name, value)
    publisher.cut_after = [100_000]
    assert fetch() == CONTENT


def test_a_publisher_that_is_busy_is_asked_again_and_one_that_has_it_not_is_not(fetch, publisher):
    publisher.codes = [503, 429, 500]
    assert fetch() == CONTENT
    publisher.files.clear()
    with pytest.raises(Refused, match="answered 404"):
        fetch(name="b.tgz")
    assert len(publisher.asked) == 5


def test_without_one_more_byte_it_is_given_up_after_some_tries(fetch, publisher):
    publisher.cut_after = [1000] + [0] * 50
    with pytest.raises(Refused, match=r"gave up at 1000 bytes, last: .*\. The next start goes on there"):
        fetch()
    assert len(publisher.asked) == 1 + TRIES


@pytest.mark.parametrize("claimed", [10**7, 1000])
def test_a_publisher_that_lies_about_the_size_gets_nothing_used(fetch, publisher, claimed):
    publisher.claimed = claimed
    with pytest.raises(Refused, match="more than the 1000000|instead of"):
        fetch(sha256=SHA256)


def test_another_archive_at_the_same_address_is_refused_later(fetch, publisher, tmp_path):
    fetch()
    (tmp_path / "archives" / "a.tgz").unlink()
    publisher.files["a"] = CONTENT[:-1] + b"x"
    with pytest.raises(Refused, match=rf"its sha256 is \w+ instead of {SHA256}. Nothing of it is used"):
        fetch()
    assert list((tmp_path / "archives").iterdir()) == []


@pytest.mark.parametrize("pin", [{"sha256": "0" * 64}, {"md5": "0" * 32}, {"bytes": 7}], ids=["sha256", "md5", "bytes"])
def test_what_is_pinned_has_to_be_right_and_wins_over_what_was_seen_first(fetch, pin):
    fetch(sha256=SHA256, md5=hashlib.md5(CONTENT).hexdigest(), bytes=len(CONTENT))  # noqa: S324
    with pytest.raises(Refused, match="instead of"):
        fetch(**pin)


def test_a_redirect_is_followed_only_where_we_would_have_gone_ourselves(fetch, publisher):
    for elsewhere in ("ftp://127.0.0.1/a", "file:///etc/passwd"):
        publisher.redirect = elsewhere
        with pytest.raises(Refused, match="only http is followed|not allowed"):
            fetch()
    publisher.redirect = publisher.address("a")
    with pytest.raises(Refused, match="redirect"):
        fetch()


@pytest.mark.parametrize("address", ["http://a.test/x", "HTTP://a.test/x", "ftp://a.test/x", "file:///x", "//a.test/x"])
def test_only_https_is_asked(address):
    with pytest.raises(Refused, match="only https is followed"):
        refuse_scheme(address)
    refuse_scheme("https://a.test/x")


def test_an_archive_of_this_machine_is_taken_and_checked_like_any_other(tmp_path):
    source = tmp_path / "source.tar"
    source.write_bytes(CONTENT)
    fetcher = Fetcher(str(tmp_path / "archives"), str(tmp_path / "archives.json"))
    archive = {"name": "a.tar", "address": f"file://{source}", "most_bytes": 10**6}
    assert fetcher.fetch(archive).endswith("/archives/a.tar")
    (tmp_path / "archives" / "a.tar").unlink()
    source.write_bytes(b"another")
    with pytest.raises(Refused, match="instead of"):
        fetcher.fetch(archive)
    with pytest.raises(Refused, match="it is not there"):
        fetcher.fetch({**archive, "address": "file:///nowhere", "name": "b.tar"})
