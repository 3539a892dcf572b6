"""The account's server as a web page, as another user of this computer, and as a machine see it: by real requests."""

import http.client
import json
import os
import pwd
import stat
import subprocess
import sys
import tempfile
import time
import xmlrpc.client
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.integration.conftest import ROOT, AccountEmulator
from tests.integration.emulator_commands import Commands
from tests.product import free_port

JSON, FORM = "application/json", "application/x-www-form-urlencoded"
CONTROLS = [
    ("GET", "/status", ""),
    ("POST", "/clock", '{"seconds": 86400}'),
    ("POST", "/faults", '{"method": "*", "kind": "error", "times": 9}'),
    ("POST", "/portal/vlan", '{"text": "another"}'),
    ("POST", "/orders/1/approve", ""),
]
READ = "/rest/v3.1/SoftLayer_Account/getObject.json"
GATEWAY, MACHINE = "127.1.0.1", "127.1.0.5"
SERVER = f"""
import sys
from pathlib import Path
from emulator.shared.process import listen
from emulator.shared.server import application, serve
from emulator.softlayer.settings import Settings
from emulator.softlayer.vendor import SOFTLAYER
port = int(sys.argv[2])
settings = Settings(Path(sys.argv[1]), port=port, machines="none", private_subnets=("127.1.0.0/24",))
account = SOFTLAYER.account(settings)
account.store.flush()
app = application(account, SOFTLAYER.routes(account), SOFTLAYER.holdings, port)
serve(app, [listen("127.0.0.1", port), listen("{GATEWAY}", port)], None)
"""
ASK = 'exec 3<>/dev/tcp/127.0.0.1/"$0"; printf "%s" "$1" >&3; cat <&3'
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may act as another user")


def ask(
    port: int, method: str, path: str, body: str = "", *, to: str = "127.0.0.1", by: str = "", **headers: str
) -> int:
    """Send one request; return the status of its answer."""
    connection = http.client.HTTPConnection(to, port, timeout=20, source_address=(by, 0) if by else None)
    try:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        return connection.getresponse().status
    finally:
        connection.close()


def owner(emulator: AccountEmulator) -> dict[str, str]:
    return {"Authorization": f"Bearer {emulator.key}", "Content_Type": JSON}


def shown(emulator: AccountEmulator) -> tuple[str, int, dict[str, int]]:
    """Facts that a caller could have changed; of the clock only the day."""
    status = emulator.status()
    return status["clock"][:10], status["open_billing_items"], status["injected_faults"]


@pytest.mark.parametrize(("method", "path", "body"), CONTROLS)
@pytest.mark.parametrize("authorization", ["", "Bearer local", "Bearer ", "Basic bG9jYWw6bG9jYWw="])
def test_without_its_key_the_account_answers_and_changes_nothing(account_emulator, method, path, body, authorization):
    before = shown(account_emulator)
    given = {"Authorization": authorization} if authorization else {}
    assert ask(account_emulator.port, method, path, body, Content_Type=JSON, **given) == 401
    assert shown(account_emulator) == before


@pytest.mark.parametrize(("method", "path", "body"), [*CONTROLS, ("GET", READ, "")])
@pytest.mark.parametrize("header", ["Origin", "Sec_Fetch_Site"])
def test_a_web_page_is_refused_even_with_the_key(account_emulator, method, path, body, header):
    before = shown(account_emulator)
    more = {header: "http://127.0.0.1"}
    assert ask(account_emulator.port, method, path, body, **owner(account_emulator), **more) == 403
    assert shown(account_emulator) == before


@pytest.mark.parametrize(
    "host", ["evil.test:{}", "evil.test", "127.0.0.1", "127.0.0.1.evil.test:{}", "10.112.7.1:{}", ""]
)
def test_a_name_that_was_bound_again_to_loopback_is_refused(account_emulator, host):
    given = {**owner(account_emulator), "Host": host.format(account_emulator.port)}
    assert ask(account_emulator.port, "GET", "/status", **given) == 421
    assert ask(account_emulator.port, "GET", READ, **given) == 421


