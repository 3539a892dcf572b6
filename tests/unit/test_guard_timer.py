"""A guard that looks every minute: a timer of systemd, or a marked line of cron, installed and removed without touching anything else."""

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from microcluster.core.home import Home
from microcluster.guard import timer
from microcluster.guard.installed import timer_job
from microcluster.guard.timer import Job
from microcluster.setup.errors import CommandFailed

SYSTEMCTL = r"""#!PYTHON
import os, pathlib, re, subprocess, sys
home, (whose, command) = pathlib.Path(os.environ["HOME"]), sys.argv[1:3]
assert whose == "--user", "a person may not change the timers of the whole computer"
with open(home / "systemctl", "a") as asked:
    asked.write(" ".join(sys.argv[1:]) + "\n")
if command == "show-environment":
    sys.exit(int(os.environ["SYSTEMD"]))

def plain(text):
    assert not re.search("(?<!%)%(%%)*(?!%)", text), f"{text} has a specifier"
    return text.replace("%%", "%")

def words(text):
    assert not re.search(r'\\[^\\"]', text.replace(r"\\", "")), f"{text} has an escape that is none of ours"
    split = re.findall(r'"(?:\\.|[^"\\])*"|\'[^\']*\'|\S+', text)
    return [plain(re.sub(r'\\([\\"])', r"\1", each[1:-1] if each[0] in "\"'" else each)) for each in split]

if command == "start":
    lines = [line.partition("=") for line in (home / ".config/systemd/user" / sys.argv[3]).read_text().splitlines()]
    environment = dict(words(value)[0].split("=", 1) for key, _, value in lines if key == "Environment")
    [folder] = [plain(value) for key, _, value in lines if key == "WorkingDirectory"]
    [argv] = [words(value) for key, _, value in lines if key == "ExecStart"]
    assert not set(argv[0]) & set("\"'\\\\"), "Executable name contains special characters"
    argv = argv[:1] + [re.sub(r"\$(\$|\w*)", lambda m: "$" if m[1] == "$" else "", word) for word in argv[1:]]
    done = subprocess.run(argv, cwd=folder, env={"HOME": str(home), "PATH": "/usr/bin:/bin", **environment})
    sys.exit(1 if done.returncode else 0)
""".replace("PYTHON", sys.executable)
"""Keeps what it was asked, and starts a service by systemd's rules of quoting (systemd.syntax, systemd.service)."""
LOGINCTL = """#!/bin/sh
[ "$2" ] || { echo "Could not enable linger: No such device or address" >&2; exit 1; }
"""
CRONTAB = """#!/bin/sh
[ "$1" = -l ] || exec cat >"$HOME/crontab"
[ -z "$REFUSED" ] || { echo "$REFUSED" >&2; exit 1; }
[ -e "$HOME/crontab" ] || { [ "$LC_ALL" = C ] && echo "no crontab for me" || echo "pas de crontab pour me"; exit 1; } >&2
cat "$HOME/crontab"
"""
FAB = """#!/bin/sh
printf "%s|%s|%s|%s|%s\\n" "$MICROCLUSTER_HOME" "$PWD" "$*" "$HOME" "$SSH_AUTH_SOCK" >"$HOME/looked"
echo a word for the log
exit 3
"""
OLD_LINE = (
    "* * * * * cd '{0}' && MICROCLUSTER_HOME='{1}' MICROCLUSTER_CACHE='{1}/cache' MICROCLUSTER_GUARD='timer' "
    "'{0}/.venv/bin/fab' 'guard' '--stack' 'v100' >>'{1}/cache/logs/guard-v100.log' 2>&1 # microcluster-guard-v100"
)
OLD_SERVICE = """[Service]
Type=oneshot
WorkingDirectory={0}
Environment="MICROCLUSTER_HOME={1}"
Environment="MICROCLUSTER_GUARD=timer"
ExecStart="{0}/.venv/bin/fab" "guard" "--stack" "v100"
"""
SIGNS = 'o\'brien 50% "a" $HOME `b` \\n #c'


