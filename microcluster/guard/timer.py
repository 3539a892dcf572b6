"""A guard that looks every minute on this computer: a timer of the user's systemd, or a marked line of cron where there is none."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.files import write_whole
from microcluster.setup.errors import CommandFailed
from microcluster.setup.process import asked

QUICK_S = 30
USUAL_PATH = "/usr/bin:/bin"
"""Cron's; that of systemd has more."""
NO_CRONTAB = 1
"""The exit code of `crontab -l` for a person who has none."""
SERVICE = """[Unit]
Description=microcluster: the guard of stack {stack}

[Service]
Type=oneshot
WorkingDirectory={folder}
{environment}
ExecStart={command}
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
    """What runs every minute: absolute words, in a folder, with variables that are no secrets."""

    stack: str
    words: Sequence[str]
    folder: Path
    variables: Mapping[str, str]
    log: Path

    @property
    def name(self) -> str:
        return f"microcluster-guard-{self.stack}"


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
class Systemd:
    """A timer of the user's systemd; it goes on after a logout where lingering can be switched on."""

    job: Job

    def install(self) -> str:
        """Write both units, start the timer, and let it outlive the login; return where it stands."""
        job = self.job
        self._unit("timer").parent.mkdir(parents=True, exist_ok=True)
        environment = "\n".join(f'Environment="{name}={value}"' for name, value in job.variables.items())
        words = " ".join(f'"{word}"' for word in job.words)
        parts = {"folder": str(job.folder), "environment": environment, "command": words}
        # A percent sign begins a specifier of systemd.
        service = SERVICE.format(stack=job.stack, **{name: text.replace("%", "%%") for name, text in parts.items()})
        write_whole(self._unit("service"), service, 0o600)
        write_whole(self._unit("timer"), TIMER.format(stack=job.stack), 0o600)
        _must("systemctl", "--user", "daemon-reload")
        _must("systemctl", "--user", "enable", "--now", f"{job.name}.timer")
        # By name: without one it asks for a login, which `su`, cron and containers have not.
        lingers = _ran("loginctl", "enable-linger", pwd.getpwuid(os.getuid()).pw_name).returncode == 0
        after = "" if lingers else "; it ends with your login: an administrator runs `loginctl enable-linger` for you"
        return f"systemd's timer {job.name}{after}; `journalctl --user -u {job.name}` shows what it said"

    def remove(self) -> bool:
        """Stop the timer and remove both units; return whether it was there."""
        was_there = self.where() is not None
        _ran("systemctl", "--user", "disable", "--now", f"{self.job.name}.timer")
        for kind in ("service", "timer"):
            self._unit(kind).unlink(missing_ok=True)
        _ran("systemctl", "--user", "daemon-reload")
        return was_there

    def where(self) -> str | None:
        """Return where it stands; None where it does not."""
        return f"systemd's timer {self.job.name}" if self._unit("timer").exists() else None

    def _unit(self, kind: str) -> Path:
        return Path.home() / ".config" / "systemd" / "user" / f"{self.job.name}.{kind}"


@dataclass(frozen=True)
class Cron:
    """A line of the user's crontab that ends with our mark; no other line is touched."""

    job: Job

    def install(self) -> str:
        """Write the line in place of an older one; return where it stands."""
        job = self.job
        variables = " ".join(f"{name}='{value}'" for name, value in job.variables.items())
        words = " ".join(f"'{word}'" for word in job.words)
        line = f"* * * * * cd '{job.folder}' && {variables} {words} >>'{job.log}' 2>&1 {self._mark}"
        _, others = self._lines()
        self._write([*others, line.replace("%", "\\%")])
        return f"a line of cron, marked `{self._mark}`; {job.log} has what it said"

    def remove(self) -> bool:
        """Remove the line; return whether it was there."""
        lines, others = self._lines()
        if lines != others:
            self._write(others)
        return lines != others

    def where(self) -> str | None:
        """Return where it stands; None where it does not."""
        lines, others = self._lines()
        return f"a line of cron, marked `{self._mark}`" if lines != others else None

    @property
    def _mark(self) -> str:
        return f"# {self.job.name}"

    def _lines(self) -> tuple[list[str], list[str]]:
        """Return all lines, and those that are not ours."""
        done = _ran("crontab", "-l")
        if done.returncode not in (0, NO_CRONTAB):
            raise CommandFailed(f"reading the crontab: {done.stderr.strip()}. Then run the same command again.")
        lines = done.stdout.splitlines()
        return lines, [line for line in lines if not line.endswith(self._mark)]

    def _write(self, lines: Sequence[str]) -> None:
        _must("crontab", "-", text="".join(f"{line}\n" for line in lines))


def proved(job: Job) -> int:
    """Run it once with what a timer gives it and nothing of this terminal, in view; return its exit code."""
    environment = {"HOME": str(Path.home()), "PATH": USUAL_PATH, **job.variables}
    return subprocess.run(job.words, cwd=job.folder, env=environment, stdin=subprocess.DEVNULL, check=False).returncode


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
