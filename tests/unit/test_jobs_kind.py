"""The registry of job kinds, and that nothing outside it knows what is trained."""

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from launching import OWNER, launched, on_gpus, run_id
from test_analysis_run_state import seen

from agent.run import document
from components.cluster import facts_of
from microcluster.analysis.records import curves
from microcluster.analysis.run_state import judge
from microcluster.config import stack as config
from microcluster.jobs.cluster_facts import ClusterFacts, ClusterFactsError, SourceFile
from microcluster.jobs.run_spec import decided

ROOT = Path(__file__).parents[2]
PROGRAMS = re.compile(r"openseq2seq|texar|horovod|tensorflow|bleu", re.IGNORECASE)
PRODUCT = (
    *("microcluster", "agent", "components", "emulator", "engine", "templates"),
    *("__main__.py", "fabfile.py", "env.sh", "Makefile"),
)
KINDS_OWN = (
    "microcluster/jobs/",
    "agent/formats/logs/",
    "agent/formats/checkpoints/",
    "agent/__main__.py",  # It names the programs of the agent, and one reads the checkpoints of a framework.
    "agent/launch/probe.py",  # It multiplies with each framework, whichever program uses it.
    "templates/openseq2seq/",
    "templates/texar/",
    "microcluster/planning/recorded_runs.toml",  # Figures with their sources, which are the projects' pages.
)


def named_in(file: str) -> bool:
    """Return whether a file names a program that a kind trains with."""
    try:
        return bool(PROGRAMS.search((ROOT / file).read_text()))
    except UnicodeDecodeError:
        return False


