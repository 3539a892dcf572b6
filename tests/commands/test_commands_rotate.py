"""`fab rotate` against the emulated account: new keys at once where nothing is rented, else when the rental has ended."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from microcluster.core import stack_keys
from microcluster.core.home import mark_of
from tests.commands.rented_project import UP, RentedProject, fab
from tests.integration.conftest import AccountEmulator

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountEmulator]:
    emulator = AccountEmulator(tmp_path_factory.mktemp("account"))
    emulator.start()
    yield emulator
    emulator.stop()


@pytest.fixture
def folder(home: Path) -> Path:
    """The stack's keys, as set-up made them."""
    found = home / "keys" / "local"
    (found / "id_ed25519.pub").unlink()
    stack_keys.ensure(found, "local")
    return found


def admin(folder: Path) -> tuple[str, str]:
    return (folder / "id_ed25519").read_text(), (folder / "id_ed25519.pub").read_text()


def test_a_stack_without_a_rental_has_new_keys_at_once(home, folder):
    before, mark = admin(folder), mark_of(folder)
    done = fab(home, "rotate")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not set(admin(folder)) & set(before)
    assert mark_of(folder) == mark and f"Its mark stays {mark}" in done.stdout
    assert not (folder / stack_keys.WAITING).exists()


def test_what_bears_the_mark_keeps_the_key_and_is_named(home, folder, onlooker):
    before = admin(folder)
    guest = onlooker.order("gpu-0", f"local-{mark_of(folder)}.microcluster")
    for _ in range(2):
        done = fab(home, "rotate")
        assert (done.returncode, admin(folder)) == (0, before), done.stderr
        assert f"guest/{guest}" in done.stdout and "make down STACK=local" in done.stdout
        assert (folder / stack_keys.WAITING).exists()
    assert "waited for its first use is replaced" in done.stdout


def test_an_account_that_does_not_answer_leaves_the_key_in_use(home, folder, onlooker, account_emulator):
    onlooker.order("gpu-0", f"local-{mark_of(folder)}.microcluster")
    account_emulator.stop()
    before = admin(folder)
    done = fab(home, "rotate")
    assert (done.returncode, admin(folder)) == (3, before), done.stdout + done.stderr
    assert "nobody knows whether" in done.stderr
    account_emulator.start()


def recorded(project: RentedProject) -> dict[str, str]:
    """Return the ids of what the state holds of the account, by their names."""
    resources = json.loads(project.state_file.read_text())["checkpoint"]["latest"]["resources"]
    return {each["urn"]: each["id"] for each in resources if each["type"].startswith("softlayer:")}


def test_a_rental_keeps_its_key_and_its_end_brings_the_new(clone):
    folder = clone.home.keys / "local"
    up = clone.run(*UP)
    assert up.returncode == 0, up.stdout + up.stderr
    before, mark, rented = admin(folder), mark_of(folder), recorded(clone)
    rank = (folder / "rank_ed25519").read_text()
    rotated = clone.run("fab", "rotate")
    assert rotated.returncode == 0, rotated.stdout + rotated.stderr
    again = clone.run(*UP)
    assert (again.returncode, recorded(clone), admin(folder)) == (0, rented, before), again.stdout + again.stderr
    down = clone.run("pulumi", "destroy", "--yes", "--skip-preview", "-s", "local")
    assert down.returncode == 0, down.stdout + down.stderr
    assert not set(admin(folder)) & set(before)
    assert (folder / "rank_ed25519").read_text() != rank
    assert mark_of(folder) == mark and not (folder / stack_keys.WAITING).exists()
    later = clone.run(*UP)
    assert later.returncode == 0, later.stdout + later.stderr
    assert clone.make("down").returncode == 0
