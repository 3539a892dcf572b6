"""Hostile stack files through the real commands: refused with the key's path, no traceback, and nothing of them runs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands.rented_project import ROOT, RentedProject, install
from tests.integration.conftest import AccountEmulator

CANARY = Path("/tmp/microcluster-injected-by-command")
PREVIEW = ("pulumi", "preview", "--non-interactive", "-s", "local")
FLAVOR = "flavor: AC1_16X120X100"


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> RentedProject:
    folder = tmp_path_factory.mktemp("clone")
    made = install(folder, AccountEmulator(folder / "account"))
    (made.folder / "__main__.py").write_bytes((ROOT / "__main__.py").read_bytes())
    return made


@pytest.fixture
def project(clone: RentedProject) -> Iterator[RentedProject]:
    """The clone with its own stack file again afterwards."""
    path = clone.folder / "stacks" / "Pulumi.local.yaml"
    whole = path.read_bytes()
    yield clone
    path.write_bytes(whole)


def edit(project: RentedProject, old: str, new: str) -> None:
    path = project.folder / "stacks" / "Pulumi.local.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def check(done, expected: str) -> None:
    said = done.stdout + done.stderr
    assert done.returncode not in (0, None)
    assert expected in said, said
    assert "Traceback" not in said and "c0ffee" not in said
    assert not CANARY.exists()


def test_a_plain_preview_refuses_it(project: RentedProject) -> None:
    edit(project, "config:\n", "config:\n  softlayer:apiKey: c0ffee-a-key\n")
    check(project.run(*PREVIEW), "softlayer:apiKey")


def test_make_preview_refuses_it_before_anything_is_prepared(project: RentedProject) -> None:
    edit(project, FLAVOR, f"flavor: !!python/object/apply:os.system ['touch {CANARY}']")
    done = project.make("preview")
    check(done, "config/microcluster:cluster/flavor")
    assert (done.returncode, done.stdout) == (2, "")
