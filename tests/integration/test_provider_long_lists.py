"""Lists of more than one page, read from an account in which rows go while they are read."""

import threading

import pytest

from providers.softlayer.api import Api
from providers.softlayer.credentials import load
from tests.integration.test_emulator_account import client_of

KEYS = 150


def test_a_key_that_is_removed_between_two_pages_takes_no_other_one_with_it(emulator_with):
    emulator = emulator_with()
    api = Api(load(str(emulator.config_file)), threading.Event(), 0.01)
    made = [_key(api, number) for number in range(KEYS)]
    assert {row["id"] for row in api.read_all("Account", "getSshKeys", mask="mask[id]")} == set(made)
    read, pages = api.read, []

    def removing(*words, **options):
        page = read(*words, **options)
        pages.append(options["offset"])
        if len(pages) == 1:
            read("Security_Ssh_Key", "deleteObject", id=min(made))
        return page

    api.read = removing
    found = [row["id"] for row in api.read_all("Account", "getSshKeys", mask="mask[id]")]
    assert sorted(found) == sorted(made)[1:]
    assert pages.count(0) == 2, "it has to be read anew"


def _key(api: Api, number: int) -> int:
    text = f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{number:043d} neighbour"
    return api.once("Security_Ssh_Key", "createObject", {"label": f"neighbour {number}", "key": text})["id"]


@pytest.mark.parametrize("path", ["xmlrpc", "rest"])
def test_another_users_label_may_hold_any_text(emulator_with, tmp_path, path):
    emulator = emulator_with()
    stranger = client_of(emulator, "rest")
    texts = ["\x00", "\x01", "\x1b[31m", "\x85", "\x9b31m", "\u202e", "\ufffe", "[/data]", "<b>&amp;", "\r\n"]
    for number, text in enumerate(texts):
        key = f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{number:043d} x"
        stranger.call("Security_Ssh_Key", "createObject", {"label": f"{number} {text} end", "key": key, "notes": text})
    emulator.restart()
    config = tmp_path / "client.conf"
    config.write_text(emulator.config_file.read_text().replace("/xmlrpc/", f"/{path}/"))
    found = Api(load(str(config)), threading.Event(), 0.01).read_all(
        "Account", "getSshKeys", mask="mask[id,label,notes]"
    )
    assert sorted(int(row["label"].split()[0]) for row in found) == list(range(len(texts)))
    assert all(row["label"].endswith(" end") for row in found)
