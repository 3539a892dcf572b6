"""Hosts that a person names, against the real ssh of this computer and an ssh server on loopback."""

import getpass
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import paramiko
import pytest
from ssh_server import SshServer

from microcluster.accounts.queue.account import account_of
from microcluster.commands.trust import confirm
from microcluster.jobs.cluster_facts import ClusterFacts, Queue
from microcluster.remote import openssh
from microcluster.remote.errors import LoginRefusedError, RemoteError, UnreachableError
from microcluster.remote.host import wait_for_ssh
from microcluster.remote.openssh import ssh_argv
from microcluster.remote.parallel import on_all
from microcluster.remote.steps import open_hosts
from tests.hostile.machine import _greet
from tests.hostile.manners import MANNERS
from tests.hostile.truth import Answer
from tests.recorded import recorded

NAME, ALL_LIMITS_S = "login.site.edu", 20
LOGINS = ("no banner", "endless banner", "long banner", "garbage", "closed", "slow banner")


def opened(named):
    """Return the login host of a stack whose file names it, as the steps of `make up` open it."""
    facts = ClusterFacts("dev", "1f3a9c42", queue=Queue("gpu", 2, 4, 3600), account_config_file=str(named))
    return open_hosts(facts)[0]


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    for name in ("host", "other", "mine"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", folder / name], check=True)
    return folder


@pytest.fixture
def served(keys):
    """Return what starts a server of `site`'s key with options."""
    servers = []

    def serve(allowed="mine", **options):
        host, mine = (paramiko.Ed25519Key.from_private_key_file(str(keys / name)) for name in ("host", allowed))
        servers.append(SshServer(host, mine, **options))
        return servers[-1]

    yield serve
    for server in servers:
        server.close()


@pytest.fixture
def server(served):
    return served()


@pytest.fixture
def site(tmp_path, keys, server):
    """Return a function that writes a configuration of host `site` with further lines, and opens the host."""
    hosts = []

    def write(*lines, known="login.site.edu KEY\n", port=server.port):
        (tmp_path / "known").write_text(with_keys(keys, known))
        usual = ("HostName 127.0.0.1", f"Port {port}", "User me", f"IdentityFile {keys / 'mine'}", "IdentitiesOnly yes")
        usual += (f"HostKeyAlias {NAME}", f"UserKnownHostsFile {tmp_path / 'known'}", "GlobalKnownHostsFile none")
        (tmp_path / "config").write_text("\n".join(("Host site", *usual, *lines)) + "\n")
        hosts.append(opened(tmp_path / "config"))
        return hosts[-1]

    yield write
    for host in hosts:
        host._disconnect()


def running():
    """Return the command lines of all processes."""
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            yield each.read_text()


def with_keys(keys, text):
    for word, name in (("KEY", "host"), ("OTHER", "other")):
        text = text.replace(word, (keys / f"{name}.pub").read_text().strip())
    return text


@recorded("ssh_config")
def test_a_configuration_means_what_it_means_to_ssh(answer, tmp_path):
    for name, text in {"config": answer.answer, **answer.asked.get("files", {})}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text.replace("FOLDER", str(tmp_path)))
    host = opened(" ".join((str(tmp_path / "config"), answer.asked.get("alias", ""))).strip())
    alias, *expected = answer.expected.items()
    for keyword, value in expected:
        here = value.replace("LOCAL_USER", getpass.getuser()).replace("HOME", str(Path.home()))
        assert host.settings[keyword] == here
    assert (host.facts.name, host.user) == (alias[1], host.settings["user"])


@recorded("known_hosts")
def test_host_keys_are_judged_as_ssh_judges_them(answer, site, server):
    host, before = site(known=answer.answer), len(server.tries)
    if "says" in answer.expected:
        with pytest.raises(
            RemoteError, match=f"{answer.expected['says']}.*compared the host key.*: ssh -F .*config site"
        ):
            host.connect()
        assert len(server.tries) == before
    else:
        assert host.run(("echo", "there")).stdout == "there\n"


