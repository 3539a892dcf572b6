"""Have Pulumi's command plugin in the home's plugin folder: the official one, or one built from a Go module."""

from __future__ import annotations

import os

from microcluster.home import Home
from microcluster.setup import versions
from microcluster.setup.build_once import fingerprint, made_once
from microcluster.setup.engine import AGAIN, DOWNLOAD_LIMIT_S, fetch_installer
from microcluster.setup.environment import PULUMI, child_environment
from microcluster.setup.errors import SetupError
from microcluster.setup.go import build, require_go
from microcluster.setup.process import Step, run_logged
from microcluster.setup.progress import say


def ensure(home: Home) -> None:
    """Install the plugin unless it is there; the engine must be."""
    if is_there(home):
        return
    environment = child_environment(home)
    if fetch_installer(versions.INSTALLER_URL)[0] is not None:
        try:
            run_logged(_install(home), environment)
        except SetupError:
            say("    the official plugin cannot be had; building it from a Go module instead")
        else:
            return
    run_logged(_install(home, "--file", str(_built(home))), environment)


def is_there(home: Home) -> bool:
    """Whether the plugin is installed, and not half."""
    folder = home.plugins / f"resource-command-v{versions.COMMAND_PLUGIN}"
    return (folder / versions.COMMAND_BINARY).exists() and not folder.with_name(f"{folder.name}.partial").exists()


def is_any_there(home: Home) -> bool:
    """Whether some version of the plugin is installed."""
    return any(home.plugins.glob(f"resource-command-v*/{versions.COMMAND_BINARY}"))


def _built(home: Home) -> os.PathLike[str]:
    folder = home.cache / "engine" / f"command-{fingerprint(versions.COMMAND)}"
    with made_once(folder) as making:
        if making:
            doing = f"Installing the command plugin {versions.COMMAND_PLUGIN}: the official download cannot be had"
            build(require_go(doing, os.environ), versions.COMMAND, making / "bin", home)
    return folder / "bin" / versions.COMMAND_BINARY


def _install(home: Home, *source: str) -> Step:
    argv = (str(PULUMI), "plugin", "install", "resource", "command", versions.COMMAND_PLUGIN, "--reinstall", *source)
    return Step("installing the command plugin", "5 s", argv, home.logs / "plugin.log", AGAIN, DOWNLOAD_LIMIT_S)
