"""The ssh keys of a stack."""

import stat
import subprocess
from pathlib import Path

import pytest

from core import stack_keys as keys
from microcluster.setup.errors import CommandFailed


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_stack_gets_two_pairs_that_only_their_owner_can_read(tmp_path: Path) -> None:
    assert keys.ensure(tmp_path / "local", "local") == ("id_ed25519", "rank_ed25519")
    pairs = {name: 0o600 for name in ("id_ed25519", "rank_ed25519")}
    modes = {path.name: mode(path) for path in (tmp_path / "local").iterdir()}
    assert modes == pairs | {f"{name}.pub": 0o644 for name in pairs}
    assert mode(tmp_path / "local") == 0o700


def test_openssh_reads_the_private_key_as_the_owner_of_the_public_one(tmp_path: Path) -> None:
    keys.ensure(tmp_path, "local")
    derived = subprocess.run(
        ["ssh-keygen", "-y", "-f", tmp_path / "id_ed25519"], capture_output=True, text=True, check=True
    )
    public = (tmp_path / "id_ed25519.pub").read_text()
    assert derived.stdout.split()[:2] == public.split()[:2]
    assert public.endswith(" microcluster-local\n")


def test_keys_that_are_there_are_never_made_again_and_a_lost_public_one_comes_back_from_its_private_one(tmp_path):
    keys.ensure(tmp_path, "local")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    (tmp_path / "id_ed25519.pub").unlink()
    assert keys.ensure(tmp_path, "local") == ()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_broken_key_is_named_and_not_replaced(tmp_path: Path) -> None:
    private = tmp_path / "id_ed25519"
    private.write_text("not a key")
    with pytest.raises(CommandFailed, match=f"Reading the key {private}"):
        keys.ensure(tmp_path, "local")
    assert private.read_text() == "not a key"