@pytest.mark.parametrize("text", ["", "Host *\n  User me\n", "Host jump\nHost *.edu\n  ProxyJump jump\n"])
def test_a_file_without_a_host_of_its_own_asks_for_an_alias(tmp_path, text):
    (tmp_path / "config").write_text(text)
    with pytest.raises(RemoteError, match=r"no `Host` with a name. Name one behind the file: .*config ALIAS"):
        opened(tmp_path / "config")
    with pytest.raises(RemoteError, match="reading the login host in .*nowhere: No such file"):
        opened(tmp_path / "nowhere")


def test_the_persons_own_file_is_read_with_that_of_the_computer(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text("Host site\n")
    host = opened(f"{tmp_path}/.ssh/config site")
    assert ssh_argv(host, [host]) == ("ssh", "--", "site")


def test_a_line_that_ssh_cannot_read_is_named_at_once(site):
    with pytest.raises(RemoteError, match="config: line 10: Bad configuration option: nonsense") as raised:
        wait_for_ssh(site("Nonsense yes"), timeout_s=5)
    assert raised.type is RemoteError


def test_a_home_with_a_name_too_long_for_a_socket_works(site, tmp_path, monkeypatch):
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path / ("long" * 20)))
    host = site()
    assert host.run(("echo", "there")).stdout == "there\n"
    place = Path(host._connection.path).parent
    assert (place.parent, place.stat().st_mode & 0o777) == (Path("/tmp"), 0o700)


def test_the_login_host_is_reached_through_a_jump_host(site, served, keys, tmp_path):
    jump = served(is_jump=True)
    (tmp_path / "jump_known").write_text(with_keys(keys, f"[127.0.0.1]:{jump.port} KEY\n"))
    lines = ("HostName 127.0.0.1", f"Port {jump.port}", f"IdentityFile {keys / 'mine'}", "User me")
    host = site("ProxyJump jump", "Host jump", *lines, f"UserKnownHostsFile {tmp_path / 'jump_known'}")
    assert host.run(("echo", "there")).stdout == "there\n"
    assert jump.forwarded == 1


def test_an_unknown_key_of_a_jump_host_is_refused_without_a_question(site, served, monkeypatch, tmp_path):
    (tmp_path / "asks").write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\necho yes\n")
    (tmp_path / "asks").chmod(0o755)
    monkeypatch.setenv("SSH_ASKPASS", str(tmp_path / "asks"))
    monkeypatch.setenv("DISPLAY", ":0")
    lines = ("HostName 127.0.0.1", f"Port {served(is_jump=True).port}", f"UserKnownHostsFile {tmp_path / 'empty'}")
    with pytest.raises(RemoteError, match="asking ssh for site"):
        site("ProxyJump jump", "Host jump", *lines).connect()
    assert not (tmp_path / "asked").exists()


def test_a_connection_runs_no_command_that_its_configuration_adds(site, tmp_path):
    more = ("PermitLocalCommand yes", f"LocalCommand touch {tmp_path}/run", "RemoteCommand false", "RequestTTY force")
    assert site(*more).run(("echo", "there")).stdout == "there\n"
    assert not (tmp_path / "run").exists()


def test_a_command_without_an_exit_code_is_a_lost_connection(site, served):
    host = site(port=served(run=lambda channel, command: channel.close()).port)
    with pytest.raises(UnreachableError, match="running `true"):
        host.run(("true",))


def test_a_command_that_waits_too_long_for_its_turn_says_so(site, monkeypatch):
    host = site()
    host.connect()
    monkeypatch.setattr(openssh, "COMMAND_TIMEOUT_S", 0.1)
    for _ in range(openssh.SESSIONS):
        host._connection.sessions.acquire()
    with pytest.raises(UnreachableError, match="10 other commands take too long. Run the same command again"):
        host.run(("true",))


def test_nothing_of_the_configuration_is_run_before_a_command_connects(site, tmp_path):
    host = site(f'Match exec "echo >>{tmp_path}/run"')
    account_of(str(tmp_path / "config"), {})
    assert not (tmp_path / "run").exists()
    host.connect()
    assert (tmp_path / "run").exists()


