"""What a script imports is looked for before the training, and nothing of it is executed."""

import subprocess
import sys
from pathlib import Path

import pytest

from agent.launch import script_imports

VERSION = "{}.{}".format(*sys.version_info[:2])


def tried(script: Path, text: str) -> tuple[int, str]:
    script.write_text(text)
    argv = (sys.executable, script_imports.__file__, str(script))
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd="/")
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import no_such_package.part, json\nfrom other import one", "does not find no_such_package, other"),
        (
            "print 'a script for Python 2'",
            "cannot read it (Missing parentheses in call to 'print'. Did you mean print(...)?)",
        ),
    ],
)
def test_what_is_not_found_is_said_with_the_interpreter(tmp_path: Path, text: str, said: str) -> None:
    assert tried(tmp_path / "train.py", text) == (0, f"imports: Python {VERSION} {said} of train.py\n")


def test_nothing_of_the_program_is_executed(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w')\n")
    own_way = "import sys\nsys.path.append('lib')\nimport beside\nfrom beside import nothing\nfrom . import sibling\n"
    assert tried(tmp_path / "train.py", own_way) == (0, "")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["beside.py", "train.py"]


def test_imports_that_a_start_may_not_reach_are_left_alone(tmp_path: Path) -> None:
    optional = "try:\n    import no_package\nexcept ImportError:\n    pass\ndef later():\n    import no_package\n"
    assert tried(tmp_path / "train.py", optional) == (0, "")


def test_a_program_may_have_a_module_of_our_packages_name_and_nothing_is_written_beside_it(tmp_path):
    (tmp_path / "agent.py").write_text("own = True\n")
    assert tried(tmp_path / "train.py", "from __future__ import division\nfrom agent import own\n") == (0, "")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["agent.py", "train.py"]
