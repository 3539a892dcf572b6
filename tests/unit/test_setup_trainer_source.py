"""OpenSeq2Seq's source: out of a git directory, a folder or the public repository, and what is said without one."""

import subprocess
from dataclasses import replace

import pytest

from microcluster.jobs.openseq2seq import COMMIT, SOURCE
from microcluster.jobs.texar import SOURCE as TEXAR
from microcluster.setup import trainer_source
from microcluster.setup.errors import CommandFailed
from microcluster.setup.image_build import input_hash
from microcluster.setup.images import _write_trainers
from microcluster.setup.trainer_source import CONTEXT, Source, find, inputs


def git(folder, *words):
    settings = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main")
    done = subprocess.run(("git", *settings, *words), cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def pinned(upstream, tmp_path):
    """OpenSeq2Seq as it is pinned, but at the first commit of our own repository, which only a test that says so can reach."""
    first = git(upstream, "rev-list", "--max-parents=0", "HEAD")
    files = content_of(upstream, first, tmp_path / "parts")
    return replace(SOURCE, repository=f"file://{tmp_path}/nowhere", commit=first, content=files)


@pytest.fixture
def upstream(tmp_path):
    """A git repository of the source's layout, whose first commit is the pinned one; its work tree is a later one."""
    folder = tmp_path / "upstream"
    (folder / "open_seq2seq" / "models").mkdir(parents=True)
    (folder / "docs").mkdir()
    for name in ("LICENSE", "run.py", "tokenizer_wrapper.py", "docs/index.html", "open_seq2seq/models/model.py"):
        (folder / name).write_text(f"{name}\n")
    git(folder, "init", "--quiet")
    git(folder, "add", "-A")
    git(folder, "commit", "--quiet", "-m", "pinned")
    (folder / "run.py").write_text("later\n")
    git(folder, "commit", "--quiet", "-am", "later")
    return folder


def content_of(repository, commit, target):
    git(repository.parent, "clone", "--quiet", str(repository), str(target / "all"))
    git(target / "all", "checkout", "--quiet", commit)
    (target / "parts").mkdir()
    subprocess.run(("cp", "-r", *SOURCE.parts, str(target / "parts")), cwd=target / "all", check=True)
    return input_hash(target / "parts", "", {})


@pytest.fixture
def said():
    return []


def taken(pinned, said, tmp_path, **environment):
    return find(pinned, environment, tmp_path / "cache", said.append)


def test_the_pinned_commit_is_taken_from_git_whatever_is_checked_out(upstream, pinned, said, tmp_path):
    bare = tmp_path / "bare.git"
    git(tmp_path, "clone", "--quiet", "--bare", str(upstream), str(bare))
    for named in (upstream, bare):
        source = taken(pinned, said, tmp_path, **{SOURCE.variable: str(named)})
        assert source.name == f"OpenSeq2Seq {COMMIT}"
        assert (source.folder / "run.py").read_text() == "run.py\n"
        assert sorted(path.name for path in source.folder.iterdir()) == sorted(SOURCE.parts)
    assert said == []


def test_a_folder_with_the_pinned_files_is_that_commit_and_others_unknown(upstream, pinned, said, tmp_path):
    git(upstream, "checkout", "--quiet", "HEAD~1")
    (upstream / ".git").rename(tmp_path / "elsewhere")
    (upstream / "open_seq2seq" / "__pycache__").mkdir()
    (upstream / "open_seq2seq" / "__pycache__" / "a.pyc").write_bytes(b"compiled")
    assert taken(pinned, said, tmp_path, **{SOURCE.variable: str(upstream)}).name == f"OpenSeq2Seq {COMMIT}"
    (upstream / "run.py").write_text("changed\n")
    name = taken(pinned, said, tmp_path, **{SOURCE.variable: str(upstream)}).name
    assert name.startswith("OpenSeq2Seq of unknown commit, files ")
    assert SOURCE.among(["Texar 0.2.4", name]) == name


def test_sources_taken_once_are_used_without_the_variable_unless_they_changed(upstream, pinned, said, tmp_path):
    source = taken(pinned, said, tmp_path, **{SOURCE.variable: str(upstream)})
    assert taken(pinned, said, tmp_path) == source
    added = inputs([source])
    assert added[f"{CONTEXT}/TRAINER"] == f"OpenSeq2Seq {COMMIT}\n".encode()
    assert added[f"{CONTEXT}/OpenSeq2Seq/open_seq2seq/models/model.py"] == b"open_seq2seq/models/model.py\n"
    (source.folder / "run.py").write_text("damaged\n")
    assert taken(pinned, said, tmp_path) is None


def test_the_public_repository_gives_the_pinned_commit_alone(upstream, pinned, said, tmp_path, monkeypatch):
    git(upstream, "config", "uploadpack.allowAnySHA1InWant", "true")
    reachable = replace(pinned, repository=f"file://{upstream}")
    assert taken(reachable, said, tmp_path).name == f"OpenSeq2Seq {COMMIT}"
    assert said == []


def test_without_the_source_one_line_says_why_and_how_to_get_it(pinned, said, tmp_path, monkeypatch):
    assert taken(pinned, said, tmp_path) is None
    (line,) = said
    assert "the stand-in trains" in line
    assert f"{SOURCE.variable}=FOLDER-OR-GIT-DIRECTORY make images" in line
    monkeypatch.setenv("PATH", str(tmp_path))  # It asks nobody.
    assert taken(pinned, said, tmp_path, **{SOURCE.variable: "none"}) is None
    assert f"because {SOURCE.variable} is none" in said[1]


def test_a_repository_that_gives_no_answer_is_given_up_after_a_limit(pinned, said, tmp_path, monkeypatch):
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}:/usr/bin:/bin")
    monkeypatch.setattr(trainer_source, "REACH_LIMIT_S", 0.2)
    assert taken(pinned, said, tmp_path) is None
    assert "git: no answer within" in said[0]


@pytest.mark.parametrize("made", ["nothing", "empty folder", "another repository"])
def test_a_named_source_that_is_none_is_an_error(made, pinned, said, tmp_path):
    named = tmp_path / "named"
    if made != "nothing":
        named.mkdir()
    if made == "another repository":
        git(named, "init", "--quiet")
    with pytest.raises(CommandFailed, match=rf"{SOURCE.variable}={named}: .*\. (Name|Fetch)"):
        taken(pinned, said, tmp_path, **{SOURCE.variable: str(named)})


def test_what_the_image_can_train_with_is_written_down_and_taken_back(tmp_path):
    file = tmp_path / "cache" / "images" / "trainer"
    sources = [Source(pinned, tmp_path, pinned.content) for pinned in (SOURCE, TEXAR)]
    _write_trainers(file, sources)
    assert file.read_text() == f"OpenSeq2Seq {COMMIT}\nTexar 0.2.4\n"
    assert inputs(sources)[f"{CONTEXT}/TRAINER"] == file.read_bytes()
    _write_trainers(file, [])
    assert file.read_text() == ""
