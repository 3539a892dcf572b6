"""Break each anchor's line in a copy of the project, and demand that its test fails there.

Ends with 1 if a defect was not found.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.planted.anchors import ANCHORS
from tests.product import copy_project

FAILED = 1
"""Exit code of pytest where a test failed; others say that a test was not found or could not be imported."""
TEST_LIMIT_S = 120


def main() -> int:
    """Try the tests on sound code first, then each one on its defect, and print a line for each."""
    loose = [each for anchor in ANCHORS if (each := anchor.looseness())]
    if loose:
        print("\n".join(loose))
        return 1
    found = 0
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        root = Path(folder, "copy")
        copy_project(root)
        if code := ended(root, *(anchor.test for anchor in ANCHORS)):
            print(f"pytest ended with {code} on sound code, so a failure would say nothing. Run those tests first.")
            return 1
        for anchor in ANCHORS:
            file = root / anchor.file
            sound = file.read_text()
            file.write_text(sound.replace(anchor.sound, anchor.defect))
            code = ended(root, anchor.test)
            file.write_text(sound)
            found += code == FAILED
            print(f"{'found' if code == FAILED else f'NOT FOUND (pytest: {code})'}: {anchor.harm}", flush=True)
    print(f"{found} of {len(ANCHORS)} defects found")
    return int(found < len(ANCHORS))


def ended(root: Path, *tests: str) -> int:
    """Run tests on the files below ``root``; return pytest's exit code."""
    options = ["-q", "-x", "-p", "no:cacheprovider", "-o", f"timeout={TEST_LIMIT_S}", f"--basetemp={root.parent}/tmp"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "MICROCLUSTER_HOME": str(root.parent / "home")}
    argv = [sys.executable, "-m", "pytest", *options, *tests]
    return subprocess.run(argv, cwd=root, env=environment, capture_output=True, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
