"""A guard that looks every minute on this computer: a timer of the user's systemd, or a marked line of cron where there is none."""

import hashlib
import os
import pwd
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from microcluster.core.files import write_whole
from microcluster.setup.errors import CommandFailed
from microcluster.setup.process import asked

QUICK_S = 30
CRONS_PATH = "/usr/bin:/bin"
EVERY_MINUTE = "* * * * * "
NAMED = "microcluster-guard-"
"""Prefix of a timer's name; up to November 2026 only the stack's name followed."""
MARK = re.compile(rf"# ({NAMED}\S+)$")
HOME = "MICROCLUSTER_HOME"
NO_CRONTAB, SAYS_NO_CRONTAB = 1, re.compile("(crontab: )?no crontab for .+")
"""Exit code and text of `crontab -l` for a person without a crontab; nothing else means that."""
SERVICE = """[Unit]
Description=microcluster: the guard of stack {stack}

[Service]
Type=oneshot
WorkingDirectory={folder}
{environment}
ExecStart=/bin/sh -c 'exec "$$@"' sh {command}
"""
TIMER = """[Unit]
Description=microcluster: look at stack {stack} every minute

[Timer]
OnCalendar=minutely
AccuracySec=5s
Persistent=true

[Install]
WantedBy=timers.target
"""


@dataclass(frozen=True)
class Job:
    """Command that runs every minute: absolute words, in a folder, with variables that are no secrets."""

    stack: str
    words: Sequence[str]
    folder: Path
    variables: Mapping[str, str]
    logs: Path

    @property
    def name(self) -> str:
        """The name of its timer; a stack of the same name in another home or clone has another one."""
        place = os.fsencode(f"{os.path.realpath(self.variables[HOME])}\0{self.folder}")
        return f"{NAMED}{self.stack}-{hashlib.sha256(place).hexdigest()[:8]}"


def timer(job: Job) -> "Systemd | Cron":
    """Return the way in which this computer runs something every minute.

    Raises:
        CommandFailed: it has none.
    """
    if shutil.which("systemctl") and _ran("systemctl", "--user", "show-environment").returncode == 0:
        return Systemd(job)
    if shutil.which("crontab"):
        return Cron(job)
    raise CommandFailed(
        "installing a guard: this computer has neither systemd for its users nor cron, so that nothing can look every minute. "
        "Install cron, or leave `fab watch` running. Then run the same command again."
    )


@dataclass(frozen=True)
class Standing:
    """A timer as it stands on this computer; without a program where it is another stack's or home's, or a comment."""

    name: str
    program: str
    text: str

    @property
    def is_gone(self) -> bool:
        return self.program != "" and not Path(self.program).exists()


class Crontab(NamedTuple):
    """Lines of a person's crontab: those that are not ours, and ours."""

    others: list[str]
    ours: list[Standing]


@dataclass(frozen=True)
class Systemd:
    """A timer of the user's systemd; it goes on after a logout where lingering can be switched on."""

    job: Job

    def install(self) -> str:
        """Write both units, start the timer, and let it outlive the login; return where it stands."""
        job = self.job
        self._folder.mkdir(parents=True, exist_ok=True)
        environment = "\n".join(f"Environment={_in_unit(f'{name}={value}')}" for name, value in job.variables.items())
        # A shell starts it: systemd refuses a program with an apostrophe in its path. `$` is special in a command alone.
        folder, words = (
            str(job.folder).replace("%", "%%"),
            " ".join(_in_unit(word.replace("$", "$$")) for word in job.words),
        )
        service = SERVICE.format(stack=job.stack, folder=folder, environment=environment, command=words)
        write_whole(self._folder / f"{job.name}.service", service, 0o600)
        write_whole(self._folder / f"{job.name}.timer", TIMER.format(stack=job.stack), 0o600)
        _must("systemctl", "--user", "daemon-reload")
        _must("systemctl", "--user", "enable", "--now", f"{job.name}.timer")
        self._erase(each for each in self._ours() if each.name != job.name)
        # By name: without one it asks for a login, which `su`, cron and containers have not.
        lingers = _ran("loginctl", "enable-linger", pwd.getpwuid(os.getuid()).pw_name).returncode == 0
        after = "" if lingers else "; it ends with your login: an administrator runs `loginctl enable-linger` for you"
        return f"systemd's timer {job.name}{after}; `journalctl --user -u {job.name}` shows what it said"

    def remove(self) -> bool:
        """Stop the timer and remove both units; return whether it was there."""
        ours = self._ours()
        self._erase(ours)
        return bool(ours)

    def where(self) -> tuple[str, bool]:
        """Say where it stands, and whether it can run; nothing where it does not stand."""
        return _best("systemd's timer {}", self._ours())

    def prove(self) -> int:
        """Let systemd run the service once; return the exit code."""
        return subprocess.run(("systemctl", "--user", "start", f"{self.job.name}.service"), check=False).returncode

    @property
    def _folder(self) -> Path:
        return Path.home() / ".config" / "systemd" / "user"

    def _ours(self) -> list[Standing]:
        timers = self._folder.glob(f"{NAMED}*.timer")
        return _ours(self.job, (f"{_words_of(path.with_suffix('.service'))} # {path.stem}" for path in timers))

    def _erase(self, timers: Iterable[Standing]) -> None:
        for each in timers:
            _ran("systemctl", "--user", "disable", "--now", f"{each.name}.timer")
            for kind in ("service", "timer"):
                (self._folder / f"{each.name}.{kind}").unlink(missing_ok=True)
        _ran("systemctl", "--user", "daemon-reload")