@dataclass(frozen=True)
class Computer:
    """A computer that is asked by the programs in its PATH alone."""

    person: Path

    def job(self, clone: str = "clone", home: str = "home", stack: str = "v100") -> Job:
        """Return the guard of a clone, which is made, with a home."""
        program = self.person / clone / ".venv" / "bin" / "fab"
        if not program.exists():
            program.parent.mkdir(parents=True)
            program.write_text(FAB)
            program.chmod(0o755)
        place = self.person / home
        words = (str(program), "guard", "--stack", stack)
        variables = {"MICROCLUSTER_HOME": str(place), "MICROCLUSTER_GUARD": "timer"}
        return Job(stack, words, self.person / clone, variables, place / "cache" / "logs")

    @property
    def lines(self) -> list[str]:
        return (self.person / "crontab").read_text().splitlines()

    @property
    def units(self) -> Path:
        return self.person / ".config" / "systemd" / "user"

    @property
    def names(self) -> list[str]:
        """The timers of the kind that this computer has."""
        if os.environ["SYSTEMD"] == "0":
            return [path.stem for path in self.units.glob("*.timer")]
        return [line.rpartition("# ")[2] for line in self.lines]

    def old_timer(self, clone: str = "clone", home: str = "home") -> None:
        """Leave what the version before wrote, for cron and for systemd."""
        places = self.job(clone, home).folder, self.person / home
        (self.person / "crontab").write_text(OLD_LINE.format(*places) + "\n")
        self.units.mkdir(parents=True)
        (self.units / "microcluster-guard-v100.service").write_text(OLD_SERVICE.format(*places))
        (self.units / "microcluster-guard-v100.timer").write_text("[Timer]\n")


