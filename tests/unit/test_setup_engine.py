"""Sources of the Pulumi engine, and the error without any."""

import hashlib
import re
import shutil
import subprocess
import tarfile
import tomllib
from pathlib import Path

import pytest

from microcluster.core.home import Home
from microcluster.setup import engine
from microcluster.setup.environment import PROJECT
from microcluster.setup.errors import CommandFailed
from microcluster.setup.progress import Stages

CLOSED = "http://127.0.0.1:1"


def fake_pulumi(folder: Path, version: str, *, host: bool = True) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "pulumi"
    path.write_text(f"#!/bin/sh\necho {version}\n")
    path.chmod(0o755)
    if host:
        (folder / "pulumi-language-python").touch()
    return path


def home(folder: Path) -> Home:
    return Home(folder / "home", folder / "cache")


def test_only_a_release_of_our_series_fits() -> None:
    assert all(map(engine.fits, ("v3.259.0\n", "3.259.1")))
    assert not any(map(engine.fits, ("v3.260.0", "v3.25.0", "", "v3.259.0-dev")))


def test_an_installed_pulumi_is_used_only_if_version_and_language_host_fit(
    tmp_path,
):
    path = fake_pulumi(tmp_path / "bin", "v3.259.3")
    assert engine.installed({"PATH": f"{path.parent}:/usr/bin:/bin"}) == path
    other, hostless = fake_pulumi(tmp_path / "a", "v3.272.0"), fake_pulumi(tmp_path / "b", "v3.259.0", host=False)
    for left_alone in (other, hostless):
        assert engine.installed({"PATH": f"{left_alone.parent}:/usr/bin:/bin"}) is None


