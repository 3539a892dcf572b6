"""The script that adds a vendor's packages to a machine's sources takes the one key that is known, and no other one."""

import shutil
import subprocess
from pathlib import Path

import pytest

from microcluster.jobs.rendering import render
from microcluster.remote.gpu import KEY_REFUSED

pytestmark = pytest.mark.skipif(not shutil.which("gpg"), reason="there is no gpg here")
VENDOR, OTHER = "D993B1B5B2E0F3D962F4DFB5DF01E8F7FEF6F4AE", "DCCD4390664C53CD5E7208AF4AB17033786193DE"
KEYS = {
    VENDOR: """-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEawnFDBYJKwYBBAHaRw8BAQdAZRWSqSUf84l2M1PeQIrISKNctBzSoGfoIw4R
EY4ODMm0G3ZlbmRvciA8dmVuZG9yQGV4YW1wbGUuY29tPoiQBBMWCAA4FiEE2ZOx
tbLg89li9N+13wHo9/729K4FAmsJxQwCGwMFCwkIBwIGFQoJCAsCBBYCAwECHgEC
F4AACgkQ3wHo9/729K7owAD6AtzdtoUuvUZiCI2D7Cq6OwfzW9gFbDd7UNrUb4Bv
BK0BAPIgs3bP+4vKJ838JWUOPzNea2lSMea8FyAwnouN2nEC
=q/XW
-----END PGP PUBLIC KEY BLOCK-----
""",
    OTHER: """-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEawnFDBYJKwYBBAHaRw8BAQdAfoKrUzAKO/Tw69/xgW6W52KXJ29T9PD+h0W/
h91Xm1S0GW90aGVyIDxvdGhlckBleGFtcGxlLmNvbT6IkAQTFggAOBYhBNzNQ5Bm
TFPNXnIIr0qxcDN4YZPeBQJrCcUMAhsDBQsJCAcCBhUKCQgLAgQWAgMBAh4BAheA
AAoJEEqxcDN4YZPe3+UA/14FABkJfBBeZXKwLP41E/6FYeVSUq3i12Giu55BQILY
AP9jaSzJFOSp8VQOj3X18cb7V0GCf0xTfnCgGZXMRxivDg==
=3zAu
-----END PGP PUBLIC KEY BLOCK-----
""",
}
"""Two keys of nobody, made for these tests: a vendor's and another one."""
EMPTY: list[str] = []


def run(folder: Path, answer: str) -> subprocess.CompletedProcess[str]:
    """Run the script below a folder; every address answers the same."""
    for place in ("keyrings", "apt/sources.list.d", "bin"):
        (folder / place).mkdir(parents=True)
    (folder / "answer").write_text(answer)
    (folder / "bin" / "curl").write_text(f"#!/bin/sh\ncat {folder}/answer\n")
    (folder / "bin" / "curl").chmod(0o755)
    script = render("docker_sources.sh.j2", docker=VENDOR, nvidia=VENDOR, refused=KEY_REFUSED)
    script = script.replace("/usr/share/keyrings", f"{folder}/keyrings").replace("/etc/apt", f"{folder}/apt")
    path = {"PATH": f"{folder}/bin:/usr/bin:/bin"}
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, timeout=60, env=path)


def added(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*/**/*") if path.is_file() and path.parent.name != "bin")


def fingerprints(keyring: Path, home: Path) -> list[str]:
    argv = ["gpg", "--homedir", str(home), "--batch", "--with-colons", "--import-options", "show-only", "--import"]
    done = subprocess.run([*argv, str(keyring)], capture_output=True, text=True, check=True, timeout=60)
    return [line.split(":")[9] for line in done.stdout.splitlines() if line.startswith("fpr")]


@pytest.mark.parametrize("answer", [KEYS[OTHER], "<html>log in to the network</html>", "", "x" * 2_000_000])
def test_an_answer_without_the_known_key_adds_no_source(tmp_path, answer):
    done = run(tmp_path, answer)
    assert done.returncode == KEY_REFUSED
    assert done.stderr.splitlines()[-1].endswith(f"gpg has no key with the fingerprint {VENDOR}")
    assert added(tmp_path) == EMPTY


def test_the_known_key_alone_is_taken_from_an_answer_with_two(tmp_path):
    done = run(tmp_path, KEYS[OTHER] + KEYS[VENDOR])
    assert done.returncode == 0, done.stderr
    assert added(tmp_path) == [
        "docker.gpg",
        "docker.list",
        "nvidia-container-toolkit.gpg",
        "nvidia-container-toolkit.list",
    ]
    (tmp_path / "home").mkdir(mode=0o700)
    assert fingerprints(tmp_path / "keyrings" / "docker.gpg", tmp_path / "home") == [VENDOR]
    [line] = (tmp_path / "apt/sources.list.d/nvidia-container-toolkit.list").read_text().splitlines()
    assert line.endswith(" https://nvidia.github.io/libnvidia-container/stable/ubuntu18.04/$(ARCH) /")
