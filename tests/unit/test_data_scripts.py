"""The script that compares data and brings them from another host; hosts are folders of this computer, ssh runs its words here."""

import hashlib
import shutil
import subprocess

import pytest

from microcluster.jobs.rendering import render

SSH = """#!/bin/sh
# Plays the other host: its files lie below {there}.
shift
exec sh -c "$(printf '%s' "$1" | sed "s#{here}#{there}#g")"
"""


@pytest.fixture
def hosts(tmp_path):
    """Return this host's folder and the other one's; this one has the data."""
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here / "data", there):
        folder.mkdir(parents=True)
    (here / "data" / "train").write_text("sentences")
    (here / "data" / "ID").write_text("d1\n")
    seal(here / "data")
    (tmp_path / "ssh").write_text(SSH.format(here=here, there=there))
    return here, there


def seal(folder):
    subprocess.run(["sh", "-c", "sha256sum train ID > SHA256SUMS"], cwd=folder, check=True)


def run(hosts, *words):
    here, _ = hosts
    ssh = f"sh {here.parent / 'ssh'}"
    script = render("bring_data.sh.j2", data=str(here / "data"), id="d1", ssh=ssh)
    return subprocess.run(["sh", "-c", script, "script", *words], capture_output=True, text=True, check=False)


def given(hosts):
    """Let the other host have the data."""
    here, there = hosts
    shutil.copytree(here / "data", there / "data")


def test_data_are_whole_only_with_their_sums_and_their_name(hosts):
    here, _ = hosts
    assert run(hosts, "whole").returncode == 0
    (here / "data" / "train").write_text("SENTENCES")
    assert run(hosts, "whole").returncode == 1
    (here / "data" / "ID").write_text("d2\n")
    seal(here / "data")
    assert run(hosts, "whole").returncode == 1
    for name in ("ID", "train", "SHA256SUMS"):
        (here / "data" / name).unlink()
        assert run(hosts, "whole").returncode == 1
    shutil.rmtree(here / "data")
    assert run(hosts, "whole").returncode == 1


def test_a_launcher_takes_missing_data_from_a_host_with_a_sound_copy(hosts):
    here, there = hosts
    given(hosts)
    shutil.rmtree(here / "data")
    assert run(hosts, "has", "other").returncode == 0
    assert run(hosts, "bring", "other").returncode == 0
    assert run(hosts, "whole").returncode == 0
    (there / "data" / "train").write_text("SENTENCES")
    assert run(hosts, "has", "other").returncode == 1


def test_names_of_any_kind_are_compared_and_brought(hosts):
    here, _ = hosts
    names = ["files/-T", "files/* two  blanks", "files/ first", "files/back\\nslash", "files/ö"]
    (here / "data" / "files").mkdir()
    empty = hashlib.sha256(b"").hexdigest()
    with (here / "data" / "SHA256SUMS").open("a") as sums:
        for name in names:
            (here / "data" / name).touch()
            sums.write(f"{empty}  {name}\n")
    given(hosts)
    shutil.rmtree(here / "data")
    assert run(hosts, "has", "other").returncode == 0
    assert run(hosts, "bring", "other").returncode == 0
    assert run(hosts, "whole").returncode == 0
    assert all((here / "data" / name).is_file() for name in names)


@pytest.mark.parametrize("name", ["ID", "train"])
def test_data_that_cannot_be_read_are_not_called_lacking(hosts, name):
    """A folder in the place of a file plays a disk with errors, on which a file is there and its reading fails."""
    given(hosts)
    for host in hosts:
        (host / "data" / name).unlink()
        (host / "data" / name).mkdir()
    assert run(hosts, "whole").returncode == 2
    assert run(hosts, "has", "other").returncode == 2


def test_an_unreachable_host_gives_sshs_exit_code_not_that_of_missing_data(hosts):
    here, _ = hosts
    given(hosts)
    (here.parent / "ssh").write_text("exit 255\n")
    assert run(hosts, "has", "other").returncode == 255
    assert run(hosts, "bring", "other").returncode not in (0, 1)


def test_a_stream_that_ends_early_between_two_files_has_not_arrived(hosts):
    here, there = hosts
    given(hosts)
    (here.parent / "ssh").write_text(SSH.format(here=here, there=there) + "\n")
    cut = (here.parent / "ssh").read_text().replace("exec sh -c", "sh -c").rstrip() + " | head -c 1024; exit 255\n"
    (here.parent / "ssh").write_text(cut)
    shutil.rmtree(here / "data")
    assert run(hosts, "bring", "other").returncode == 255
