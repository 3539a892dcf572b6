"""The machines of an emulated site with a queue."""

from pathlib import Path

from emulator.queue.settings import Settings
from emulator.queue.site import Account, Site


def test_a_machine_that_is_up_is_the_same_at_every_look_so_that_nothing_is_done_to_it_again(tmp_path: Path) -> None:
    settings = Settings(state=tmp_path)
    site = Site(Account(settings))
    assert [site.target(number) for number in site.ids()] == [site.target(number) for number in site.ids()]