@dataclass(frozen=True)
class Cron:
    """A line of the user's crontab that ends with our mark; no other line is touched."""

    job: Job

    def install(self) -> str:
        """Write the line in place of an older one; return where it stands."""
        job = self.job
        variables = " ".join(f"{name}={shlex.quote(value)}" for name, value in job.variables.items())
        log = job.logs / f"{job.name}.log"
        # A log that cannot be written keeps no guard from looking: `command` lets the shell go on after a failed `exec`.
        logged = f"mkdir -p {shlex.quote(str(job.logs))}; command exec >>{shlex.quote(str(log))} 2>&1"
        run = f"{logged}; cd {shlex.quote(str(job.folder))} && {variables} {shlex.join(job.words)}"
        others, _ = self._lines()
        self._write([*others, f"{EVERY_MINUTE}{run} # {job.name}".replace("%", "\\%")])
        return f"a line of cron, marked `# {job.name}`; {log} has what it said"

    def remove(self) -> bool:
        """Remove the line; return whether it was there."""
        others, ours = self._lines()
        if ours:
            self._write(others)
        return bool(ours)

    def where(self) -> tuple[str, bool]:
        """Say where it stands, and whether it can run; nothing where it does not stand."""
        return _best("a line of cron, marked `# {}`", self._lines().ours)

    def prove(self) -> int:
        """Run the line of the crontab once, as cron does; return the exit code."""
        line = next((each.text for each in self._lines().ours if each.name == self.job.name), "false")
        command = line.removeprefix(EVERY_MINUTE).replace("\\%", "%")
        person, place = pwd.getpwuid(os.getuid()).pw_name, str(Path.home())
        environment = {"HOME": place, "LOGNAME": person, "SHELL": "/bin/sh", "PATH": CRONS_PATH}
        return subprocess.run(
            ("/bin/sh", "-c", command), cwd=place, env=environment, stdin=subprocess.DEVNULL, check=False
        ).returncode

    def _lines(self) -> Crontab:
        """Return the lines of the crontab that are not ours, and ours.

        Raises:
            CommandFailed: it could not be read, so that it must not be written either.
        """
        done = asked(("crontab", "-l"), QUICK_S, {**os.environ, "LC_ALL": "C"}, errors="surrogateescape")
        has_none = (done.returncode, done.stdout) == (NO_CRONTAB, "") and SAYS_NO_CRONTAB.fullmatch(done.stderr.strip())
        if done.returncode and not has_none:
            raise CommandFailed(
                f"reading the crontab: `crontab -l`: {done.stderr.strip() or done.returncode}. Nothing was written into it. "
                "When it shows your lines, or says that there is no crontab for you, run the same command again."
            )
        lines = done.stdout.splitlines()
        ours = _ours(self.job, lines)
        texts = {each.text for each in ours}
        return Crontab([line for line in lines if line not in texts], ours)

    def _write(self, lines: Sequence[str]) -> None:
        _must("crontab", "-", text="".join(f"{line}\n" for line in lines))


def _ours(job: Job, texts: Iterable[str]) -> list[Standing]:
    """Return the timers of the job's stack and home that are of its clone, in whatever version, or of one that is gone."""
    marked = [Standing(mark[1], _program(job, text), text) for text in texts for mark in MARK.finditer(text)]
    return [each for each in marked if each.name == job.name or each.program == job.words[0] or each.is_gone]


def _program(job: Job, text: str) -> str:
    """Return the program that a timer runs for the job's stack and home; nothing where it does not."""
    with suppress(ValueError, IndexError):
        words = shlex.split(text.replace("\\%", "%"), comments=True)
        at = words.index("guard")
        homes = [os.path.realpath(word.partition(f"{HOME}=")[2]) for word in words if f"{HOME}=" in word]
        if (words[at + 2], homes) == (job.stack, [os.path.realpath(job.variables[HOME])]):
            return words[at - 1].removeprefix("ExecStart=")
    return ""


def _best(title: str, ours: Iterable[Standing]) -> tuple[str, bool]:
    """Say which of them stands, before all one that can run, and whether it can."""
    for each in sorted(ours, key=lambda each: each.is_gone):
        if each.program:
            gone = f", which can no longer run: {each.program} is gone" if each.is_gone else ""
            return f"{title.format(each.name)}{gone}", not each.is_gone
    return "", False


def _words_of(service: Path) -> str:
    """Return what a unit runs and with which variables, in a shell's quotes, which are systemd's here; nothing if it is missing."""
    text = service.read_text(errors="replace").replace("%%", "%").replace("$$", "$") if service.exists() else ""
    return " ".join(line for line in text.splitlines() if line.startswith(("Environment=", "ExecStart=")))


def _in_unit(word: str) -> str:
    """Quote a word for a unit of systemd, where a percent sign begins a specifier."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _must(*words: str, text: str = "") -> None:
    done = _ran(*words, text=text)
    if done.returncode:
        raise CommandFailed(
            f"installing or removing a guard: `{' '.join(words)}`: {done.stderr.strip() or done.returncode}. "
            "Then run the same command again."
        )


def _ran(*words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    # A crontab is written back as it was, also what is no UTF-8.
    return asked(words, QUICK_S, text=text, errors="surrogateescape")
