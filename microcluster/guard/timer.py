"""A guard that looks every minute on this computer: a timer of the user's systemd, or a marked line of cron where there is none."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from core.files import write_whole

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


class TimerError(Exception):
    """A timer cannot be written or removed; a full sentence."""


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


class Timer(Protocol):
    """One way to run something every minute."""

    def install(self, job: Job) -> str:
        """Install it, or bring it up to date; return where it stands."""

    def remove(self, job: Job) -> bool:
        """Remove it; return whether it was there."""

    def where(self, job: Job) -> str | None:
        """Return where it stands; None where it does not."""


def timer() -> Timer:
    """Return the way of this computer.

    Raises:
        TimerError: it has neither.
    """
    if shutil.which("systemctl") and _run("systemctl", "--user", "show-environment").returncode == 0:
        return Systemd(Path.home() / ".config" / "systemd" / "user")
    if shutil.which("crontab"):
        return Cron()
    raise TimerError(
        "installing a guard: this computer has neither systemd for its users nor cron, so that nothing can look every minute. "
        "Install cron, or leave `fab watch` running"
    )


@dataclass(frozen=True)
class Systemd:
    """A timer of the user's systemd; it goes on after a logout where lingering can be switched on."""

    units: Path

    def install(self, job: Job) -> str:
        """Write both units, start the timer, and let it outlive the login."""
        self.units.mkdir(parents=True, exist_ok=True)
        environment = "\n".join(f'Environment="{name}={value}"' for name, value in job.variables.items())
        words = " ".join(f'"{word}"' for word in job.words)
        parts = {"folder": str(job.folder), "environment": environment, "command": words}
        # A percent sign begins a specifier of systemd.
        service = SERVICE.format(stack=job.stack, **{name: text.replace("%", "%%") for name, text in parts.items()})
        write_whole(self.units / f"{job.name}.service", service, 0o600)
        write_whole(self.units / f"{job.name}.timer", TIMER.format(stack=job.stack), 0o600)
        _must("systemctl", "--user", "daemon-reload")
        _must("systemctl", "--user", "enable", "--now", f"{job.name}.timer")
        lingers = _run("loginctl", "enable-linger").returncode == 0
        after = "" if lingers else "; it ends with your login: an administrator runs `loginctl enable-linger` for you"
        return f"systemd's timer {job.name}{after}; `journalctl --user -u {job.name}` shows what it said"

    def remove(self, job: Job) -> bool:
        """Stop the timer and remove both units."""
        was_there = self.where(job) is not None
        _run("systemctl", "--user", "disable", "--now", f"{job.name}.timer")
        for suffix in ("service", "timer"):
            (self.units / f"{job.name}.{suffix}").unlink(missing_ok=True)
        _run("systemctl", "--user", "daemon-reload")
        return was_there

    def where(self, job: Job) -> str | None:
        """Name the timer."""
        return f"systemd's timer {job.name}" if (self.units / f"{job.name}.timer").exists() else None


class Cron:
    """A line of the user's crontab that ends with our mark; no other line is touched."""

    def install(self, job: Job) -> str:
        """Write the line in place of an older one."""
        variables = " ".join(f"{name}='{value}'" for name, value in job.variables.items())
        words = " ".join(f"'{word}'" for word in job.words)
        line = f"* * * * * cd '{job.folder}' && {variables} {words} >>'{job.log}' 2>&1 {_mark(job)}"
        self._write([*self._others(job), line.replace("%", "\\%")])
        return f"a line of cron, marked `{_mark(job)}`; {job.log} has what it said"

    def remove(self, job: Job) -> bool:
        """Remove the line."""
        was_there = self.where(job) is not None
        if was_there:
            self._write(self._others(job))
        return was_there

    def where(self, job: Job) -> str | None:
        """Name the line."""
        return f"a line of cron, marked `{_mark(job)}`" if len(self._lines()) > len(self._others(job)) else None

    def _lines(self) -> list[str]:
        done = _run("crontab", "-l")
        if done.returncode not in (0, NO_CRONTAB):
            raise TimerError(f"reading the crontab: {done.stderr.strip()}")
        return done.stdout.splitlines() if done.returncode == 0 else []

    def _others(self, job: Job) -> list[str]:
        return [line for line in self._lines() if not line.endswith(_mark(job))]

    def _write(self, lines: Sequence[str]) -> None:
        _must("crontab", "-", text="".join(f"{line}\n" for line in lines))


def proved(job: Job) -> int:
    """Run it once with what a timer gives it and nothing of this terminal, in view; return its exit code."""
    environment = {"HOME": str(Path.home()), "PATH": USUAL_PATH, **job.variables}
    return subprocess.run(job.words, cwd=job.folder, env=environment, stdin=subprocess.DEVNULL, check=False).returncode


def _mark(job: Job) -> str:
    return f"# {job.name}"


def _must(*words: str, text: str = "") -> None:
    done = _run(*words, text=text)
    if done.returncode:
        raise TimerError(
            f"installing or removing a guard: `{' '.join(words)}`: {done.stderr.strip() or done.returncode}"
        )


def _run(*words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(words, input=text, capture_output=True, text=True, check=False, timeout=QUICK_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(words, 127, "", str(error))
