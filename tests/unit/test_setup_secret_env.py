"""The account's variables do not reach what fab starts, nor can they be read of fab itself while it runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOOK = """
import os, subprocess
from pathlib import Path
from microcluster.setup import secret_env
secret_env.withhold()
print(secret_env.kept().get("SL_API_KEY") == os.environ["HINT"] + "-key")
own = Path("/proc/self/environ").read_bytes()
child = subprocess.run(["cat", "/proc/self/environ"], capture_output=True, check=True).stdout
print(b"c0ffee-key" in own, b"c0ffee-key" in child, b"SL_API_KEY=" in child, b"HINT=c0ffee" in child)
"""


@pytest.mark.parametrize("name", ["SL_API_KEY", "NGC_API_KEY", "SL_USERNAME", "BLUEMIX_API_KEY"])
def test_what_is_withheld_is_kept_in_memory_and_nowhere_else(name: str) -> None:
    environment = {**os.environ, "HINT": "c0ffee", "SL_API_KEY": "c0ffee-key", name: "c0ffee-key"}
    argv = [sys.executable, "-c", LOOK]
    done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["True", "False False False True"]


def test_fab_withholds_before_it_imports_or_starts_anything_else() -> None:
    lines = (ROOT / "fabfile.py").read_text().splitlines()
    code = [line for line in lines if line and not line.startswith(('"""', "#"))]
    assert code[:2] == ["from microcluster.setup import secret_env", code[1]] and code[1].startswith(
        "secret_env.withhold()"
    )


def test_what_fab_starts_does_not_see_the_key(tmp_path: Path) -> None:
    spy = tmp_path / "pulumi"
    spy.write_text(f"#!/bin/sh\ncat /proc/self/environ > {tmp_path}/seen\necho '{{}}'\n")
    spy.chmod(0o755)
    script = (
        "import sys, fabfile; from microcluster.lifecycle import pulumi; pulumi.PULUMI = sys.argv[1]; "
        "fabfile.commands(['status'])['status'].body(None)"
    )
    environment = {**os.environ, "SL_API_KEY": "c0ffee-key", "NGC_API_KEY": "c0ffee-key"}
    argv = [sys.executable, "-c", script, str(spy)]
    subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, check=False)
    seen = (tmp_path / "seen").read_bytes()
    assert b"PATH=" in seen and b"c0ffee" not in seen
