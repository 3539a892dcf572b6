"""Which way a machine takes to writable control groups, by what its host mounts: version 1 or version 2."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "images" / "machine" / "control-groups"


@pytest.fixture
def made_writable(tmp_path):
    """Return what runs the script on a folder, with mount and umount that only say what they were told."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("mount", "umount"):
        (programs / name).write_text(f'#!/bin/sh\necho "{name} $*" >> {tmp_path}/words\n')
        (programs / name).chmod(0o755)

    def run(groups: Path) -> list[str]:
        environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
        subprocess.run(["sh", SCRIPT, groups], env=environment, check=True)
        return (tmp_path / "words").read_text().splitlines()

    return run


def test_version_2_is_remounted_its_processes_move_down_and_its_controllers_are_handed_on(tmp_path, made_writable):
    groups = tmp_path / "groups"
    groups.mkdir()
    (groups / "cgroup.controllers").write_text("cpu\n")
    (groups / "cgroup.procs").write_text("41\n")
    assert made_writable(groups) == [f"mount -o remount,rw {groups}"]
    assert (groups / "init" / "cgroup.procs").read_text() == "41\n"
    assert (groups / "cgroup.subtree_control").read_text() == "+cpu\n"


def test_version_1_is_mounted_anew_with_a_folder_for_each_controller(tmp_path, made_writable):
    groups = tmp_path / "groups"
    groups.mkdir()
    words = made_writable(groups)
    assert words[:2] == [f"umount -l {groups}", f"mount -t tmpfs -o mode=755 cgroup {groups}"]
    assert all(line.startswith("mount -t cgroup -o ") for line in words[2:])
