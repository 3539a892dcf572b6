"""What a script imports is tried before the training; only what cannot be imported counts."""

import subprocess
import sys
from pathlib import Path

import pytest

from agent.launch import script_imports


def tried(script: Path, text: str) -> tuple[int, str]:
    script.write_text(text)
    argv = (sys.executable, script_imports.__file__, str(script))
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd="/")
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("from json import no_such_name", "ImportError: cannot import name 'no_such_name' from 'json'"),
        ("import beside", "AttributeError: module 'json' has no attribute 'moved_on'"),
        ("print 'a script for Python 2'", "SyntaxError"),
    ],
)
def test_what_cannot_be_imported_is_said_with_the_interpreter(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "beside.py").write_text("import json\njson.moved_on\n")
    code, said = tried(tmp_path / "train.py", text)
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert code == script_imports.REFUSED
    assert f"imports: train.py cannot be started by Python {version}: {reason}" in said


def test_imports_that_a_start_may_not_reach_are_left_alone(tmp_path: Path) -> None:
    optional = "try:\n    import no_package\nexcept ImportError:\n    pass\ndef later():\n    import no_package\n"
    assert tried(tmp_path / "train.py", optional) == (0, "")


def test_a_program_may_have_a_module_of_our_packages_name_and_nothing_is_written_beside_it(tmp_path):
    (tmp_path / "agent.py").write_text("own = True\n")
    assert tried(tmp_path / "train.py", "from __future__ import division\nfrom agent import own\n") == (0, "")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["agent.py", "train.py"]
