"""Keys of a program of one's own: the refused and the accepted ones."""

import re
from pathlib import Path

import pytest
from launching import launched, run_id
from test_jobs_kind import RESUMES, own_program

from microcluster.config import stack as config
from microcluster.jobs.cluster_facts import ClusterFacts


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ({"script": "../../etc/passwd.py"}, "job/script: '../../etc/passwd.py' is not the path of a Python script"),
        ({"requirements": ["numpy"]}, "job/requirements/0: 'numpy' is not a pinned requirement"),
        ({"requirements": ["numpy==1; rm -rf /"]}, "job/requirements/0: 'numpy==1; rm -rf /' is not a pinned"),
        ({"checkpoints": r"model-(\d+)\.npz"}, "has no group of the name step"),
        ({"progress": "("}, "job/progress: '(' is no regular expression"),
        ({"progress": "(" * 900}, f"job/progress: '{'(' * 80}' is no regular expression"),
        ({"progress": "(" * 5000}, "String should have at most 1000 characters"),
        ({"checkpoints": r"(?P<step>a{9999999999})"}, "is no regular expression: the repetition number is too large"),
        ({"progress": r"(a+)+ (?P<step>\d+)"}, "repeats what is repeated already, which can take for ever: (a+)+"),
        ({"progress": r"(?P<step>\d*)*"}, "repeats what is repeated already"),
        ({"arguments": "'"}, 'job/arguments: "\'" cannot be split into words'),
        ({"source": "https://example.com/a/program"}, "job/commit: belongs to a repository"),
        ({"source": "https://user:key@example.com/a"}, "job/source: "),
        ({"model": "transformer-base"}, "job/model: unknown key"),
        (
            {"maxSteps": None, "arguments": "-n {maxSteps}"},
            "job/arguments: {maxSteps} cannot be filled in, because job.maxSteps",
        ),
        (
            {"checkpoints": None, "resume": "--resume {checkpoint}"},
            "job/resume: job.checkpoints is not set, so there is nothing",
        ),
        ({"stallS": 5}, "job/stallS: 5 should be greater than or equal to 10"),
        ({"python": "python3 -u"}, "job/python: 'python3 -u' is not a command or an absolute path"),
        ({"python": "../bin/python"}, "job/python: '../bin/python' is not a command"),
        ({"keep": ["../../etc/*"]}, "job/keep/0: '../../etc/*' is not a pattern of files below the run"),
        ({"keep": ["/etc/passwd"]}, "job/keep/0: '/etc/passwd' is not a pattern"),
        ({"pointers": ["a/../b"]}, "job/pointers/0: 'a/../b' is not the name of a file, without a folder"),
        ({"keep": "*.json"}, "job/keep: '*.json' should be a valid tuple"),
        ({"environment": ["A=1"]}, "job/environment: is no mapping of names and values"),
        ({"environment": {"A B": "1"}}, "job/environment: 'A B' is no name of an environment variable"),
        ({"environment": {1: "1"}}, "job/environment: 1 is no name of an environment variable"),
        (
            {"environment": {"HF_TOKEN": "x"}},
            "HF_TOKEN looks like a secret, and a stack file holds none: put it into a file",
        ),
        ({"environment": {"aws_secret_access_id": "x"}}, "aws_secret_access_id looks like a secret"),
        ({"environment": {"MASTER_ADDR": "10.0.0.1"}}, "MASTER_ADDR is set by what starts the ranks"),
        ({"environment": {"OFFLINE": True}}, "OFFLINE has to be a text; put its value in quotes"),
        ({"environment": {"A": "b\nc"}}, "the value of A holds signs that cannot be printed"),
    ],
)
def test_a_bad_key_of_a_program_of_ones_own_is_named(job: dict[str, object], expected: str) -> None:
    with pytest.raises(config.ConfigError, match=re.escape(expected)):
        own_program(**job)


SECRETS = {
    **dict.fromkeys(("GITHUB_PAT", "DB_PASS", "PASSWD", "MYSQL_PWD", "PGPASSWORD", "SSH_PASSPHRASE", "APIKEY"), "x"),
    **dict.fromkeys(("SESSION_COOKIE", "AWS_CREDENTIALS", "SENTRY_DSN", "KEY", "git_token", "TOKEN_FILE_TEXT"), "x"),
    **{"PGPASSWORD": 12345678, "HF_TOKEN": "123456789012", "DB_PASSPHRASE": "true"},
    **{"DATABASE_URL": "postgres://me:hunter2@db.test/x", "CACHE": "redis://:hunter2@h:6379/0"},
    **{"CERTIFICATE": "-----BEGIN PRIVATE KEY-----", "LOGIN": f"ghp_{'a1' * 18}", "HUB": f"hf_{'aB' * 17}"},
}
NO_SECRETS = {
    **{"MAX_TOKEN": 4096, "MAX_TOKENS": "4096", "KEYBOARD": "us", "PWD_LEN": 8, "N_PASS": "3", "USE_KEY": "false"},
    **{"TOKENIZERS_PARALLELISM": "false", "COMPASS": "north", "MONGO_URL": "mongodb://db.test/x", "PATIENCE": "5"},
    **{"DATABASE_URL": "sqlite:///data/x", "PROXY": "http://h:3128/a@b", "MODEL": "hf_internal_testing_tiny_model"},
    **{"PASSWORD_LENGTH": 12, "MONKEY": "capuchin", "HOTKEYS": "on", "BETOKEN": "x"},
}


