"""Provides Pulumi's engine and command plugin: installed, official, or built from Go modules; shared by all clones."""

import filecmp
import hashlib
import http.client
import os
import platform
import re
import shutil
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from microcluster.core.files import locked, whole_folder
from microcluster.core.home import Home
from microcluster.core.plain_text import say
from microcluster.setup.environment import PROJECT, PULUMI, VENV, child_environment
from microcluster.setup.errors import CommandFailed
from microcluster.setup.process import Step, asked, run_logged
from microcluster.setup.progress import Stages, shown

VERSION, SERIES = "3.259.0", "3.259."
"""Version to install; an installed ``pulumi`` of the same series is used."""
PLUGIN_VERSION = "1.2.1"
ARCHIVES = f"https://get.pulumi.com/releases/sdk/pulumi-v{VERSION}-linux-"
SUMS = {
    "x86_64": ("x64", "94ba357acac23d01474084c4b00098dc0f7bc70ce13f34c777459254a5f718e5"),
    "aarch64": ("arm64", "edc8327463a72160bb36cf82cf5062da9c8a244290a706d9980988e7bf486853"),
}
"""The archive of each machine type, and its SHA-256: Pulumi's own Homebrew formula of this version."""
LARGEST_BYTES, CHUNK_BYTES = 1 << 29, 1 << 20
HOST_BINARY, PLUGIN_BINARY = "pulumi-language-python", "pulumi-resource-command"
BUILD = PROJECT / "engine" / "build.sh"
ANSWER_S, DOWNLOAD_LIMIT_S, BUILD_LIMIT_S, QUICK_S = 5, 600, 3000, 20
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


def is_built(home: Home) -> bool:
    """Whether nothing of it has to be downloaded or built."""
    command_line = installed(child_environment(home)) or _place("cli", "host", home=home)
    return command_line.exists() and (plugin_is_there(home) or _place("command", home=home).exists())


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
    """Whether the plugin is installed completely, and is not one that was built here of other modules."""
    folder, current = home.plugins / f"resource-command-v{PLUGIN_VERSION}", _place("command", home=home)
    if not (folder / PLUGIN_BINARY).exists() or folder.with_name(f"{folder.name}.partial").exists():
        return False
    built = (home.cache / "engine").glob(f"command-*/bin/{PLUGIN_BINARY}")
    return not any(
        filecmp.cmp(folder / PLUGIN_BINARY, each, shallow=False) for each in built if each.parents[1] != current
    )


def _command_line(home: Home) -> Path:
    """Return the ``pulumi`` of the cache; bring it there first if there is none."""
    folder = _place("cli", "host", home=home)
    if not folder.exists():
        say(f"    Pulumi {VERSION} into {folder}")
        with whole_folder(folder) as new_folder:
            try:
                _official(new_folder, home)
            except CommandFailed as failed:
                say(f"    the official download fails ({failed}); building it from Go modules instead")
                _build(new_folder / "bin", "cli", "host", usual="5 min", home=home)
    return folder / "bin" / "pulumi"


def _official(root: Path, home: Home) -> None:
    """Unpack Pulumi's own archive for this computer into ``root``, if it is the one that is known."""
    machine = platform.machine()
    if machine not in SUMS:
        raise CommandFailed(f"there is no archive for {machine}")
    name, known_sum = SUMS[machine]
    url, archive = f"{ARCHIVES}{name}.tar.gz", root / "archive"
    with shown("downloading Pulumi", "1 min"):
        digest = _download(url, archive)
    if digest != known_sum:
        archive.unlink()
        raise CommandFailed(f"{url} has the SHA-256 {digest} instead of {known_sum}; nothing of it was unpacked")
    (root / "bin").mkdir()
    argv = ("tar", "--extract", "--file", str(archive), "--directory", str(root / "bin"), "--strip-components=1")
    run_logged(Step("unpacking Pulumi", "5 s", argv, home.logs / "pulumi.log", AGAIN), os.environ)
    archive.unlink()


def _download(url: str, file: Path) -> str:
    """Write the answer of ``url``, up to a limit, into ``file``; return its SHA-256."""
    digest, until = hashlib.sha256(), time.monotonic() + DOWNLOAD_LIMIT_S
    try:
        with urllib.request.urlopen(url, timeout=ANSWER_S) as answer, file.open("wb") as archive:
            while (part := answer.read1(CHUNK_BYTES)) and archive.tell() < LARGEST_BYTES and time.monotonic() < until:
                archive.write(part)
                digest.update(part)
    except (OSError, http.client.HTTPException) as unreachable:
        file.unlink(missing_ok=True)
        raise CommandFailed(f"{url}: {getattr(unreachable, 'reason', unreachable)}") from unreachable
    return digest.hexdigest()


def _install_plugin(home: Home) -> None:
    """Install the command plugin that is built from a Go module: the sum of Pulumi's own is not known."""
    folder = _place("command", home=home)
    if not folder.exists():
        with whole_folder(folder) as made:
            _build(made / "bin", "command", usual="1 min", home=home)
    words = ("plugin", "install", "resource", "command", PLUGIN_VERSION, "--reinstall", "--file")
    argv = (str(PULUMI), *words, str(folder / "bin" / PLUGIN_BINARY))
    step = Step("installing the command plugin", "5 s", argv, home.logs / "plugin.log", AGAIN, DOWNLOAD_LIMIT_S)
    run_logged(step, child_environment(home))


def _place(*modules: str, home: Home) -> Path:
    """Return the folder of the cache for what is built of these modules; it depends on all that the build reads."""
    read = [BUILD, *(BUILD.parent / module / name for module in modules for name in ("go.mod", "go.sum"))]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in read)).hexdigest()[:12]
    return home.cache / "engine" / f"{modules[0]}-{digest}"


def _build(into: Path, *modules: str, usual: str, home: Home) -> None:
    hint = "If a module could not be fetched, check the network. Repeat the same command; Go keeps finished parts."
    if modules == ("command",):
        hint += f" Without Go, take Pulumi's own, unchecked: . ./env.sh; pulumi plugin install resource command {PLUGIN_VERSION}"
    argv = (str(BUILD), str(into), *modules)
    log = home.logs / f"go-{modules[0]}.log"
    run_logged(Step("building Pulumi's engine with Go", usual, argv, log, hint, BUILD_LIMIT_S), os.environ)


def _link(engine: Path) -> None:
    if PULUMI.is_symlink() and PULUMI.resolve() == engine.resolve():
        return
    new = PULUMI.with_name(f".pulumi-{os.getpid()}")
    new.symlink_to(engine)
    new.replace(PULUMI)