@pytest.fixture
def computer(tmp_path, monkeypatch):
    """A computer with cron alone."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (("systemctl", SYSTEMCTL), ("crontab", CRONTAB), ("loginctl", LOGINCTL)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SSH_AUTH_SOCK", "/agent")
    monkeypatch.setenv("SYSTEMD", "1")
    return Computer(tmp_path)


@pytest.fixture(params=["cron", "systemd"])
def either(request, computer, monkeypatch):
    """A computer with cron, and one with systemd."""
    monkeypatch.setenv("SYSTEMD", "0" if request.param == "systemd" else "1")
    return computer


def test_with_systemd_it_is_a_timer_that_catches_up_after_a_sleep_and_is_removed_whole(computer, monkeypatch):
    monkeypatch.setenv("SYSTEMD", "0")
    job = computer.job()
    chosen = timer.timer(job)
    said = chosen.install()
    assert f"systemd's timer {job.name}" in said and "ends with your login" not in said
    assert "Type=oneshot" in (computer.units / f"{job.name}.service").read_text()
    assert "Persistent=true" in (computer.units / f"{job.name}.timer").read_text()
    assert {each.stat().st_mode & 0o777 for each in computer.units.iterdir()} == {0o600}
    assert f"enable --now {job.name}.timer" in (computer.person / "systemctl").read_text()
    assert (chosen.remove(), chosen.remove(), chosen.where()) == (True, False, ("", False))
    assert f"disable --now {job.name}.timer" in (computer.person / "systemctl").read_text()
    assert not list(computer.units.iterdir())


def test_without_systemd_it_is_one_marked_line_of_cron_however_often_it_is_installed(computer):
    others = ["5 4 * * * backup # microcluster-guard-v100-mine", "#* * * * * fab guard # microcluster-guard-v100"]
    (computer.person / "crontab").write_text("\n".join(others) + "\n")
    job = computer.job()
    chosen = timer.timer(job)
    chosen.install()
    assert f"marked `# {job.name}`" in chosen.install()
    assert computer.lines[:-1] == others and computer.lines[-1].endswith(f"# {job.name}")
    assert (chosen.remove(), chosen.remove(), computer.lines) == (True, False, others)


def test_other_lines_of_a_crontab_stay_as_they_are_byte_by_byte(computer):
    chosen = timer.timer(computer.job())
    chosen.install()  # A person without a crontab gets one.
    assert len(computer.lines) == 1
    mine = b"5 4 * * * cd /home/andr\xe9 && backup\n"
    (computer.person / "crontab").write_bytes(mine)
    chosen.install()
    assert (computer.person / "crontab").read_bytes().startswith(mine)
    chosen.remove()
    assert (computer.person / "crontab").read_bytes() == mine


@pytest.mark.parametrize(
    "reason",
    [
        "crontab: can't open your crontab: Permission denied",
        "no crontab for me\nlooking up the directory: I/O error",
        " ",
    ],
)
@pytest.mark.parametrize("act", ["install", "remove", "where"])
def test_a_crontab_that_was_not_read_is_not_written(computer, monkeypatch, reason, act):
    mine = "5 4 * * * backup\n"
    (computer.person / "crontab").write_text(mine)
    monkeypatch.setenv("REFUSED", reason)
    with pytest.raises(CommandFailed, match="Nothing was written into it"):
        getattr(timer.timer(computer.job()), act)()
    assert (computer.person / "crontab").read_text() == mine


def test_no_crontab_is_known_in_every_language(computer, monkeypatch):
    monkeypatch.setenv("LC_ALL", "fr_FR.UTF-8")
    timer.timer(computer.job()).install()
    assert len(computer.lines) == 1


@pytest.mark.parametrize("signs", ["plain", SIGNS])
def test_the_very_line_is_proved_with_any_path_and_nothing_of_the_terminal(either, signs):
    job = either.job(f"clone {signs}", f"home {signs}")
    chosen = timer.timer(job)
    chosen.install()
    assert chosen.prove() != 0
    assert "%" not in "".join(either.lines if type(chosen) is timer.Cron else []).replace(
        "\\%", ""
    )  # It ends cron's command.
    looked = (either.person / "looked").read_text()
    assert looked == f"{job.variables['MICROCLUSTER_HOME']}|{job.folder}|guard --stack v100|{either.person}|\n"
    assert chosen.where()[1] and chosen.remove() and not chosen.where()[0]


def test_cron_looks_when_its_log_was_removed_and_when_it_cannot_be_written(computer):
    job = computer.job()
    chosen = timer.timer(job)
    chosen.install()
    assert chosen.prove() == 3
    log = job.logs / f"{job.name}.log"
    assert log.read_text() == "a word for the log\n"
    log.unlink()
    log.mkdir()
    assert chosen.prove() == 3


def test_a_line_that_does_not_run_is_not_proved(computer):
    chosen = timer.timer(computer.job())
    chosen.install()
    (computer.person / "crontab").write_text(computer.lines[0].replace(" && ", " && ) ") + "\n")
    assert chosen.prove() != 0
    (computer.person / "crontab").unlink()
    assert chosen.prove() != 0
    assert not (computer.person / "looked").exists()


@pytest.mark.parametrize("other", [{"home": "other"}, {"clone": "other"}, {"stack": "v100-2"}])
def test_a_stack_of_the_same_name_elsewhere_has_its_own_timer(either, other):
    first, second = timer.timer(either.job()), timer.timer(either.job(**other))
    first.install()
    assert second.where() == ("", False)
    second.install()
    assert first.where()[1] and first.where() != second.where()
    assert second.remove()
    assert first.where()[1] and not second.where()[0]


def test_a_moved_clone_is_told_that_its_timer_can_no_longer_run(either):
    left = either.job("left")
    timer.timer(left).install()
    shutil.rmtree(either.person / "left")
    here = timer.timer(either.job("here"))
    where, can_run = here.where()
    assert not can_run and f"{left.name}" in where and f"can no longer run: {left.words[0]} is gone" in where
    assert timer.timer(either.job("here", home="other")).where() == ("", False)
    here.install()
    assert here.where()[1] and here.remove() and not here.where()[0]


def test_a_timer_that_can_run_is_named_before_one_that_cannot(either):
    timer.timer(either.job("a")).install()
    here = timer.timer(either.job("b"))
    here.install()
    shutil.rmtree(either.person / "a")
    assert here.where()[1]


def test_a_line_that_a_person_made_a_comment_holds_nothing(computer):
    chosen = timer.timer(computer.job())
    chosen.install()
    (computer.person / "crontab").write_text(f"# {computer.lines[0]}\n")
    assert chosen.where() == ("", False)
    chosen.install()
    assert chosen.where()[1] and len(computer.lines) == 1


@pytest.mark.parametrize("act", ["install", "remove"])
def test_the_timer_of_an_older_version_is_replaced_and_removed(either, act):
    either.old_timer()
    job = either.job()
    chosen = timer.timer(job)
    assert chosen.where()[1] and "microcluster-guard-v100" in chosen.where()[0]
    getattr(chosen, act)()
    assert (job.name in chosen.where()[0]) == (act == "install")
    assert "microcluster-guard-v100" not in either.names


@pytest.mark.parametrize("other", [{"home": "other"}, {"clone": "other"}])
def test_the_timer_of_an_older_version_is_left_to_another_home_or_clone(either, other):
    either.old_timer(**other)
    chosen = timer.timer(either.job())
    chosen.install()
    chosen.remove()
    assert timer.timer(either.job(**other)).where()[1]


def test_a_computer_with_neither_is_told_what_to_do(computer, monkeypatch):
    monkeypatch.setenv("PATH", str(computer.person / "empty"))
    with pytest.raises(CommandFailed, match="neither systemd for its users nor cron"):
        timer.timer(computer.job())


def test_a_timer_looks_in_the_home_and_cache_of_its_person(tmp_path):
    job = timer_job("local", Home(tmp_path / "home", tmp_path / "cache"))
    assert job.variables["MICROCLUSTER_HOME"] == str(tmp_path / "home")
    assert job.variables["MICROCLUSTER_CACHE"] == str(tmp_path / "cache")