@pytest.mark.parametrize(("name", "value"), SECRETS.items())
def test_a_variable_that_looks_like_a_secret_is_refused_and_not_repeated(name: str, value: object) -> None:
    with pytest.raises(config.ConfigError, match=f"{name} looks like a secret, and a stack file holds none") as refused:
        own_program(environment={name: value})
    assert "hunter2" not in str(refused.value)


def test_a_run_of_before_with_a_refused_variable_can_still_be_read() -> None:
    facts = launched(own_program(environment={"DATABASE_HOST": "db.test"})).facts
    older = facts.to_json().replace("DATABASE_HOST", "MYSQL_PWD")
    assert ClusterFacts.from_json(older).job.environment == {"MYSQL_PWD": "db.test"}


def test_settings_that_only_sound_like_a_secret_pass() -> None:
    assert launched(own_program(environment=NO_SECRETS)).document.program.processes


def test_a_secret_looking_name_is_taken_once_declared_harmless() -> None:
    named = {"PAD_TOKEN": "<pad>", "LABEL_KEY": "label"}
    with pytest.raises(config.ConfigError, match=r"LABEL_KEY looks like .* list its name in job\.notSecret"):
        own_program(environment=named, notSecret=["PAD_TOKEN"])
    taken = own_program(environment=named, notSecret=list(named))
    assert taken.job.environment == named
    assert run_id(launched(taken)) == run_id(launched(own_program(environment=named, notSecret=[*named, "OTHER"])))


def test_a_command_line_has_at_most_8000_characters() -> None:
    assert own_program(arguments="x" * 8000).job.arguments == "x" * 8000
    with pytest.raises(config.ConfigError, match="at most 8000 characters"):
        own_program(arguments="x" * 8001)


INDEX = "https://download.pytorch.org/whl/cu118"


def test_one_more_index_reaches_pip_on_every_machine_and_makes_another_run() -> None:
    known = own_program(requirements=["torch==2.4.1+cu118"])
    more = own_program(requirements=["torch==2.4.1+cu118"], extraIndex=INDEX)
    words = f"--extra-index-url {INDEX} torch==2.4.1+cu118"
    assert words in launched(more).facts.container.dockerfile
    assert words in launched(more, on_machines=True).document.program.make_environment[2]
    assert run_id(launched(more)) != run_id(launched(known))
    assert run_id(launched(more, on_machines=True)) != run_id(launched(known, on_machines=True))
    assert "extraIndex" not in launched(known).texts()["program.json"], "a run of before there was the key keeps its id"


@pytest.mark.parametrize(
    "index", ["http://x.test/simple", "https://me:pw@x.test/simple", "https://x.test/a?b", "x.test"]
)
def test_an_index_is_an_https_address_without_a_login(index: str) -> None:
    with pytest.raises(config.ConfigError, match="job/extraIndex: is no https address without login") as refused:
        own_program(requirements=["torch==2.4.1+cu118"], extraIndex=index)
    assert index not in str(refused.value), "it may hold a password"


@pytest.mark.parametrize(
    "pattern",
    [
        r"ckpt\.pt",
        r"(checkpoint|model_best)\.pth\.tar",
        r"(last|best)\.pt",
        r"last\.ckpt",
        r"latest\.pth",
        r"last-rank\d+\.pt",
    ],
)
def test_files_that_are_written_over_are_named_without_a_step(pattern: str) -> None:
    found = launched(own_program(checkpoints=pattern, resume="--resume {checkpoint}")).document.checkpoints
    assert (found.format, found.options) == ("rewritten", {"pattern": pattern})


@pytest.mark.parametrize(
    ("job", "why"),
    [
        ({"resumeOn": "any"}, "its words are missing in job.resume"),
        ({"resumeOn": "any", "kind": "mxnet", "maxSteps": 5, **RESUMES}, "kind mxnet cannot"),
    ],
)
def test_what_cannot_go_on_with_other_nodes_is_refused(job: dict[str, object], why: str) -> None:
    with pytest.raises(config.ConfigError, match=f"job/resumeOn: any: .*{why}"):
        own_program(**job)


def test_a_pattern_names_no_metric_that_is_too_long() -> None:
    with pytest.raises(config.ConfigError, match="has a group whose name is longer than 80 characters"):
        own_program(progress=rf"(?P<step>\d+) (?P<{'a' * 81}>\d+)")


def test_a_folder_that_cannot_travel_is_refused_before_anything_is_ordered(tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to("/etc")
    said = f"2 problems(.|\n)*job/source: {tmp_path} does not hold train.py(.|\n)*links that lead out of it: out"
    with pytest.raises(config.ConfigError, match=said):
        config.with_files(own_program(source=str(tmp_path)))
