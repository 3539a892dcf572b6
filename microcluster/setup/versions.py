"""The versions of Pulumi's engine, and the Go modules to build them."""

from dataclasses import dataclass

PULUMI = "3.259.0"
PULUMI_SERIES = "3.259."
"""An installed ``pulumi`` of this series is used."""
COMMAND_PLUGIN = "1.2.1"
INSTALLER_URL = "https://get.pulumi.com"


@dataclass(frozen=True)
class Wrapper:
    """A Go module under ``engine/``: its main package and the version stamped into it."""

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
"""Scripts of ``SDK_MODULE`` that belong beside the binaries."""
