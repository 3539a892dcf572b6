#!/bin/sh
# Build parts of Pulumi's engine from the Go modules beside this script: build.sh FOLDER cli|host|command ...
# Each is static and stamped with the version that it is; the CLI brings the SDK's scripts with it.
set -eu
folder=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
wanted=$(sed -n 's/^go \([0-9]*[.][0-9]*\).*/\1/p' "$here/cli/go.mod")
remedy="Install Go $wanted or newer, or Pulumi itself, then repeat the same command."
go=$(command -v go || command -v /usr/local/go/bin/go) || {
    echo "To build Pulumi's engine there is no \`go\` on PATH. $remedy" >&2
    exit 1
}
export CGO_ENABLED=0 GOTOOLCHAIN=local GOWORK=off
have=$("$go" env GOVERSION)
if [ "$(printf '%s\n' "$wanted" "${have#go}" | sort -V | head -n 1)" != "$wanted" ]; then
    echo "To build Pulumi's engine $go is too old ($have). $remedy" >&2
    exit 1
fi
mkdir -p "$folder"
for module in "$@"; do
    case $module in
        cli)
            package=github.com/pulumi/pulumi/pkg/v3/cmd/pulumi
            stamp=github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v3.259.0
            ;;
        host)
            package=github.com/pulumi/pulumi/sdk/python/cmd/pulumi-language-python/v3
            stamp=github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v3.184.0
            ;;
        command)
            package=github.com/pulumi/pulumi-command/provider/cmd/pulumi-resource-command
            stamp=github.com/pulumi/pulumi-command/provider/pkg/version.Version=0.9.2
            ;;
    esac
    "$go" -C "$here/$module" build -mod=readonly -trimpath -v -tags osusergo,grpcnotrace \
        -ldflags "-s -w -X $stamp" -o "$folder/" "$package"
    if [ "$module" = cli ]; then
        sdk=$("$go" -C "$here/cli" list -mod=readonly -m -f '{{.Dir}}' github.com/pulumi/pulumi/sdk/v3)
        install -m 755 "$sdk/python/cmd/pulumi-language-python-exec" \
            "$sdk/python/dist/pulumi-resource-pulumi-python" "$folder/"
    fi
done