def test_the_names_of_loopback_are_good(account_emulator):
    for name in ("127.0.0.1", "localhost", "LocalHost", "[::1]"):
        given = {**owner(account_emulator), "Host": f"{name}:{account_emulator.port}"}
        assert ask(account_emulator.port, "GET", "/status", **given) == 200


@pytest.mark.parametrize("kind", [FORM, "text/plain", "text/plain; charset=utf-8", "multipart/form-data; boundary=a"])
def test_a_blind_form_reaches_nothing(account_emulator, kind):
    before = shown(account_emulator)
    for _, path, body in CONTROLS[1:]:
        given = {**owner(account_emulator), "Content_Type": kind}
        assert ask(account_emulator.port, "POST", path, body, **given) == 415
    call = xmlrpc.client.dumps(({"headers": {}},), "getObject")
    assert ask(account_emulator.port, "POST", "/xmlrpc/v3.1/SoftLayer_Account", call, Content_Type=kind) == 415
    assert shown(account_emulator) == before


def test_packages_are_for_machines_alone(account_emulator):
    for path in ("/packages/simple/pip/", "/packages/files/0/pip.whl"):
        assert ask(account_emulator.port, "GET", path, **owner(account_emulator)) == 403


@pytest.mark.parametrize(
    "body",
    [
        *('{"seconds": NaN}', '{"seconds": Infinity}', '{"seconds": 1e400}', '{"seconds": true}', '{"seconds": "9"}'),
        *('{"seconds": 1e12}', '{"seconds": -1e12}', "{}", "[]", "", "[" * 100_000, '{"seconds": 1, "more": 1}'),
    ],
    ids=lambda body: body[:20],
)
def test_the_clock_refuses_what_is_no_jump(account_emulator, body):
    before = shown(account_emulator)
    assert ask(account_emulator.port, "POST", "/clock", body, **owner(account_emulator)) == 400
    assert shown(account_emulator) == before


FAULT = {"method": "Account::none", "kind": "slow"}


@pytest.mark.parametrize(
    "wanted",
    [
        *(
            [],
            "slow",
            {**FAULT, "times": 0},
            {**FAULT, "times": True},
            {**FAULT, "times": 10**9},
            {**FAULT, "method": 5},
        ),
        *(
            {**FAULT, "seconds": float("nan")},
            {**FAULT, "seconds": -1},
            {**FAULT, "seconds": 1e9},
            {**FAULT, "about": 5},
        ),
        *({**FAULT, "way": ["late"]}, {**FAULT, "kind": {}}),
    ],
    ids=str,
)
def test_a_scripted_fault_of_a_wrong_type_is_refused(account_emulator, wanted):
    assert ask(account_emulator.port, "POST", "/faults", json.dumps(wanted), **owner(account_emulator)) == 400


@pytest.mark.parametrize("wanted", ['{"text": 5}', '{"hourly": "no"}', '{"oops": 1}', "[]", "[" * 100_000])
def test_an_order_in_the_portal_of_a_wrong_type_is_refused(account_emulator, wanted):
    before = shown(account_emulator)
    assert ask(account_emulator.port, "POST", "/portal/vlan", wanted, **owner(account_emulator)) == 409
    assert shown(account_emulator) == before


def test_a_key_is_made_with_the_account_and_gone_with_it(emulator_with):
    first, second = emulator_with(), emulator_with()
    assert len(first.key) > 40 and first.key != second.key
    before = first.key
    first.restart()
    assert first.key == before and before in first.config_file.read_text()


def test_reset_takes_the_key_and_the_next_account_has_another(emulator_with):
    emulator = emulator_with()
    before = emulator.key
    emulator.stop()
    assert Commands(emulator.state).run("reset").returncode == 0
    assert [path.name for path in emulator.state.iterdir()] == ["settings.toml"]
    emulator.start()
    assert emulator.key != before


def test_an_account_of_an_older_version_goes_on_with_a_new_key(emulator_with):
    emulator = emulator_with()
    emulator.stop()
    (emulator.state / "authorization").unlink()
    emulator.config_file.write_text("[softlayer]\nusername = local\napi_key = local\n")
    for each in (emulator.state, *emulator.state.iterdir()):
        each.chmod(0o755 if each.is_dir() else 0o644)
    emulator.restart(api_key="local")
    assert f"api_key = {emulator.key}\n" in emulator.config_file.read_text()
    assert open_to_others(emulator.state) == ["settings.toml"], "what a person wrote stays as it is"


