"""Hostile stack files through the real commands: refused with the key's path, no traceback, and nothing of them runs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands.rented_project import ROOT, RentedProject, install
from tests.integration.conftest import AccountEmulator

CANARY = Path("/tmp/microcluster-injected-by-command")
PREVIEW = ("pulumi", "preview", "--non-interactive", "-s", "local")
DATACENTER, FLAVOR = "datacenter: lon06", "flavor: AC1_16X120X100"
KIND = "kind: openseq2seq"


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


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (DATACENTER, f'datacenter: "$(touch {CANARY})"', "cluster/datacenter"),
        ("config:\n", "config:\n  softlayer:apiKey: c0ffee-a-key\n", "softlayer:apiKey"),
    ],
    ids=["shell", "key"],
)
def test_a_plain_preview_refuses_it(project: RentedProject, old: str, new: str, expected: str) -> None:
    edit(project, old, new)
    check(project.run(*PREVIEW), expected)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (FLAVOR, f"flavor: !!python/object/apply:os.system ['touch {CANARY}']", "config/microcluster:cluster/flavor"),
        (KIND, f"{KIND}\n    maxSteps: {'9' * 40}", "job/maxSteps"),
    ],
    ids=["tag", "huge"],
)
def test_make_preview_refuses_it_before_anything_is_prepared(
    project: RentedProject, old: str, new: str, expected: str
) -> None:
    edit(project, old, new)
    done = project.make("preview")
    check(done, expected)
    assert (done.returncode, done.stdout) == (2, "")
