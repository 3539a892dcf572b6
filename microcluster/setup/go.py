"""Builds the Go modules under ``engine/``, once for all clones."""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from core.home import Home
from microcluster.setup import versions
from microcluster.setup.environment import PROJECT
from microcluster.setup.errors import SetupError
from microcluster.setup.process import Step, output_of, run_logged

USUAL_PLACE = "/usr/local/go/bin"
QUICK_S = 20
BUILD_LIMIT_S = 1500
WRAPPERS = PROJECT / "engine"


def require_go(doing: str, environment: Mapping[str, str]) -> str:
    """Return the path of a Go that is new enough; an error begins with ``doing``."""
    needed = go_of_module((WRAPPERS / versions.CLI.folder / "go.mod").read_text())
    remedy = f"Install Go {needed} or newer, or Pulumi {versions.PULUMI} itself, then repeat the same command."
    go = shutil.which("go", path=f"{environment.get('PATH', '')}:{USUAL_PLACE}")
    if go is None:
        raise SetupError(f"{doing}; and to build it there is no `go` on PATH. {remedy}")
    have = output_of((go, "env", "GOVERSION"), build_environment(environment), QUICK_S) or ""
    if numbers(have) < numbers(needed):
        raise SetupError(f"{doing}; and to build it {go} is too old ({have.strip() or 'it does not run'}). {remedy}")
    return go


def go_of_module(text: str) -> str:
    """Return the Go version in a go.mod."""
    found = re.search(r"^go (\S+)$", text, re.MULTILINE)
    return found.group(1) if found else "1.26"


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers in ``go1.26.8`` or ``1.26``."""
    found = re.search(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in found.group().split(".")) if found else ()


def build_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a build: static binaries, no other toolchain, no workspace."""
    return {**environment, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}


def build(go: str, wrapper: versions.Wrapper, into: Path, home: Home) -> None:
    """Build the main package of ``wrapper`` into ``into``."""
    step = Step(
        f"building {wrapper.package.rsplit('/cmd/', 1)[1].removesuffix('/v3')} with Go",
        wrapper.usual,
        build_command(go, wrapper, into),
        home.logs / f"go-{wrapper.folder}.log",
        "If a module could not be fetched, check the network. Repeat the same command; Go keeps finished parts.",
        BUILD_LIMIT_S,
        WRAPPERS / wrapper.folder,
    )
    run_logged(step, build_environment(os.environ))


def build_command(go: str, wrapper: versions.Wrapper, into: Path) -> tuple[str, ...]:
    """Return the argv of a build; ``-v`` logs each package."""
    flags = (
        "-mod=readonly",
        "-trimpath",
        "-v",
        "-tags",
        "osusergo,grpcnotrace",
        "-ldflags",
        f"-s -w -X {wrapper.stamp}",
    )
    return (go, "build", *flags, "-o", f"{into}/", wrapper.package)


def fingerprint(*wrappers: versions.Wrapper) -> str:
    """Return twelve hex digits over versions, stamps and the modules' sums."""
    digest = hashlib.sha256(versions.PULUMI.encode())
    for wrapper in wrappers:
        digest.update(f"{wrapper.package} {wrapper.stamp}".encode())
        for name in ("go.mod", "go.sum"):
            digest.update((WRAPPERS / wrapper.folder / name).read_bytes())
    return digest.hexdigest()[:12]


@contextmanager
def build_once(folder: Path) -> Iterator[Path | None]:
    """Yield a scratch folder that becomes ``folder`` on success; None if ``folder`` exists."""
    if folder.exists():
        yield None
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as scratch:
        made = Path(scratch) / "made"
        (made / "bin").mkdir(parents=True)
        yield made
        if not folder.exists():  # Another clone may have made it meanwhile.
            made.rename(folder)
