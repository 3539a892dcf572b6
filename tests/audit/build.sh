#!/bin/sh
# Bring the tools of `make audit` into a folder, each by its known sum: pip-audit, govulncheck and gitleaks, and Go's database of
# weaknesses as it was on a day, for computers that do not reach the one of today: build.sh FOLDER
set -eu
folder=$1
here=$(cd "$(dirname "$0")" && pwd)
version=v0.0.0-20261105234957-e22db6528018
sum=h1:mfngRv0Yoh0VApsXKEN82CjD99kl7mtparN3bs3JnqI=
go=$(command -v go || command -v /usr/local/go/bin/go) || {
    echo "To build govulncheck and gitleaks there is no \`go\` on PATH. Install Go 1.26 or newer, then repeat the same command." >&2
    exit 1
}
export CGO_ENABLED=0 GOTOOLCHAIN=local GOWORK=off
rm -rf "$folder.partial"
mkdir -p "$folder.partial"
cd "$folder.partial"
python -m venv venv
venv/bin/python -m pip install --quiet --require-hashes --requirement "$here/pip-audit.lock"
"$go" -C "$here" build -mod=readonly -trimpath -o "$folder.partial/" golang.org/x/vuln/cmd/govulncheck github.com/zricethezav/gitleaks/v8
"$go" mod download -json "golang.org/x/vulndb@$version" > vulndb
grep -q "\"Sum\": \"$sum\"" vulndb || {
    echo "golang.org/x/vulndb@$version has another sum than $sum; nothing of it is used." >&2
    exit 1
}
cp -r --no-preserve=mode "$(sed -n 's/^\t"Dir": "\(.*\)",$/\1/p' vulndb)/data/osv" database
mv "$folder.partial" "$folder"
