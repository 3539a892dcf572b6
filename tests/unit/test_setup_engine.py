"""Where the Pulumi engine comes from, and what is said when it can come from nowhere."""

import re
import tomllib
from pathlib import Path

import pytest

from core.home import Home
from microcluster.setup import engine, go, pulumi_install, versions
from microcluster.setup.environment import PROJECT
from microcluster.setup.errors import CommandFailed

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


@pytest.mark.parametrize(
    ("printed", "fitting"),
    [
        ("v3.259.0\n", True),
        ("3.259.1", True),
        ("v3.260.0", False),
        ("v3.25.0", False),
        ("", False),
        (None, False),
        ("v3.259.0-dev", False),
    ],
)
def test_only_a_release_of_our_series_fits(printed: str | None, fitting: bool) -> None:
    assert engine.fits(printed) is fitting


def test_an_installed_pulumi_that_fits_is_used_where_it_lies(tmp_path: Path) -> None:
    path = fake_pulumi(tmp_path / "bin", "v3.259.3")
    assert engine.installed({"PATH": f"{path.parent}:/usr/bin:/bin"}) == path


def test_an_installed_pulumi_of_another_version_or_without_its_host_is_left_alone(tmp_path: Path) -> None:
    other, hostless = fake_pulumi(tmp_path / "a", "v3.272.0"), fake_pulumi(tmp_path / "b", "v3.259.0", host=False)
    assert engine.installed({"PATH": f"{other.parent}:/usr/bin:/bin"}) is None
    assert engine.installed({"PATH": f"{hostless.parent}:/usr/bin:/bin"}) is None


def test_without_network_and_go_the_sentence_names_both_and_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "INSTALLER_URL", CLOSED)
    monkeypatch.setattr(go, "USUAL_PLACE", "/nowhere")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CommandFailed) as failed:
        engine.ensure(home(tmp_path))
    message = str(failed.value)
    assert CLOSED in message and "no `go` on PATH" in message
    assert "Install Go 1.26 or newer, or Pulumi 3.259.0" in message
    assert list((tmp_path / "cache" / "engine").iterdir()) == []


def test_a_go_that_is_too_old_is_named_with_its_version(tmp_path: Path) -> None:
    old = tmp_path / "go"
    old.write_text("#!/bin/sh\necho go1.22.3\n")
    old.chmod(0o755)
    with pytest.raises(CommandFailed, match=r"go is too old \(go1.22.3\)"):
        go.require_go("Installing", {"PATH": f"{tmp_path}:/usr/bin:/bin"})


def test_an_answer_that_is_no_script_is_not_run(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<html>log in to the hotel's network</html>")
    script, reason = engine.fetch_installer(page.as_uri())
    assert script is None and "did not answer with a script" in reason


def test_what_is_built_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    folder = tmp_path / "engine" / "abc"
    with pytest.raises(KeyboardInterrupt), go.build_once(folder) as making:
        assert making
        (making / "bin" / "pulumi").touch()
        raise KeyboardInterrupt
    assert list(folder.parent.iterdir()) == []
    with go.build_once(folder) as making:
        assert making
        (making / "bin" / "pulumi").touch()
    with go.build_once(folder) as again:
        assert again is None
    assert (folder / "bin" / "pulumi").exists()


def test_a_half_installed_plugin_is_not_taken_for_one(tmp_path: Path) -> None:
    place = home(tmp_path)
    folder = place.plugins / "resource-command-v1.2.1"
    folder.mkdir(parents=True)
    (folder / "pulumi-resource-command").touch()
    assert pulumi_install.is_there(place)
    folder.with_name("resource-command-v1.2.1.partial").touch()
    assert not pulumi_install.is_there(place)


def test_the_build_is_static_stamped_and_changes_no_go_mod(tmp_path: Path) -> None:
    argv = go.build_command("go", versions.CLI, tmp_path)
    assert "-mod=readonly" in argv and any(word.endswith("version.Version=v3.259.0") for word in argv)
    environment = go.build_environment({"GOTOOLCHAIN": "auto"})
    assert (environment["CGO_ENABLED"], environment["GOTOOLCHAIN"]) == ("0", "local")


def test_the_python_packages_and_the_go_modules_have_the_versions_that_the_one_place_says() -> None:
    wanted = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert f"pulumi=={versions.PULUMI}" in wanted and f"pulumi-command=={versions.COMMAND_PLUGIN}" in wanted
    module = (PROJECT / "engine" / "cli" / "go.mod").read_text()
    assert (
        re.findall(r"^\s*(?:require )?github.com/pulumi/pulumi/[ps][kd][gk]/v3 (\S+)", module, re.MULTILINE)
        == [f"v{versions.PULUMI}"] * 2
    )
