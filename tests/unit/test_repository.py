"""Private repositories and submodules, behind an https server of this computer that asks for a token."""

import base64
import functools
import http.server
import ssl
import subprocess
import threading
import time

import pytest

from emulator.machines.certificates import server_identity
from microcluster.config import repository
from microcluster.config.folder_reader import FolderError, read_tree
from microcluster.config.repository import cloned

TOKEN = "a-token-of-nobody"


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves bare repositories to who has the token."""

    def do_GET(self):
        login = base64.b64decode(self.headers.get("Authorization", "").removeprefix("Basic ")).decode()
        self.server.logins.append((self.headers["Host"].partition(":")[0], login))
        if self.server.hangs:
            time.sleep(60)
        if login.partition(":")[2] == TOKEN:
            return super().do_GET()
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="git"')
        self.send_header("Content-Length", "0")
        return self.end_headers()

    def log_message(self, *_):
        """Print nothing."""


@pytest.fixture
def server(tmp_path, monkeypatch):
    home = tmp_path / "user"
    home.mkdir()
    authority, key = server_identity("localhost", "127.0.0.1")
    (tmp_path / "server.pem").write_text(key + authority)
    (tmp_path / "authority.pem").write_text(authority)
    (home / ".gitconfig").write_text(
        f'[http]\n sslCAInfo = {tmp_path}/authority.pem\n[user]\n name = me\n email = me@site.edu\n[protocol "file"]\n allow = always\n'
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MICROCLUSTER_CACHE", raising=False)
    (tmp_path / "served").mkdir()
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=str(tmp_path / "served"))
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.daemon_threads = True
    server.logins, server.hangs, server.folder = [], False, tmp_path
    server.address = f"https://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()


@pytest.fixture
def key(tmp_path):
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n")
    path.chmod(0o600)
    return str(path)


def git(folder, *words):
    done = subprocess.run(("git", *words), cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def serve(server, name, files, submodule=None):
    """Serve a repository; return its address and commit."""
    work, bare = server.folder / name, server.folder / "served" / name
    work.mkdir()
    git(work, "init", "-q")
    for file, text in files.items():
        (work / file).write_text(text)
    if submodule:
        address, commit = submodule
        (work / ".gitmodules").write_text(f'[submodule "lib"]\n\tpath = lib\n\turl = {address}\n')
        git(work, "update-index", "--add", "--cacheinfo", f"160000,{commit},lib")
    git(work, "add", *files, *([".gitmodules"] if submodule else []))
    git(work, "commit", "-qm", "one")
    git(server.folder, "clone", "-q", "--bare", work, bare)
    git(bare, "update-server-info")
    return f"{server.address}/{name}", git(work, "rev-parse", "HEAD")


def test_a_private_repository_comes_with_its_submodules(server, key):
    library = serve(server, "library", {"code.py": "x = 1\n"})
    address, commit = serve(server, "program", {"train.py": "print()\n"}, library)
    folder = cloned(address, commit, key)
    names = {entry.name for entry in read_tree(folder, "train.py").entries()}
    assert names == {"train.py", ".gitmodules", "lib/code.py"}
    server.logins.clear()
    assert cloned(address, commit, key) == folder
    assert not server.logins, "it is fetched once"


def test_the_token_is_in_no_file_beside_its_own(server, key):
    address, commit = serve(server, "program", {"train.py": "print()\n"})
    cloned(address, commit, key)
    home = server.folder / "home"
    found = [path for path in home.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]
    assert (found, TOKEN in address) == ([], False)


@pytest.mark.parametrize(
    ("token", "commit", "said"),
    [
        ("another", None, "it refuses the login"),
        (None, None, "it refuses the login"),
        (TOKEN, "0123456789abcdef0123456789abcdef01234567", "it has no such commit"),
    ],
)
def test_a_wrong_key_and_an_unknown_commit_are_a_sentence(server, key, token, commit, said):
    address, real = serve(server, "program", {"train.py": "print()\n"})
    if token:
        (server.folder / "token").write_text(token)
    with pytest.raises(FolderError, match=f"cloning {address}: {said}") as refused:
        cloned(address, commit or real, key if token else None)
    assert TOKEN not in str(refused.value)
    assert not list((server.folder / "home" / "cache" / "repositories").glob("*")), "nothing half is left"


def test_a_key_that_others_may_read_is_not_used(server, key, tmp_path):
    (tmp_path / "token").chmod(0o644)
    with pytest.raises(FolderError, match=f"others on this computer may read it. Run 'chmod 600 {key}'"):
        cloned(f"{server.address}/program", "0" * 40, key)
    assert not server.logins


def test_a_host_that_hangs_keeps_nobody(server, key, monkeypatch):
    address, commit = serve(server, "program", {"train.py": "print()\n"})
    server.hangs = True
    monkeypatch.setattr(repository, "TIMEOUT_S", 2)
    with pytest.raises(FolderError, match=f"cloning {address}: not over after 2 s"):
        cloned(address, commit, key)


@pytest.mark.parametrize("address", ["file://FOLDER/secret", "FOLDER/secret", "ext::touch FOLDER/started", "-uFOLDER"])
def test_a_submodule_reaches_nothing_of_this_computer(server, key, address, tmp_path):
    serve(server, "secret", {"code.py": "x = 1\n"})
    hostile = address.replace("FOLDER", str(tmp_path))
    address, commit = serve(server, "program", {"train.py": "print()\n"}, (hostile, "1" * 40))
    with pytest.raises(FolderError, match=f"cloning {address}: "):
        cloned(address, commit, key)
    assert not (tmp_path / "started").exists()


def test_another_host_never_gets_the_token(server, key, tmp_path):
    other = server.address.replace("127.0.0.1", "localhost")
    address, commit = serve(server, "program", {"train.py": "print()\n"}, (f"{other}/library", "1" * 40))
    (tmp_path / "user" / ".gitconfig").open("a").write("[http]\n sslVerify = false\n")
    with pytest.raises(FolderError, match="it refuses the login"):
        cloned(address, commit, key)
    assert ("localhost", "") in server.logins
    assert {name for name, login in server.logins if TOKEN in login} == {"127.0.0.1"}
