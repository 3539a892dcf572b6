"""The one place that says which versions of Pulumi's engine this project runs, and how they are built from Go modules."""

from __future__ import annotations

from dataclasses import dataclass

PULUMI = "3.259.0"
PULUMI_SERIES = "3.259."
"""An installed ``pulumi`` whose version begins like this is used as it is."""
COMMAND_PLUGIN = "1.2.1"
INSTALLER_URL = "https://get.pulumi.com"


@dataclass(frozen=True)
class Wrapper:
    """One Go module under ``engine/``: the main package it builds and the true version stamped into it."""

    folder: str
    package: str
    stamp: str
    usual: str


CLI = Wrapper(
    "cli",
    "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
    f"github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v{PULUMI}",
    "4 min",
)
HOST = Wrapper(
    "host",
    "github.com/pulumi/pulumi/sdk/python/cmd/pulumi-language-python/v3",
    "github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v3.184.0",
    "1 min",
)
COMMAND = Wrapper(
    "command",
    "github.com/pulumi/pulumi-command/provider/cmd/pulumi-resource-command",
    "github.com/pulumi/pulumi-command/provider/pkg/version.Version=0.9.2",
    "1 min",
)
HOST_BINARY = "pulumi-language-python"
COMMAND_BINARY = "pulumi-resource-command"
SDK_MODULE = "github.com/pulumi/pulumi/sdk/v3"
SDK_SCRIPTS = ("python/cmd/pulumi-language-python-exec", "python/dist/pulumi-resource-pulumi-python")
"""Scripts of the CLI's ``SDK_MODULE`` that belong beside the binaries."""
