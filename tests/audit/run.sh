#!/bin/sh
# `make audit`: look for known weaknesses of what is installed, for insecure code, and for secrets in the history. What cannot be
# looked at is said and is no failure. Needs MICROCLUSTER_HOME, MICROCLUSTER_CACHE and the project's Python first on PATH.
set -u
cd "$(dirname "$0")/../.."
here=tests/audit
tools=$MICROCLUSTER_CACHE/audit/$(cat $here/build.sh $here/go.mod $here/go.sum $here/pip-audit.lock | sha256sum | cut -c 1-12)
if [ ! -e "$tools" ]; then
    echo "audit: building its tools (usually 2 min)"
    $here/build.sh "$tools" || { echo "audit: left out: its tools could not be built, for the reason above"; exit 0; }
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=
judge() {
    if [ -s "$work/found" ]; then
        # In CI what the index says today is said and fails nothing: a commit must not be judged otherwise tomorrow.
        python -m tests.audit "$1" "$2" < "$work/found" || { [ "$1" = packages ] && [ -n "${CI:-}" ]; } || failed="$failed $2"
    else
        echo "audit: $2: left out: $(tail -n 1 "$work/why")"
    fi
}
for lock in requirements.lock images/training/requirements.lock images/training/horovod.lock images/mxnet/requirements.lock \
    images/mxnet/requirements-2bit.lock $here/pip-audit.lock; do
    timeout 60 "$tools/venv/bin/python" -m pip_audit --require-hashes --disable-pip --progress-spinner off --timeout 5 --format json \
        --requirement "$lock" > "$work/found" 2> "$work/why"
    judge packages "$lock"
done
scan() { timeout 60 "$tools/govulncheck" -mode binary -format json -db "$database" "$1" > "$work/found" 2> "$work/why" || : > "$work/found"; }
pulumi=$(readlink -f .venv/bin/pulumi)
# Go's database of the day that build.sh names, for the same reason; AUDIT_TODAY=1 asks for what is known today.
database=file://$tools/database
[ -z "${AUDIT_TODAY:-}" ] || database=https://vuln.go.dev
for program in "$pulumi" "$(dirname "$pulumi")/pulumi-language-python" "$MICROCLUSTER_HOME"/pulumi/plugins/resource-command-*/pulumi-*; do
    scan "$program"
    judge modules "$(basename "$program")"
done
if python -m ruff check --quiet --output-format concise .; then
    echo "audit: ruff, with all security rules: nothing to mend, exceptions in pyproject.toml"
else
    failed="$failed ruff"
fi
if ! git rev-parse --quiet --verify HEAD > /dev/null 2>&1; then
    echo "audit: gitleaks: left out: this folder has no history"
elif timeout 300 "$tools/gitleaks" git --no-banner --log-level error --verbose --redact --log-opts HEAD --config $here/gitleaks.toml .; then
    echo "audit: gitleaks, of the whole history: no secret, exceptions in $here/gitleaks.toml"
else
    echo "    If one is real, revoke it first: the history keeps it. If it is made up, except it in $here/gitleaks.toml"
    failed="$failed gitleaks"
fi
[ -z "$failed" ] || {
    echo "audit: failed:$failed"
    exit 1
}