def test_without_network_and_go_the_sentence_names_both_and_the_remedy(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(engine, "ARCHIVES", f"{CLOSED}/")
    with_go(tmp_path, monkeypatch, None)
    with pytest.raises(CommandFailed) as failed:
        engine.ensure(home(tmp_path), Stages())
    assert CLOSED in capsys.readouterr().out
    assert "no `go` on PATH. Install Go 1.26 or newer, or Pulumi itself" in str(failed.value)
    assert list((tmp_path / "cache" / "engine").iterdir()) == []


def with_go(folder: Path, monkeypatch: pytest.MonkeyPatch, version: str | None) -> None:
    """Let the build find no Go but one of this version."""
    tools = folder / "tools"
    tools.mkdir()
    for name in ("sh", "sed", "dirname", "sort", "head", "mkdir", "install"):
        (tools / name).symlink_to(shutil.which(name) or f"/bin/{name}")
    if version:
        (tools / "go").write_text(f"#!/bin/sh\necho {version}\n")
        (tools / "go").chmod(0o755)
    text = engine.BUILD.read_text().replace("/usr/local/go/bin/go", str(tools / "none"))
    copy = folder / "engine" / "build.sh"
    shutil.copytree(engine.BUILD.parent, copy.parent)
    copy.write_text(text)
    monkeypatch.setattr(engine, "BUILD", copy)
    monkeypatch.setenv("PATH", str(tools))


@pytest.mark.parametrize(("version", "fitting"), [("go1.22.3", False), ("go1.26", True), ("go1.26.8", True)])
def test_a_go_that_is_too_old_is_named_with_its_version(tmp_path, monkeypatch, version, fitting):
    with_go(tmp_path, monkeypatch, version)
    done = subprocess.run([engine.BUILD, tmp_path / "bin", "host"], capture_output=True, text=True, check=False)
    assert (done.returncode == 0) is fitting, done.stderr
    assert (f"go is too old ({version})" in done.stderr) is not fitting


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """Address of an archive as Pulumi packs it, in place of the real one."""
    packed = tmp_path / "answers" / "x64.tar.gz"
    fake_pulumi(tmp_path / "packed" / "pulumi", "v3.259.0")
    packed.parent.mkdir()
    with tarfile.open(packed, "w:gz") as made:
        made.add(tmp_path / "packed" / "pulumi", "pulumi")
    monkeypatch.setattr(engine, "ARCHIVES", f"{packed.parent.as_uri()}/")
    monkeypatch.setattr(engine.platform, "machine", lambda: "x86_64")
    return packed


def test_an_archive_with_the_known_sum_is_unpacked(tmp_path, archive, monkeypatch):
    known = hashlib.sha256(archive.read_bytes()).hexdigest()
    monkeypatch.setattr(engine, "SUMS", {"x86_64": ("x64", known)})
    path = engine._command_line(home(tmp_path))
    assert engine.installed({"PATH": f"{path.parent}:/usr/bin:/bin"}) == path
    assert [each.name for each in path.parents[1].iterdir()] == ["bin"]


def test_another_archive_is_not_unpacked_and_its_sum_is_shown(tmp_path, archive, monkeypatch, capsys):
    with_go(tmp_path, monkeypatch, None)
    with pytest.raises(CommandFailed):
        engine._command_line(home(tmp_path))
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    said = capsys.readouterr().out
    assert f"has the SHA-256 {found} instead of {engine.SUMS['x86_64'][1]}; nothing of it was unpacked" in said
    assert list((tmp_path / "cache" / "engine").iterdir()) == []


def test_a_download_ends_at_its_limit(tmp_path, archive, monkeypatch):
    archive.write_bytes(b"x" * 5000)
    monkeypatch.setattr(engine, "LARGEST_BYTES", 1000)
    monkeypatch.setattr(engine, "CHUNK_BYTES", 100)
    engine._download(archive.as_uri(), tmp_path / "file")
    assert (tmp_path / "file").stat().st_size == 1000


def test_no_program_of_the_network_is_run_without_a_known_sum(tmp_path, archive, monkeypatch):
    ran = tmp_path / "ran"
    archive.write_text(f"#!/bin/sh\ntouch {ran}\n")
    with_go(tmp_path, monkeypatch, None)
    with pytest.raises(CommandFailed):
        engine._command_line(home(tmp_path))
    assert not ran.exists()


def test_a_plugin_that_was_built_of_other_modules_is_built_anew(tmp_path: Path) -> None:
    place = home(tmp_path)
    installed = place.plugins / "resource-command-v1.2.1" / "pulumi-resource-command"
    for path, content in ((installed, "weak"), (engine._place("command", home=place) / "bin" / installed.name, "new")):
        path.parent.mkdir(parents=True)
        path.write_text(content)
    assert engine.plugin_is_there(place)
    older = place.cache / "engine" / "command-0123456789ab" / "bin" / installed.name
    older.parent.mkdir(parents=True)
    older.write_text("weak")
    assert not engine.plugin_is_there(place)
    installed.write_text("new")
    assert engine.plugin_is_there(place)


def test_a_half_installed_plugin_is_not_taken_for_one(tmp_path: Path) -> None:
    place = home(tmp_path)
    folder = place.plugins / "resource-command-v1.2.1"
    folder.mkdir(parents=True)
    (folder / "pulumi-resource-command").touch()
    assert engine.plugin_is_there(place)
    folder.with_name("resource-command-v1.2.1.partial").touch()
    assert not engine.plugin_is_there(place)


def test_python_packages_and_go_modules_have_the_versions_of_one_place() -> None:
    wanted = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert f"pulumi=={engine.VERSION}" in wanted and f"pulumi-command=={engine.PLUGIN_VERSION}" in wanted
    module = (PROJECT / "engine" / "cli" / "go.mod").read_text()
    assert (
        re.findall(r"^\s*(?:require )?github.com/pulumi/pulumi/[ps][kd][gk]/v3 (\S+)", module, re.MULTILINE)
        == [f"v{engine.VERSION}"] * 2
    )
    assert f"version.Version=v{engine.VERSION}" in engine.BUILD.read_text()
