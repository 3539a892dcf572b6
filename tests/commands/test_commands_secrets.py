"""Canaries for every key: after an up, a failing up and a destroy at the highest log level none is found where it need not be."""

import base64
import json
import os
import subprocess
import threading
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands.rented_project import LOCAL, ROOT, RentedProject
from tests.integration.conftest import AccountEmulator

pytestmark = pytest.mark.timeout(300)
API_KEY = 'c0ffee/api+key"of\\the=account'
REGISTRY_KEY = 'c0ffee/registry+key"of\\ngc='
OTHER_KEY = "0123456789abcdef0123456789abcdef"
MALFORMED = f"api_key = {OTHER_KEY}\n"
COMMANDS = [
    ("pulumi", "up", "--yes", "--skip-preview", "--refresh", "-s", "local"),
    ("fab", "receipt", "--stack", "local"),
]
LOUD = ("-v=9", "--logtostderr", "--logflow")
SAMPLE_EVERY_S = 0.1


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountEmulator]:
    state = tmp_path_factory.mktemp("account")
    (state / "authorization").write_text(f"Authorization: Bearer {API_KEY}\n")
    with AccountEmulator(state, reclaim_s=60.0, history=True) as emulator:
        yield emulator


@pytest.fixture(scope="module")
def project(clone: RentedProject) -> RentedProject:
    (clone.home.root / ".softlayer").write_text(MALFORMED)  # Of the person, and not the one that is named.
    # Not in a plain pulumi's environment, which its plugins inherit, but where the README says: a file.
    key = clone.home.root / "ngc_key"
    key.write_text(REGISTRY_KEY)
    key.chmod(0o600)
    return clone


def forms(secret: str) -> set[bytes]:
    """Write a secret in every way in which it may stand in a file."""
    plain = [secret, json.dumps(secret)[1:-1], urllib.parse.quote(secret, safe=""), urllib.parse.quote_plus(secret)]
    return {each.encode() for each in plain} | {base64.b64encode(secret.encode()), repr(secret)[1:-1].encode()}


def canaries(project: RentedProject) -> set[bytes]:
    private = [path.read_text() for path in (project.home.keys / "local").iterdir() if path.suffix != ".pub"]
    every = [line for text in private for line in text.splitlines()[1:-1] if len(line) > 40]
    lines = [
        line for line in every if every.count(line) == 1
    ]  # All keys of a kind begin alike, a machine's own included.
    assert len(lines) >= 4
    return {form for secret in (API_KEY, REGISTRY_KEY, *private, *lines) for form in forms(secret)}


class Sampler(threading.Thread):
    """Reads command line and environment of every process again and again while something runs."""

    def __init__(self, wanted: set[bytes]) -> None:
        super().__init__(daemon=True)
        self.wanted, self.found, self.over, self.looks = wanted, set(), threading.Event(), 0

    def run(self) -> None:
        while not self.over.wait(SAMPLE_EVERY_S):
            self.looks += 1
            for folder in Path("/proc").iterdir():
                if folder.name.isdecimal() and int(folder.name) != os.getpid():
                    self._look(folder)

    def _look(self, folder: Path) -> None:
        for name in ("cmdline", "environ"):
            try:
                content = (folder / name).read_bytes()
            except OSError:
                continue
            if any(each in content for each in self.wanted):
                self.found.add((name, content[:80]))


def leaks(project: RentedProject, account: AccountEmulator, wanted: set[bytes]) -> list[str]:
    """Name every file that holds a canary, but for the files whose business that is."""
    sources = {account.config_file, account.state / "authorization", project.home.root / "ngc_key"}
    files = [path for folder in (project.home.root, account.state) for path in folder.rglob("*") if path.is_file()]
    looked_at = [path for path in files if path.resolve() not in {each.resolve() for each in sources}]
    own = [path for path in looked_at if project.home.keys not in path.parents]
    assert any(path.name == "local.json" for path in own) and any(path.suffix == ".jsonl" for path in own)
    return [str(path) for path in own if any(each in path.read_bytes() for each in wanted)]


def test_no_key_is_found_outside_its_file_after_up_failure_and_destroy(project, account) -> None:
    wanted = canaries(project)
    sampler = Sampler(wanted)
    sampler.start()
    up = project.run("pulumi", "up", "--yes", "--skip-preview", "-s", "local", *LOUD)
    assert up.returncode == 0, (up.stdout + up.stderr)[-3000:]
    stack = project.folder / LOCAL
    stack.write_text(stack.read_text().replace("datacenter: lon06", "datacenter: lon06\n    router: 99999"))
    failing = project.run("pulumi", "up", "--yes", "--skip-preview", "-s", "local", *LOUD)
    assert failing.returncode != 0
    receipt = project.run("fab", "receipt", "--json")
    destroy = project.run("pulumi", "destroy", "--yes", "--skip-preview", "-s", "local", *LOUD)
    assert destroy.returncode == 0, (destroy.stdout + destroy.stderr)[-3000:]
    sampler.over.set()
    sampler.join()
    said = [each.stdout + each.stderr for each in (up, failing, receipt, destroy)]
    assert not any(each in text.encode() for text in said for each in wanted)
    assert leaks(project, account, wanted) == []
    assert sampler.looks > 20 and not sampler.found


def test_no_malformed_file_of_keys_is_quoted(project, account) -> None:
    whole = account.config_file.read_text()
    account.config_file.write_text(MALFORMED)
    for command in COMMANDS:
        done = project.run(*command)
        said = done.stdout + done.stderr
        assert done.returncode != 0
        assert "softlayer.conf: not a [softlayer] file" in said, said
        assert OTHER_KEY[:8] not in said and "Traceback" not in said
    account.config_file.write_text(whole)


def test_the_search_finds_what_is_there(project, account) -> None:
    secrets = {
        "raw.log": API_KEY,
        "json.log": json.dumps(REGISTRY_KEY),
        "b64.log": base64.b64encode(API_KEY.encode()).decode(),
    }
    planted = [project.home.root / name for name in secrets]
    for path in planted:
        path.write_text(f"x{secrets[path.name]}x")
    (project.home.state / "x.jsonl").write_text("{}")
    assert sorted(leaks(project, account, canaries(project))) == sorted(map(str, planted))
    for path in planted:
        path.unlink()


def test_the_sampler_sees_an_environment(project) -> None:
    sampler = Sampler(canaries(project))
    sampler.start()
    subprocess.run(["sleep", "1"], env={"SL_API_KEY": API_KEY}, check=True)
    sampler.over.set()
    sampler.join()
    assert {name for name, _ in sampler.found} == {"environ"}


def test_a_plain_preview_refuses_a_key_in_a_stack_file_unquoted(project) -> None:
    (project.folder / "__main__.py").write_bytes((ROOT / "__main__.py").read_bytes())
    stack = project.folder / LOCAL
    stack.write_text(stack.read_text().replace("config:\n", "config:\n  softlayer:apiKey: c0ffee-a-key\n", 1))
    done = project.run("pulumi", "preview", "--non-interactive", "-s", "local")
    said = done.stdout + done.stderr
    assert done.returncode != 0 and "softlayer:apiKey" in said, said
    assert "c0ffee" not in said and "Traceback" not in said