def test_nothing_outside_the_kinds_names_the_program_that_is_trained() -> None:
    listed = subprocess.run(["git", "ls-files", *PRODUCT], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [file for file in listed.splitlines() if not file.startswith(KINDS_OWN) and (ROOT / file).is_file()]
    assert {file for file in files if named_in(file)} == set()


def test_no_code_outside_the_registry_asks_which_kind_it_is() -> None:
    for folder in ("microcluster", "components"):
        for file in (ROOT / folder).rglob("*.py"):
            # The kinds of an account are those of its resources, but for its section of the stack file.
            if file.parent.name != "jobs" and ("accounts" not in file.parts or file.name.endswith("section.py")):
                assert not re.search(r"(?<!for )kind(\.name)? (==|!=|in) [\"'(]", file.read_text()), file


def test_facts_of_an_unknown_kind_are_refused_with_the_known_kinds() -> None:
    with pytest.raises(ClusterFactsError, match="job/kind: Input should be 'openseq2seq', 'horovod'"):
        ClusterFacts.from_json('{"stack": "s", "mark": "m", "job": {"kind": "tensor2tensor"}}')


HOROVOD = {
    **{"kind": "horovod", "source": "examples/horovod_regression", "script": "train.py", "maxSteps": 100},
    "checkpoints": r"model-(?P<step>\d+)\.npz",
}


def own_program(**job: object) -> config.Stack:
    """Return the checked stack; None takes a key away."""
    return on_gpus(HOROVOD | job, "training", ordering=True)


def test_braces_of_a_program_reach_it_unchanged_where_they_are_not_ours():
    words = "--filename '{epoch}-{step}' --json '{\"a\": {\"b\": 1}}' --steps {maxSteps} --literally {{maxSteps}} --at {checkpoint}"
    program = launched(own_program(arguments=words, resume="--from {step} {{step}} {}")).document.program
    own = ("--filename", "{epoch}-{step}", "--json", '{"a": {"b": 1}}', "--steps", "100", "--literally", "{maxSteps}")
    again = (*own, "--at", "{checkpoint}", "--from", document.STEP, "{step}", "{}")
    assert program.processes[0].argv[-len(again) + 4 :] == again[:-4]
    assert program.resume_processes[0].argv[-len(again) :] == again


def test_an_own_program_travels_as_a_folder_and_starts_every_rank() -> None:
    folder = launched(
        own_program(arguments="--steps {maxSteps} --folder '{logdir}/a b'", resume="--resume {checkpoint}")
    )
    assert folder.facts.tree.folder == ROOT / "examples/horovod_regression"
    assert not [name for name in folder.texts() if name.startswith("program/")]
    (first,), (again,) = (folder.document.program.processes, folder.document.program.resume_processes)
    start = ("python", f"{folder.path}/program/train.py", "--steps", "100", "--folder", f"{folder.path}/logdir/a b")
    assert first.argv[-len(start) :] == start
    assert again.argv[-2:] == ("--resume", document.CHECKPOINT), "the agent knows which"


@pytest.mark.parametrize("stack", config.stacks())
def test_the_facts_of_every_stack_are_read_back_whole(stack: str) -> None:
    facts = decided(facts_of(config.read_file(stack), OWNER))
    assert ClusterFacts.from_json(facts.to_json()) == facts


def test_pointers_of_the_stack_file_reach_the_agent() -> None:
    checkpoints = launched(own_program(pointers=["newest.txt"])).document.checkpoints
    assert checkpoints.options == {"pattern": HOROVOD["checkpoints"], "pointers": ["newest.txt"]}


def test_the_keys_of_a_program_of_ones_own_are_read_back_whole() -> None:
    keys = {"requirements": ["numpy==1.23.5"], "environment": VARIABLES, "keep": ["*.json"], "python": "python3"}
    facts = launched(own_program(**keys)).facts
    assert ClusterFacts.from_json(facts.to_json()) == facts


@pytest.mark.parametrize(
    ("job", "changes"),
    [
        ({"maxSteps": 200}, False),
        ({"stallS": 3600}, False),
        ({"keep": ["vocab*.json"]}, False),
        ({"pointers": ["newest.txt"]}, False),
        ({"arguments": "--rate 2"}, True),
        ({"requirements": ["numpy==1.23.5"]}, True),
        ({"environment": {"SEED": 7}}, True),
        ({"python": "python3.11"}, True),
    ],
)
def test_more_steps_continue_the_run_and_other_changes_make_another(job, changes) -> None:
    one, other = (launched(own_program(**words)) for words in ({}, job))
    assert (run_id(one) != run_id(other)) is changes


def test_a_small_folder_keeps_the_run_id_of_an_earlier_version() -> None:
    one = launched(own_program())
    text = (ROOT / "examples/horovod_regression/train.py").read_text()
    before = replace(one, facts=replace(one.facts, tree=None, texts=(SourceFile("train.py", text),)))
    assert run_id(before) == run_id(one)
    assert ClusterFacts.from_json(before.facts.to_json()) == before.facts
    assert before.texts()["program/train.py"] == text
    other = replace(before, facts=replace(before.facts, texts=(SourceFile("train.py", "print()"),)))
    assert run_id(other) != run_id(one)
    large = replace(one, facts=replace(one.facts, tree=replace(one.facts.tree, hashes={})))
    assert json.loads(large.texts()["program.json"])["files"] == one.facts.tree.id


def test_a_repository_at_a_commit_is_part_of_the_image() -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    folder = launched(
        own_program(source="https://example.com/a/program", commit=commit, requirements=["numpy==1.23.5"])
    )
    text = folder.facts.container.dockerfile
    assert f"checkout --quiet --detach {commit}" in text and "pip install" in text and "numpy==1.23.5" in text
    assert folder.document.program.folder == "/opt/program"
    assert not [name for name in folder.texts() if name.startswith("program/")]


def test_a_program_saving_in_its_working_folder_starts_in_the_log_folder() -> None:
    usual, known = launched(own_program()), launched(own_program(workingFolder="{logdir}"))
    start = ("sh", "-c", 'cd "$0" && exec "$@"', f"{known.path}/logdir", "python", f"{known.path}/program/train.py")
    for ranks in (known.document.program.processes, known.document.program.resume_processes):
        assert ranks[0].argv[-6:] == start
    assert "workingFolder" not in usual.texts()["program.json"], "a run of before there was the key keeps its id"
    with pytest.raises(config.ConfigError, match="job/workingFolder"):
        own_program(workingFolder="/tmp")


RESUMES = {"resume": "--resume {checkpoint}"}


def test_another_node_count_is_another_run_unless_the_program_resumes_it() -> None:
    same, any_nodes = (
        [launched(on_gpus(HOROVOD | RESUMES | more, "training", nodes=nodes, ordering=True)) for nodes in (2, 4)]
        for more in ({}, {"resumeOn": "any"})
    )
    assert run_id(same[0]) != run_id(same[1])
    assert run_id(any_nodes[0]) == run_id(any_nodes[1])
    assert run_id(launched(own_program(**RESUMES, resumeOn="same"))) == run_id(launched(own_program(**RESUMES)))
    assert [one.facts.job.any_world for one in (*same, *any_nodes)] == [False, False, True, True]
    assert any_nodes[0].document.checkpoints.options["worlds"] == [2, 4]
    earlier = replace(any_nodes[1], worlds=(2, 4))
    assert earlier.document.checkpoints.options["worlds"] == [2, 4, 8]


def test_what_another_number_of_nodes_means_is_explained() -> None:
    because = {path: origin for path, _, origin in own_program().origins}
    assert "is another run, which starts over" in because["job.resumeOn"]


BENCHMARK = {"maxSteps": None, "checkpoints": None, "progress": r"Iter #(?P<step>\d+): (?P<images>[\d.]+) img/sec"}


def test_a_program_may_lack_checkpoints_a_last_step_and_a_loss() -> None:
    stack = own_program(**BENCHMARK)
    folder = launched(stack)
    made = folder.document
    assert (made.checkpoints.format, made.expected.max_steps, made.logs.reader) == ("none", None, "pattern")
    assert ClusterFacts.from_json(folder.facts.to_json()) == folder.facts
    origins = {path: origin for path, _, origin in stack.origins}
    assert "a run that dies starts again from the beginning" in origins["job.checkpoints"]
    assert "no progress bar" in origins["job.maxSteps"]


@pytest.mark.parametrize(
    ("job", "lacks"),
    [({}, []), ({"maxSteps": None}, ["progress bar"]), ({"progress": BENCHMARK["progress"]}, ["loss"])],
)
def test_what_the_screen_will_lack_is_said_beforehand(job: dict[str, object], lacks: list[str]) -> None:
    found = launched(own_program(**job)).document.logs.not_shown
    assert len(found) == len(lacks) and all(word in one for word, one in zip(lacks, found, strict=True))


VARIABLES = {"TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": 4, "CACHE": "{logdir}/a b"}


def test_interpreter_variables_patterns_and_limits_reach_ranks_preflight_and_agent() -> None:
    own = {"environment": VARIABLES, "python": "/usr/bin/python3.11", "keep": ["vocab*.json", "logs/**"]}
    folder = launched(own_program(**own, stallS=3600))
    made = folder.document
    assert (made.checkpoints.keep, made.limits.stall_s) == (("vocab*.json", "logs/**"), 3600)
    assert folder.document.program.processes[0].argv[-2:] == ("/usr/bin/python3.11", f"{folder.path}/program/train.py")
    assert "/usr/bin/python3.11" in made.program.collective[0].argv, "whose imports the preflight tries too"
    given = {"TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "4", "CACHE": f"{folder.path}/logdir/a b"}
    for ranks in (folder.document.program.resume_processes, folder.document.program.collective):
        (mpirun,) = ranks
        assert mpirun.environment.items() >= given.items()
        exported = [name for flag, name in zip(mpirun.argv, mpirun.argv[1:], strict=False) if flag == "-x"]
        assert set(given) <= set(exported), "mpirun hands them on to the other nodes"


@pytest.mark.parametrize(
    ("progress", "module", "options"),
    [("json", "json_lines", {}), (r"step (?P<step>\d+)", "pattern", {"pattern": r"step (?P<step>\d+)"})],
)
def test_progress_comes_from_json_lines_or_from_a_pattern(progress: str, module: str, options: dict[str, str]) -> None:
    folder = launched(own_program(progress=progress))
    assert (folder.document.logs.reader, folder.document.logs.options) == (module, options)


def test_what_travels_and_what_stays_behind_stands_among_the_values(tmp_path: Path) -> None:
    for name, text in (("train.py", ""), (".gitignore", "*.bin\n"), ("train.bin", "1234")):
        (tmp_path / name).write_text(text)
    _, travels, stays = config.with_files(own_program(source=str(tmp_path))).origins[-1]
    assert travels == f"2 files with 6 bytes of {tmp_path} travel"
    assert stays.startswith("1 file with 4 bytes stay behind, as git ignores them (train.bin)")


def test_status_and_curves_show_what_the_program_itself_names() -> None:
    events = [
        {"event": "train", "step": 10, "loss": 2.0, "t": 1.0},
        {"event": "metric", "name": "accuracy", "step": 10, "value": 0.5, "t": 1.0},
        {"event": "metric", "name": "accuracy", "step": 20, "value": 0.7, "t": 2.0},
        {"event": "metric", "name": "accuracy", "step": 20, "value": 0.75, "t": 2.0},
        {"event": "resuming", "step": 10, "t": 3.0},
        {"event": "metric", "name": "accuracy", "step": 20, "value": 0.8, "t": 4.0},
    ]
    assert curves(events[:3]).metrics == {"accuracy": [(10, 0.5), (20, 0.7)]}
    assert curves(events[:4]).metrics == {"accuracy": [(10, 0.5), (20, 0.75)]}, "the last value of a step is its value"
    assert curves(events).metrics == {"accuracy": [(10, 0.5), (20, 0.8)]}
    assert judge(seen(events=events, alive=True, exit_code=None)).metrics == {"accuracy": 0.8}