def open_to_others(state: Path) -> list[str]:
    every = [state, *state.rglob("*")]
    return [str(each.relative_to(state)) for each in every if stat.S_IMODE(each.stat().st_mode) & 0o077]


def as_nobody(*argv: str) -> subprocess.CompletedProcess[str]:
    who = pwd.getpwnam("nobody")
    return subprocess.run(
        argv,
        user=who.pw_uid,
        group=who.pw_gid,
        extra_groups=[],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


@pytest.fixture
def reachable() -> Iterator[AccountEmulator]:
    """An account in a folder to which everybody finds the way, of a person whose files others may read."""
    before = os.umask(0o022)
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # noqa: S108 - others may pass there, and not the tests' own folder
        Path(folder).chmod(0o755)
        with AccountEmulator(Path(folder) / "emulator", history=True) as emulator:
            yield emulator
    os.umask(before)


@needs_root
def test_another_user_reads_no_file_of_the_account(reachable):
    assert as_nobody("ls", str(reachable.state.parent)).returncode == 0
    files = [path for path in reachable.state.rglob("*") if path.is_file()]
    assert {"authorization", "softlayer.conf", "account.sqlite", "history.jsonl"} <= {path.name for path in files}
    for path in (reachable.state, *files):
        assert as_nobody("cat", str(path)).stdout == "" and as_nobody("ls", str(path)).returncode != 0
    assert open_to_others(reachable.state) == ["settings.toml"], "what a person wrote stays as it is"


@needs_root
def test_another_user_calls_nothing(reachable):
    before = shown(reachable)
    asked = [*CONTROLS, ("GET", READ, ""), ("GET", "/packages/simple/pip/", "")]
    for method, path, body in asked:
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{reachable.port}\r\nConnection: close\r\n"
        head += f"Authorization: Bearer local\r\nContent-Type: {JSON}\r\nContent-Length: {len(body)}\r\n\r\n"
        answer = as_nobody("bash", "-c", ASK, str(reachable.port), head + body).stdout
        assert answer.split()[1] in ("401", "403"), answer
    assert shown(reachable) == before


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, int]]:
    """A server that also listens on the network of its machines."""
    state, port = tmp_path_factory.mktemp("served"), free_port()
    process = subprocess.Popen([sys.executable, "-c", SERVER, state, str(port)], cwd=ROOT)
    deadline = time.monotonic() + 30
    try:
        while time.monotonic() < deadline and process.poll() is None:
            with suppress(OSError):
                ask(port, "GET", "/")
                break
            time.sleep(0.05)
        yield state, port
    finally:
        process.terminate()
        process.wait(20)


def test_a_machine_gets_packages_and_nothing_else(served):
    state, port = served
    key = "Bearer " + (state / "authorization").read_text().split()[-1]
    assert ask(port, "GET", "/packages/simple/!/", to=GATEWAY, by=MACHINE) == 404, "the index answers: no such project"
    assert ask(port, "GET", "/status", Authorization=key) == 200
    for path in ("/status", READ, "/xmlrpc/v3.1/SoftLayer_Account", "/"):
        assert ask(port, "GET", path, to=GATEWAY, by=MACHINE, Authorization=key) == 403


@pytest.mark.parametrize("by", ["127.0.0.1", GATEWAY])
def test_a_program_of_this_computer_is_no_machine(served, by):
    _, port = served
    for path in ("/packages/simple/!/", "/status"):
        assert ask(port, "GET", path, to=GATEWAY, by=by) == 403
        assert ask(port, "GET", path, to=GATEWAY, by=by, X_Forwarded_For=MACHINE) == 403


def test_a_machine_has_to_name_the_gateway(served):
    _, port = served
    assert ask(port, "GET", "/packages/simple/!/", to=GATEWAY, by=MACHINE, Host=f"127.0.0.1:{port}") == 421