def test_the_configuration_is_read_once_for_a_connection(site, tmp_path):
    host = site(f'Match exec "echo >>{tmp_path}/run"')
    host.connect()
    before = (tmp_path / "run").read_text()
    assert host.run(("echo", "again")).stdout == "again\n"
    assert (tmp_path / "run").read_text() == before


def test_a_login_that_is_refused_is_tried_once(site, served):
    strict = served(allowed="other")
    host = site(port=strict.port)
    with pytest.raises(LoginRefusedError, match="Permission denied.*by hand.*: ssh -F .* site"):
        wait_for_ssh(host, timeout_s=5, every_s=0.01)
    assert len(strict.tries) == 1


def test_without_ssh_on_this_computer_the_package_is_named(site, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RemoteError, match="Install openssh-client"):
        site().connect()


def test_a_process_has_one_connection_to_a_host_and_none_afterwards(site, server):
    for name in ("first", "second"):
        with closing(site()) as host:
            assert host.run(("echo", name)).stdout == f"{name}\n"
    assert len(server.logins) == 1
    socket = Path(host._connection.path)
    assert (socket.exists(), socket.parent.stat().st_mode & 0o777) == (True, 0o700)
    host._disconnect()
    assert not socket.exists()


def test_a_connection_carries_no_more_commands_at_once_than_sshd_takes(site, served):
    running, most = [], []

    def waits(channel, command):
        running.append(command)
        most.append(len(running))
        time.sleep(0.5)
        running.remove(command)
        channel.send_exit_status(0)
        channel.close()

    host = site(port=served(run=waits).port)
    assert len(on_all([host] * 14, lambda each: each.run(("true",)))) == 14
    assert max(most) == 10


def test_a_login_hosts_key_is_the_persons_own_to_trust(site):
    with pytest.raises(RemoteError, match="log in once: ssh -F .*config site"):
        confirm(site(), yes=True)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("manner", [each for each in MANNERS if each not in ("late", "big", "slow drip", "slow whole")])
def test_an_answer_of_a_hostile_login_host_has_limits(site, served, manner):

    def answers(channel, command):
        with suppress(OSError, EOFError, paramiko.SSHException):
            MANNERS[manner](channel, Answer(b"an answer\n" * 1000))

    hostile = served(run=answers)
    host, began = site(port=hostile.port), time.monotonic()
    try:
        said = host.run(("cat", "file"), timeout_s=1).stdout
        assert said.startswith("an answer\n") or manner in ("plain", "refused")
    except RemoteError as error:
        assert "running `cat" in str(error)
    assert time.monotonic() - began < ALL_LIMITS_S


@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", LOGINS)
def test_what_is_no_ssh_server_is_unreachable_in_time(site, served, monkeypatch, kind):
    monkeypatch.setattr(openssh, "LOGIN_TIMEOUT_S", 1.0)
    hostile = served(greet=lambda connection: _greet(kind, connection))
    began = time.monotonic()
    with pytest.raises(UnreachableError, match="asking ssh for site"):
        site(port=hostile.port).connect()
    assert time.monotonic() - began < ALL_LIMITS_S


def test_a_banner_of_the_login_host_is_not_shown(site, served, capfd):
    hostile = served(banner="\x1b]0;owned\x07" * 100)
    assert site(port=hostile.port).run(("echo", "there")).stdout == "there\n"
    assert "owned" not in "".join(capfd.readouterr())


def test_a_login_that_a_command_does_not_wait_for_ends_with_it(site, served):
    silent = served(greet=lambda connection: time.sleep(30))
    config = site(port=silent.port).argv[-1]
    late = "on_all([NamedHost('site', sys.argv[1])], NamedHost.connect, late='', timeout_s=1)"
    imports = "import sys\nfrom microcluster.remote.openssh import NamedHost\nfrom microcluster.remote.parallel import on_all\n"
    subprocess.run([sys.executable, "-c", imports + late, config], check=True)
    assert [argv for argv in running() if config in argv] == []
