"""A guard that looks every minute: a timer of systemd, or a marked line of cron, installed and removed without touching anything else."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from microcluster.guard import timer
from microcluster.guard.timer import Job
from microcluster.setup.errors import CommandFailed

SYSTEMCTL = """#!/bin/sh
echo "$*" >>"$HOME/systemctl"
[ "$2" != show-environment ] || exit $SYSTEMD
"""
LOGINCTL = """#!/bin/sh
[ "$2" ] || { echo "Could not enable linger: No such device or address" >&2; exit 1; }
"""
CRONTAB = """#!/bin/sh
if [ "$1" = -l ]; then cat "$HOME/crontab" 2>/dev/null || exit 1; else cat >"$HOME/crontab"; fi
"""


@pytest.fixture
def job(tmp_path, monkeypatch):
    """A computer that is asked by the programs in its PATH alone; with systemd."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (("systemctl", SYSTEMCTL), ("crontab", CRONTAB), ("loginctl", LOGINCTL)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SYSTEMD", "0")
    words = ("/clone/.venv/bin/fab", "guard", "--stack", "v100")
    return Job("v100", words, Path("/clone"), {"MICROCLUSTER_HOME": "/home/me/100 %"}, tmp_path / "guard.log")


@pytest.fixture
def without_systemd(job, monkeypatch):
    monkeypatch.setenv("SYSTEMD", "1")


def test_with_systemd_it_is_a_timer_that_catches_up_after_a_sleep_is_started_at_once_and_removed_whole(job, tmp_path):
    chosen = timer.timer(job)
    said = chosen.install()
    assert "systemd's timer microcluster-guard-v100" in said and "ends with your login" not in said
    units = tmp_path / ".config" / "systemd" / "user"
    service = (units / "microcluster-guard-v100.service").read_text()
    assert 'ExecStart="/clone/.venv/bin/fab" "guard" "--stack" "v100"' in service and "Type=oneshot" in service
    assert 'Environment="MICROCLUSTER_HOME=/home/me/100 %%"' in service
    assert "Persistent=true" in (units / "microcluster-guard-v100.timer").read_text()
    assert "enable --now microcluster-guard-v100.timer" in (tmp_path / "systemctl").read_text()
    assert (chosen.remove(), chosen.remove(), chosen.where()) == (True, False, None)
    assert not list(units.iterdir())


@pytest.mark.usefixtures("without_systemd")
def test_without_systemd_it_is_one_marked_line_of_cron_however_often_it_is_installed(job, tmp_path):
    (tmp_path / "crontab").write_text("5 4 * * * backup # microcluster-guard-v100-mine\n")
    chosen = timer.timer(job)
    chosen.install()
    assert "marked `# microcluster-guard-v100`" in chosen.install()
    others, line = (tmp_path / "crontab").read_text().splitlines()
    assert others == "5 4 * * * backup # microcluster-guard-v100-mine"
    assert line.startswith(
        "* * * * * cd '/clone' && MICROCLUSTER_HOME='/home/me/100 \\%' '/clone/.venv/bin/fab' 'guard'"
    )
    assert (chosen.remove(), chosen.remove()) == (True, False)
    assert (tmp_path / "crontab").read_text() == "5 4 * * * backup # microcluster-guard-v100-mine\n"


@pytest.mark.usefixtures("without_systemd")
def test_other_lines_of_a_crontab_stay_as_they_are_byte_by_byte(job, tmp_path):
    timer.timer(job).install()  # A person without a crontab gets one.
    assert len((tmp_path / "crontab").read_text().splitlines()) == 1
    mine = b"5 4 * * * cd /home/andr\xe9 && backup\n"
    (tmp_path / "crontab").write_bytes(mine)
    chosen = timer.timer(job)
    chosen.install()
    assert (tmp_path / "crontab").read_bytes().startswith(mine)
    chosen.remove()
    assert (tmp_path / "crontab").read_bytes() == mine


def test_it_is_proved_with_what_a_timer_gives_it_and_nothing_of_the_terminal(job, tmp_path, monkeypatch):
    monkeypatch.setenv("SSH_AUTH_SOCK", "/agent")
    printed = tmp_path / "printed"
    script = f'echo "$MICROCLUSTER_HOME $HOME $SSH_AUTH_SOCK" >{printed}; exit 3'
    assert timer.proved(replace(job, words=("/bin/sh", "-c", script), folder=tmp_path)) == 3
    assert printed.read_text() == f"/home/me/100 % {tmp_path} \n"


@pytest.mark.usefixtures("without_systemd")
def test_a_computer_with_neither_is_told_what_to_do(job, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(CommandFailed, match="neither systemd for its users nor cron"):
        timer.timer(job)
