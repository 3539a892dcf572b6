"""Provides Pulumi's engine and command plugin: installed, official, or built from Go modules; shared by all clones."""

import hashlib
import os
import re
import shutil
import urllib.request
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from core.files import locked, whole_folder
from core.home import Home
from core.plain_text import say
from microcluster.setup.environment import PROJECT, PULUMI, VENV, child_environment
from microcluster.setup.errors import CommandFailed
from microcluster.setup.process import Step, asked, run_logged
from microcluster.setup.progress import Stages

VERSION, SERIES = "3.259.0", "3.259."
"""What is installed; an installed ``pulumi`` of the same series is used."""
PLUGIN_VERSION = "1.2.1"
INSTALLER_URL = "https://get.pulumi.com"
HOST_BINARY, PLUGIN_BINARY = "pulumi-language-python", "pulumi-resource-command"
BUILD = PROJECT / "engine" / "build.sh"
INSTALLER_TIMEOUT_S, DOWNLOAD_LIMIT_S, BUILD_LIMIT_S = 5, 600, 3000
QUICK_S = 20
AGAIN = "Repeat the same command; finished steps are kept."


def ensure(home: Home, stages: Stages) -> None:
    """Install command line, language host and command plugin, unless they are there."""
    with stages.stage("engine", "Pulumi's command line and plugins"):
        home.make()
        with locked(
            home.locks / "engine.lock", lambda _: say("    another command installs the engine; waiting for it")
        ):
            _link(installed(child_environment(home)) or _command_line(home))
            if not plugin_is_there(home):
                _install_plugin(home)


def ensure_any(home: Home, stages: Stages) -> None:
    """Install only if there is no engine at all: one of any version can take a stack down."""
    if not (PULUMI.exists() and any(home.plugins.glob(f"resource-command-v*/{PLUGIN_BINARY}"))):
        ensure(home, stages)


def installed(environment: Mapping[str, str]) -> Path | None:
    """Return the user's own ``pulumi``, if its version fits and its Python language host is beside it."""
    others = [part for part in environment["PATH"].split(os.pathsep) if part != str(VENV / "bin")]
    path = shutil.which("pulumi", path=os.pathsep.join(others))
    if path is None:
        return None
    real = Path(path).resolve()
    version = asked([path, "version"], QUICK_S, environment).stdout
    return real if fits(version) and (real.parent / HOST_BINARY).exists() else None


def fits(version: str) -> bool:
    """Whether this project runs with the version that ``pulumi version`` printed."""
    return bool(re.match(rf"v?{re.escape(SERIES)}\d+\s*$", version))


def plugin_is_there(home: Home) -> bool:
    """Whether the plugin is installed completely."""
    folder = home.plugins / f"resource-command-v{PLUGIN_VERSION}"
    return (folder / PLUGIN_BINARY).exists() and not folder.with_name(f"{folder.name}.partial").exists()


def _command_line(home: Home) -> Path:
    """Return the ``pulumi`` of the cache; bring it there first if there is none."""
    folder = _place("cli", "host", home=home)
    if not folder.exists():
        say(f"    Pulumi {VERSION} into {folder}")
        with whole_folder(folder) as made:
            try:
                _official(made, home)
            except CommandFailed as failed:
                say(f"    the official download fails ({failed}); building it from Go modules instead")
                _build(made / "bin", "cli", "host", usual="5 min", home=home)
    return folder / "bin" / "pulumi"


def _official(root: Path, home: Home) -> None:
    """Run the official installer into ``root``."""
    installer = root / "install.sh"
    installer.write_bytes(fetch_installer(INSTALLER_URL))
    argv = ("sh", str(installer), "--version", VERSION, "--install-root", str(root), "--no-edit-path")
    step = Step("official installer", "1 min", argv, home.logs / "installer.log", AGAIN, DOWNLOAD_LIMIT_S)
    try:
        run_logged(step, os.environ)
    except CommandFailed as failed:
        raise CommandFailed(f"the installer failed, see {step.log}") from failed
    installer.unlink()
    if not (root / "bin" / "pulumi").exists():
        raise CommandFailed(f"the installer left no pulumi, see {step.log}")


def fetch_installer(url: str, timeout_s: float = INSTALLER_TIMEOUT_S) -> bytes:
    """Return the official installer's script."""
    try:
        with urllib.request.urlopen(url, timeout=timeout_s) as answer:
            script = answer.read()
    except OSError as unreachable:
        raise CommandFailed(f"{url}: {getattr(unreachable, 'reason', unreachable)}") from unreachable
    if not script.startswith(b"#!"):
        raise CommandFailed(f"{url} did not answer with a script")
    return script


def _install_plugin(home: Home) -> None:
    """Install the official plugin, or build it from a Go module."""
    argv = (str(PULUMI), "plugin", "install", "resource", "command", PLUGIN_VERSION, "--reinstall")
    step = Step("installing the command plugin", "5 s", argv, home.logs / "plugin.log", AGAIN, DOWNLOAD_LIMIT_S)
    try:
        fetch_installer(INSTALLER_URL)  # Where that cannot be had, the plugin cannot either.
        run_logged(step, child_environment(home))
    except CommandFailed:
        say("    the official plugin cannot be downloaded; building it from a Go module instead")
        folder = _place("command", home=home)
        if not folder.exists():
            with whole_folder(folder) as made:
                _build(made / "bin", "command", usual="1 min", home=home)
        file = ("--file", str(folder / "bin" / PLUGIN_BINARY))
        run_logged(replace(step, argv=(*argv, *file)), child_environment(home))


def _place(*modules: str, home: Home) -> Path:
    """Return the folder of the cache for what is built of these modules; it depends on all that the build reads."""
    read = [BUILD, *(BUILD.parent / module / name for module in modules for name in ("go.mod", "go.sum"))]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in read)).hexdigest()[:12]
    return home.cache / "engine" / f"{modules[0]}-{digest}"


def _build(into: Path, *modules: str, usual: str, home: Home) -> None:
    hint = "If a module could not be fetched, check the network. Repeat the same command; Go keeps finished parts."
    argv = (str(BUILD), str(into), *modules)
    log = home.logs / f"go-{modules[0]}.log"
    run_logged(Step("building Pulumi's engine with Go", usual, argv, log, hint, BUILD_LIMIT_S), os.environ)


def _link(engine: Path) -> None:
    if PULUMI.is_symlink() and PULUMI.resolve() == engine.resolve():
        return
    new = PULUMI.with_name(f".pulumi-{os.getpid()}")
    new.symlink_to(engine)
    new.replace(PULUMI)
