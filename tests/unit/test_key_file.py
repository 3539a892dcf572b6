"""A key is read from a file that only its owner can read and change, and from nothing else."""

import os
import re
from pathlib import Path

import pytest

from microcluster.core.key_file import LARGEST_BYTES, KeyFileError, settings_in

KEY = "nvapi-0123456789"
PRIVATE = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n-----END OPENSSH PRIVATE KEY-----\n"
NOBODY = 65534


def read(path: Path, section: str, **options: bool) -> dict[str, str]:
    return settings_in(path, section, "Write it anew.", **options)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_text(f"{KEY}\n")
    path.chmod(0o600)
    return path


def test_a_key_alone_and_a_key_under_its_section_are_read(file: Path) -> None:
    assert read(file, "nvcr.io") == {"api_key": KEY}
    assert read(file, "r.test:5000", key_alone=False) == {}
    file.write_text(f"[nvcr.io]\napi_key = {KEY}\n[r.test:5000]\napi_key = other\n")
    assert read(file, "r.test:5000", key_alone=False) == {"api_key": "other"}
    assert read(file, "r.test") == {}


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o660, 0o606, 0o644, 0o444])
def test_a_key_that_others_may_read_or_change_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)
    with pytest.raises(KeyFileError, match=rf"others on this computer may .*Run 'chmod 600 {re.escape(str(file))}'"):
        read(file, "nvcr.io")
    file.chmod(0o400)
    assert read(file, "nvcr.io")


def test_settings_without_a_key_may_be_read_and_not_changed_by_others(file: Path) -> None:
    file.write_text("[softlayer]\nendpoint_url = https://h/\n")
    file.chmod(0o644)
    assert read(file, "softlayer")
    file.chmod(0o664)
    with pytest.raises(KeyFileError, match="may change it"):
        read(file, "softlayer")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused(file: Path) -> None:
    os.chown(file, NOBODY, -1)
    with pytest.raises(KeyFileError, match=rf"it belongs to another user \({NOBODY}\)"):
        read(file, "nvcr.io")


@pytest.mark.parametrize(
    "content", [PRIVATE, PRIVATE.replace("OPENSSH", "RSA"), "PuTTY-User-Key-File-3: ssh-ed25519\n"]
)
def test_a_private_key_is_refused(file: Path, content: str) -> None:
    file.write_text(content)
    with pytest.raises(KeyFileError, match="it holds a private key, which no service gets"):
        read(file, "nvcr.io")


@pytest.mark.parametrize(
    "content",
    [
        f"{KEY} {KEY}".encode(),
        f"{KEY}\n{KEY}\n".encode(),
        f"[nvcr.io]\napi_key = {KEY} {KEY}\n".encode(),
        f"{KEY}\u20ac".encode(),
        f"{KEY}\x1b[2J".encode(),
        b"\xff\xfe" + KEY.encode(),
        f"{KEY}\0".encode(),
        KEY.encode() * LARGEST_BYTES,
    ],
    ids=["two words", "two lines", "two words as a setting", "no ASCII", "a control", "no text", "a NUL", "too long"],
)
def test_what_is_no_key_is_refused_and_never_quoted(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(KeyFileError) as refused:
        read(file, "nvcr.io")
    assert KEY not in str(refused.value) and str(refused.value).isprintable()


def test_a_link_to_a_good_file_is_followed_and_a_pipe_refused(file: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(file)
    assert read(tmp_path / "link", "nvcr.io") == {"api_key": KEY}
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(KeyFileError, match="no regular file"):
        read(tmp_path / "pipe", "nvcr.io")


def test_a_file_changed_while_it_is_read_is_judged_as_opened(file: Path, monkeypatch) -> None:
    look = os.fstat

    def change(number: int) -> os.stat_result:
        file.unlink()
        file.write_text("another's")
        return look(number)

    monkeypatch.setattr(os, "fstat", change)
    assert read(file, "nvcr.io") == {"api_key": KEY}
