"""Lists of more than one page, read from an account in which rows go while they are read."""

from __future__ import annotations

import threading

from providers.softlayer.calls import Api
from providers.softlayer.credentials import load

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
