"""Provides the Pulumi engine: an installed one, the official one, or one built from Go modules; shared by all clones."""

import json
import os
import re
import shutil
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from core.home import Home
from microcluster.setup import versions
from microcluster.setup.environment import PULUMI, VENV, child_environment
from microcluster.setup.errors import SetupError
from microcluster.setup.go import WRAPPERS, build, build_environment, build_once, fingerprint, require_go
from microcluster.setup.process import Step, output_of, run_logged
from microcluster.setup.progress import say

INSTALLER_TIMEOUT_S = 5
DOWNLOAD_LIMIT_S = 600
QUICK_S = 20
AGAIN = "Repeat the same command; finished steps are kept."


def ensure(home: Home) -> Path:
    """Return this clone's ``pulumi``; install an engine first if there is none."""
    home.make()
    environment = child_environment(home)
    engine = installed(environment) or _cached(home)
    _link(engine)
    return PULUMI


def installed(environment: Mapping[str, str]) -> Path | None:
    """Return the user's own ``pulumi``, if its version fits and its Python language host is beside it."""
    others = [part for part in environment["PATH"].split(os.pathsep) if part != str(VENV / "bin")]
    path = shutil.which("pulumi", path=os.pathsep.join(others))
    if path is None:
        return None
    real = Path(path).resolve()
    version = output_of([path, "version"], environment, QUICK_S)
    return real if fits(version) and (real.parent / versions.HOST_BINARY).exists() else None


def fits(version: str | None) -> bool:
    """Whether this project runs with the version that ``pulumi version`` printed."""
    return bool(re.match(rf"v?{re.escape(versions.PULUMI_SERIES)}\d+\s*$", version or ""))


def _cached(home: Home) -> Path:
    folder = home.cache / "engine" / fingerprint(versions.CLI, versions.HOST)
    with build_once(folder) as making:
        if making:
            say(f"    Pulumi {versions.PULUMI} into {folder}")
            reason = _official(making, home)
            if reason:
                say(f"    the official download fails ({reason}); building it from Go modules instead")
                build_cli(making, home, reason)
    return folder / "bin" / "pulumi"


def _official(root: Path, home: Home) -> str | None:
    """Run the official installer into ``root``; return the reason if it fails."""
    script, reason = fetch_installer(versions.INSTALLER_URL)
    if script is None:
        return reason
    installer = root / "install.sh"
    installer.write_bytes(script)
    argv = ("sh", str(installer), "--version", versions.PULUMI, "--install-root", str(root), "--no-edit-path")
    step = Step("official installer", "1 min", argv, home.logs / "installer.log", AGAIN, DOWNLOAD_LIMIT_S)
    try:
        run_logged(step, os.environ)
    except SetupError:
        return f"the installer failed, see {step.log}"
    installer.unlink()
    return None if (root / "bin" / "pulumi").exists() else f"the installer left no pulumi, see {step.log}"


def fetch_installer(url: str, timeout_s: float = INSTALLER_TIMEOUT_S) -> tuple[bytes | None, str]:
    """Return the official installer's script, or None and the reason."""
    try:
        with urllib.request.urlopen(url, timeout=timeout_s) as answer:
            script = answer.read()
    except (urllib.error.URLError, OSError) as unreachable:
        return None, f"{url}: {getattr(unreachable, 'reason', unreachable)}"
    return (script, "") if script.startswith(b"#!") else (None, f"{url} did not answer with a script")


def build_cli(root: Path, home: Home, reason: str) -> None:
    """Build the CLI and its Python language host into ``root/bin``, and copy the SDK's scripts."""
    go = require_go(f"Installing the Pulumi engine {versions.PULUMI}: {reason}", os.environ)
    for wrapper in (versions.CLI, versions.HOST):
        build(go, wrapper, root / "bin", home)
    module = str(WRAPPERS / versions.CLI.folder)
    argv = (go, "-C", module, "list", "-mod=readonly", "-m", "-json", versions.SDK_MODULE)
    listing = output_of(argv, build_environment(os.environ), QUICK_S)
    if listing is None:
        raise SetupError(f"Installing the Pulumi engine: go does not find {versions.SDK_MODULE}. {AGAIN}")
    for script in versions.SDK_SCRIPTS:
        copy = root / "bin" / Path(script).name
        shutil.copyfile(Path(json.loads(listing)["Dir"]) / script, copy)
        copy.chmod(0o755)


def _link(engine: Path) -> None:
    if PULUMI.is_symlink() and PULUMI.resolve() == engine.resolve():
        return
    new = PULUMI.with_name(f".pulumi-{os.getpid()}")
    new.symlink_to(engine)
    new.replace(PULUMI)
