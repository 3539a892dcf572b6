"""`make audit`: what its tools say becomes a line each and an exit code, and what cannot be looked at is said."""

import hashlib
import io
import json
import subprocess
from pathlib import Path

import pytest

from microcluster.setup.environment import PROJECT, PYTHON
from tests.audit import __main__ as audit

HERE = PROJECT / "tests" / "audit"
SKIPPED = {"name": "jinja2", "skip_reason": "Dependency not found on PyPI and could not be audited: jinja2 (3.1.2)"}
CLEAN = {"name": "pip", "version": "26.0", "vulns": []}
WEAK = {
    "name": "jinja2",
    "version": "3.1.2",
    "vulns": [
        {"id": "PYSEC-2024-1", "fix_versions": ["3.1.4"], "aliases": ["CVE-2024-34064"], "description": "xmlattr"}
    ],
}
"""As pip-audit 2.10 writes them."""


def finding(osv: str, module: str) -> dict[str, object]:
    trace = [{"module": module, "version": "v0.39.0", "package": f"{module}/ssh", "function": "NewClientConn"}]
    return {"finding": {"osv": osv, "fixed_version": "v0.43.0", "trace": trace}}


def stream(*messages: dict[str, object]) -> str:
    """Write messages as govulncheck 1.9 does."""
    started = {"config": {"protocol_version": "v1.0.0", "scanner_name": "govulncheck", "scan_mode": "binary"}}
    return "".join(f"{json.dumps(each, indent=2)}\n" for each in (started, *messages))


@pytest.fixture
def judged(monkeypatch, tmp_path, capsys):
    """Judge a report, with one exception; return the exit code and the lines."""
    exceptions = tmp_path / "exceptions.toml"
    exceptions.write_text('[[exceptions]]\nids = ["GO-2025-4116"]\nreason = "nothing of ours speaks ssh by it"\n')
    monkeypatch.setattr(audit, "EXCEPTIONS", exceptions)

    def judge(kind: str, text: str) -> tuple[int, list[str]]:
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        return audit.main(kind, "x"), capsys.readouterr().out.splitlines()

    return judge


def test_a_vulnerable_package_fails_with_its_id_and_the_fixed_version(judged):
    code, lines = judged("packages", json.dumps({"dependencies": [CLEAN, WEAK], "fixes": []}))
    assert (code, lines[0]) == (1, "audit: x: 1 to mend, 0 excepted")
    assert lines[1].startswith("    PYSEC-2024-1: jinja2 3.1.2, fixed in 3.1.4. Take a fixed version, or except it")


def test_packages_without_a_weakness_pass(judged):
    assert judged("packages", json.dumps({"dependencies": [CLEAN, SKIPPED]})) == (
        0,
        ["audit: x: 0 to mend, 0 excepted"],
    )


@pytest.mark.parametrize("report", [json.dumps({"dependencies": [SKIPPED, SKIPPED]}), "ConnectionError(", "{}"])
def test_an_index_that_knows_no_weaknesses_is_said_and_is_no_failure(judged, report):
    code, [line] = judged("packages", report)
    assert code == 0
    assert line.startswith("audit: x: left out: ")


def test_a_weak_module_fails_once_and_an_excepted_one_does_not(judged):
    weak = finding("GO-2026-5005", "golang.org/x/crypto")
    code, lines = judged("modules", stream(weak, weak, finding("GO-2025-4116", "golang.org/x/crypto")))
    assert (code, lines[0]) == (1, "audit: x: 1 to mend, 1 excepted")
    assert lines[1].startswith("    GO-2026-5005: golang.org/x/crypto v0.39.0, fixed in v0.43.0. ")
    assert len(lines) == 2


def test_modules_without_a_weakness_pass(judged):
    assert judged("modules", stream({"progress": {"message": "}\n{"}})) == (0, ["audit: x: 0 to mend, 0 excepted"])


def test_each_exception_has_ids_and_a_reason():
    rules = audit.tomllib.loads(audit.EXCEPTIONS.read_text())["exceptions"]
    assert all(rule["ids"] and len(rule["reason"].split()) > 5 for rule in rules)


@pytest.fixture
def tools(tmp_path):
    """Tools that find nothing, where `make audit` keeps its own, and its environment."""
    read = b"".join((HERE / name).read_bytes() for name in ("build.sh", "go.mod", "go.sum", "pip-audit.lock"))
    folder = tmp_path / "cache" / "audit" / hashlib.sha256(read).hexdigest()[:12]
    program(folder / "venv" / "bin" / "python", f"echo '{json.dumps({'dependencies': [CLEAN]})}'")
    program(folder / "govulncheck", 'case "$*" in *vuln.go.dev*) echo "no such host" >&2; exit 1 ;; esac; echo "{}"')
    program(folder / "gitleaks", "true")
    return folder


def program(path: Path, line: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def run(folder: Path) -> subprocess.CompletedProcess[str]:
    homes = {"MICROCLUSTER_HOME": str(folder), "MICROCLUSTER_CACHE": str(folder / "cache")}
    environment = {**homes, "PATH": f"{PYTHON.parent}:/usr/bin:/bin"}
    return subprocess.run([HERE / "run.sh"], env=environment, capture_output=True, text=True, check=False, timeout=120)


def test_all_checks_without_a_finding_pass(tools, tmp_path):
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "audit: requirements.lock: 0 to mend, 0 excepted" in done.stdout
    assert "audit: pulumi: 0 to mend" in done.stdout


def test_a_secret_in_the_history_fails_with_what_to_do(tools, tmp_path):
    program(tools / "gitleaks", "echo 'Fingerprint: 2b7e:keys.py:generic-api-key:28'; exit 1")
    done = run(tmp_path)
    assert done.returncode == 1
    assert "Fingerprint: 2b7e:keys.py" in done.stdout and "revoke it first" in done.stdout
    assert done.stdout.splitlines()[-1] == "audit: failed: gitleaks"


def test_a_tool_that_does_not_work_is_said_and_fails_nothing_else(tools, tmp_path):
    program(tools / "govulncheck", "echo 'out of memory' >&2; exit 1")
    done = run(tmp_path)
    assert done.returncode == 0
    assert "audit: pulumi: left out: out of memory" in done.stdout


def test_a_database_with_another_sum_is_not_used(tmp_path):
    (tmp_path / "module" / "data" / "osv").mkdir(parents=True)
    (tmp_path / "module" / "json").write_text(f'{{\n\t"Sum": "h1:other",\n\t"Dir": "{tmp_path}/module",\n}}\n')
    program(tmp_path / "bin" / "go", f'case "$*" in *download*) cat {tmp_path}/module/json ;; esac')
    program(tmp_path / "bin" / "python", f"mkdir -p venv/bin && ln -s {tmp_path}/bin/true venv/bin/python")
    program(tmp_path / "bin" / "true", "exit 0")
    path = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}
    argv = [HERE / "build.sh", tmp_path / "tools"]
    done = subprocess.run(argv, env=path, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "has another sum than h1:" in done.stderr and "nothing of it is used" in done.stderr
    assert not (tmp_path / "tools").exists()
