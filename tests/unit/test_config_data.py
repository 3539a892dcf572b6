"""``job.data``: finished data of an address or of this computer, and what is refused with its path before anything is ordered."""

import hashlib
import tarfile

import pytest
from test_config import problems, written

from microcluster.config import stack as config
from microcluster.jobs.openseq2seq_datasets import DATASETS

SHA256 = "ab" * 32
ADDRESS = "https://example.com/sets/wmt16.tar.gz"
NAMES = DATASETS["wmt16-en-de"].files


@pytest.mark.parametrize("ending", ["tar", "tar.gz", "tgz", "tar.xz", "txz"])
def test_the_address_of_a_tar_is_taken_with_or_without_its_hash(ending):
    bare = config.parse("dev", written(job__data=f"https://example.com/a/b.{ending}")).data
    assert (bare.address, bare.sha256, bare.path) == (f"https://example.com/a/b.{ending}", None, None)
    pinned = config.parse("dev", written(job__data=f"https://example.com:8443/b.{ending}#sha256={SHA256}")).data
    assert (pinned.address, pinned.sha256) == (f"https://example.com:8443/b.{ending}", SHA256)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("http://example.com/a.tar", "'http' is not https"),
        ("file:///etc/passwd", "'file' is not https"),
        ("https://user:hunter2@example.com/a.tar", "holds a user name, a key or a query"),
        ("https://example.com/a.tar?sig=hunter2", "holds a user name, a key or a query"),
        ("http://user:hunter2@example.com/a.tar", "holds a user name, a key or a query"),
        ("https://example.com/a.zip", "is not the https address of a tar"),
        ("https:///a.tar", "is not the https address of a tar"),
        ("https://example.com/../a.tar", "is not the https address of a tar"),
        (f"https://example.com/a.tar#sha256={SHA256.upper()}", "is not the https address of a tar"),
        ("https://example.com/a.tar\nX: y", "is not the https address of a tar"),
        ("https://example.com/$(reboot).tar", "is not the https address of a tar"),
        ("https://example.com/" + "a" * 2000 + ".tar", "is not the https address of a tar"),
        ("wmt16", "is not the path of a file"),
        ("~/a/../../etc", "has '..' or special characters in it"),
    ],
)  # fmt: skip
def test_wrong_data_are_refused_with_their_path_and_without_secrets(value, problem):
    (found,) = problems(written(job__data=value))
    assert found.startswith("job/data: ")
    assert problem in found
    assert "hunter2" not in found


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path / "home"))
    made = tmp_path / "wmt16"
    made.mkdir()
    for name in (*NAMES, "README"):
        (made / name).write_text(name)
    return made


def find_files(path):
    return config.with_files(config.parse("dev", written(job__data=str(path)))).data


def tar_of(folder, path, mode="w", names=NAMES):
    with tarfile.open(path, mode) as archive:
        for name in names:
            archive.add(folder / name, f"wmt16_de_en/{name}")
    return path


def test_a_folder_is_identified_by_the_files_that_the_job_wants(folder):
    data = find_files(folder)
    hashes = {name: hashlib.sha256(name.encode()).hexdigest() for name in NAMES}
    assert {file.name: file.sha256 for file in data.files} == hashes
    before = data.id
    (folder / "README").write_text("something else")
    assert find_files(folder).id == before
    (folder / NAMES[1]).write_text("other sentences")
    assert find_files(folder).id != before


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_a_tar_is_known_by_its_hash_wherever_it_lies(folder, tmp_path, mode):
    tar = tar_of(folder, tmp_path / "t.tar", mode)
    sha256 = hashlib.sha256(tar.read_bytes()).hexdigest()
    data = find_files(tar)
    assert [(file.name, file.sha256) for file in data.files] == [("t.tar", sha256)]
    assert data.id == config.parse("dev", written(job__data=f"{ADDRESS}#sha256={sha256}")).data.id


def test_what_is_not_there_is_refused_with_its_names(folder, tmp_path):
    (folder / NAMES[1]).unlink()
    lacking = tar_of(folder, tmp_path / "t.tar", names=NAMES[:1])
    (tmp_path / "no.tar").write_text("no tar at all")
    for path, problem in (
        (folder, f"does not hold {NAMES[1]}"),
        (lacking, "is a tar that does not hold"),
        (tmp_path / "nowhere", "is neither a folder nor a file of this computer"),
        (tmp_path / "no.tar", "is neither a folder nor a whole tar"),
    ):
        with pytest.raises(config.ConfigError, match=f"nothing was ordered\n  job/data: .*{problem}"):
            find_files(path)


def test_a_file_that_cannot_be_read_is_a_sentence_with_its_path(folder):
    (folder / NAMES[0]).unlink()
    (folder / NAMES[0]).symlink_to("/proc/self/mem")
    with pytest.raises(config.ConfigError, match="job/data: .*: Input/output error"):
        find_files(folder)


def test_a_file_is_read_once_and_again_when_it_has_changed(folder, tmp_path, monkeypatch):
    tar = tar_of(folder, tmp_path / "t.tar")
    first = find_files(tar)
    monkeypatch.setattr("microcluster.config.local_files._members", lambda path: pytest.fail("it was read again"))
    monkeypatch.setattr("hashlib.file_digest", lambda *words: pytest.fail("it was read again"))
    assert find_files(tar) == first
    monkeypatch.undo()
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path / "home"))
    (folder / NAMES[0]).write_text("longer than before" * 999)
    assert find_files(tar_of(folder, tmp_path / "t.tar")).id != first.id


def test_commands_on_a_living_stack_do_not_need_data_that_were_sent(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "STACKS", tmp_path)
    values = "".join(f"  {key}: {value}\n" for key, value in written(job__data="/nowhere/at/all").items())
    (tmp_path / "Pulumi.dev.yaml").write_text("config:\n" + values)
    assert config.read_file("dev").data.path
    with pytest.raises(config.ConfigError, match="job/data: /nowhere/at/all is neither"):
        config.read_file("dev", ordering=True)
