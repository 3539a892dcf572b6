"""``python -m emulator`` in this process; what it starts in the background is a process of its own."""

import contextlib
import io
import subprocess
from pathlib import Path

from emulator import cli
from tests.product import free_port


class Commands:
    """The commands with one state folder and one port."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.port = free_port()

    def run(self, command: str, *words: str, port: int | None = None) -> subprocess.CompletedProcess[str]:
        """Run one command."""
        options = ["--state", str(self.state), "--port", str(port or self.port), "--machines", "none"]
        output, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            code = cli.main([command, *options, *words])
        return subprocess.CompletedProcess(command, code, output.getvalue(), errors.getvalue())
