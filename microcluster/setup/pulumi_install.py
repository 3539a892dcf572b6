"""Installs Pulumi's engine and the command plugin."""

import os

from core.home import Home
from microcluster.setup import engine, versions
from microcluster.setup.engine import AGAIN, DOWNLOAD_LIMIT_S, fetch_installer
from microcluster.setup.environment import PULUMI, child_environment
from microcluster.setup.errors import SetupError
from microcluster.setup.go import build, build_once, fingerprint, require_go
from microcluster.setup.process import Step, run_logged
from microcluster.setup.progress import Stages, say


def ensure(home: Home, stages: Stages) -> None:
    """Install command line, language host and command plugin."""
    with stages.stage("engine", "Pulumi's command line and plugins"):
        engine.ensure(home)
        if not is_there(home):
            _install_plugin(home)


def ensure_any(home: Home, stages: Stages) -> None:
    """Install only if there is no engine at all: one of any version can take a stack down."""
    if not (PULUMI.exists() and any(home.plugins.glob(f"resource-command-v*/{versions.COMMAND_BINARY}"))):
        ensure(home, stages)


def _install_plugin(home: Home) -> None:
    """Install the official plugin, or build it from a Go module."""
    environment = child_environment(home)
    if fetch_installer(versions.INSTALLER_URL)[0] is not None:
        try:
            run_logged(_install(home), environment)
        except SetupError:
            say("    the official plugin cannot be downloaded; building it from a Go module instead")
        else:
            return
    run_logged(_install(home, "--file", str(_built(home))), environment)


def is_there(home: Home) -> bool:
    """Whether the plugin is installed completely."""
    folder = home.plugins / f"resource-command-v{versions.COMMAND_PLUGIN}"
    return (folder / versions.COMMAND_BINARY).exists() and not folder.with_name(f"{folder.name}.partial").exists()


def _built(home: Home) -> os.PathLike[str]:
    folder = home.cache / "engine" / f"command-{fingerprint(versions.COMMAND)}"
    with build_once(folder) as making:
        if making:
            doing = f"Installing the command plugin {versions.COMMAND_PLUGIN}: the official download fails"
            build(require_go(doing, os.environ), versions.COMMAND, making / "bin", home)
    return folder / "bin" / versions.COMMAND_BINARY


def _install(home: Home, *source: str) -> Step:
    argv = (str(PULUMI), "plugin", "install", "resource", "command", versions.COMMAND_PLUGIN, "--reinstall", *source)
    return Step("installing the command plugin", "5 s", argv, home.logs / "plugin.log", AGAIN, DOWNLOAD_LIMIT_S)
