"""The machines of an emulated site with a queue."""

from pathlib import Path

from emulator.queue.settings import Settings
from emulator.queue.site import Account, Site


def test_a_running_machine_looks_the_same_each_time_and_is_left_alone(tmp_path: Path) -> None:
    settings = Settings(state=tmp_path)
    site = Site(Account(settings))
    assert [site.target(number) for number in site.ids()] == [site.target(number) for number in site.ids()]
