"""The plan of a run: cluster, rendered configuration, run id, argv, and the quoting of templates."""

import ast
import dataclasses
import json
import shlex

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from launching import transformer
from standin import VERSION

from microcluster.jobs import mpirun, openseq2seq, openseq2seq_datasets, rendering
from microcluster.jobs.cluster_facts import ClusterFacts, ClusterFactsError, Container, HostFacts, Prediction
from microcluster.jobs.finished_data import Data, SentFile
from microcluster.jobs.run_spec import RunFolder, decided, staging

JOB = transformer()
HOSTS = tuple(HostFacts(f"gpu-{n}", str(n), f"198.51.100.{n}", f"10.112.7.{n}", "ssh-ed25519 AAAA") for n in (2, 3))
CLUSTER = ClusterFacts("local", "1f3a9c42", HOSTS, slots=2, container=Container("openseq2seq", "r.test/i:t"), job=JOB)
TEXT = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]))


def changed(job, **values):
    return job.model_copy(update=values)


def run_id(cluster):
    return decided(cluster).run


def machines(**changes):
    return RunFolder(dataclasses.replace(CLUSTER, **changes)).document.machines


def staged(dataset):
    return staging(changed(JOB, dataset=dataset).data_of("/data", None), "/data")


def test_cluster_facts_survive_json_and_say_nothing_about_what_is_not_set():
    data = Data(path="/there", is_tar=False, files=(SentFile("a", 7, "0" * 64),))
    for known in (CLUSTER, dataclasses.replace(CLUSTER, data=data, prediction=Prediction(1.75, 0.5927, 365_285_376))):
        assert ClusterFacts.from_json(known.to_json()) == known
    assert "null" not in CLUSTER.to_json()
    assert list(json.loads(CLUSTER.to_json())) == sorted(json.loads(CLUSTER.to_json()))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "Invalid JSON"),
        ("[]", "Input should be an object"),
        ('{"stack": "a"}', "mark: Field required"),
        ('{"stack": "a", "mark": "b", "slotz": 2}', "slotz: Unexpected keyword argument"),
        ('{"stack": "a", "mark": "b", "slots": "2"}', "slots: Input should be a valid integer"),
        ('{"stack": "a", "mark": "b", "hosts": [{"name": "x"}]}', "hosts/0/guest_id: Field required"),
    ],
)
def test_what_are_no_cluster_facts_is_refused_with_the_key(text, problem):
    with pytest.raises(ClusterFactsError, match=problem):
        ClusterFacts.from_json(text)


def test_the_run_stays_the_same_when_more_steps_are_asked_for_or_addresses_become_known():
    run = run_id(CLUSTER)
    assert len(run) == 12
    more = dataclasses.replace(CLUSTER, job=changed(JOB, max_steps=900))
    unknown = dataclasses.replace(CLUSTER, hosts=tuple(HostFacts(h.name, "", "", "", "") for h in HOSTS))
    assert run_id(more) == run_id(unknown) == run


@pytest.mark.parametrize(
    "change",
    [
        {"job": changed(JOB, batch_per_gpu=32)},
        {"job": changed(JOB, precision="mixed")},
        {"job": changed(JOB, dataset="wmt16-en-de")},
        {"container": Container("openseq2seq", "r.test/i:u")},
        {"hosts": HOSTS[:1]},
        {"slots": 1},
    ],
)
def test_anything_else_makes_it_another_run(change):
    assert run_id(dataclasses.replace(CLUSTER, **change)) != run_id(CLUSTER)


def test_other_data_make_another_run_in_a_folder_of_their_own(monkeypatch):
    def with_data(name):
        return dataclasses.replace(CLUSTER, data=Data(f"https://example.com/{name}.tar"))

    assert len({run_id(one) for one in (CLUSTER, with_data("d1"), with_data("d2"))}) == 3
    brought = with_data("d1")
    folders = [RunFolder(one).data.folder for one in (CLUSTER, brought)]
    assert folders == ["/data/debian_en_de", f"/data/debian_en_de-{brought.data.id}"]
    before = run_id(CLUSTER)
    small = openseq2seq_datasets.DATASETS["debian-en-de"]
    for change, is_other in (
        ({"seed": 17}, True),
        ({"pieces": [*openseq2seq_datasets.PIECES[:-1]]}, True),
        ({"archives": [{**small.recipe["archives"][0], "sha256": "0" * 64}]}, False),
    ):
        changed = dataclasses.replace(small, recipe={**small.recipe, **change})
        monkeypatch.setitem(openseq2seq_datasets.DATASETS, "debian-en-de", changed)
        assert (run_id(CLUSTER) != before) is is_other


@pytest.mark.parametrize("dataset", openseq2seq_datasets.DATASETS)
def test_a_recipe_makes_every_file_of_its_data_set_from_texts_that_it_has(dataset):
    plan = staged(dataset)
    made = {*plan["encode"], *(f"m_common.{ending}" for ending in ("model", "vocab"))}
    assert made == {*plan["files"], *plan["optional"]}
    assert {*plan["encode"].values(), *plan["train"]} == set(plan["texts"])
    archives = {archive["name"]: archive["address"] for archive in plan["archives"]}
    assert {name for sources in plan["texts"].values() for name, _ in sources} == set(archives)
    assert all(address.startswith(("https://", "file:///opt/microcluster/")) for address in archives.values())
    assert plan["vocabulary"][1] % 8 == 0
    # tokenizer_wrapper.py of the pinned commit, train_tokenizer_model, beside --input, --model_prefix and --vocab_size.
    upstream = "--model_type=bpe --pad_id=0 --eos_id=1 --bos_id=2 --unk_id=3 --character_coverage=1.0"
    assert sorted(plan["pieces"]) == sorted(upstream.split())


def test_the_data_are_made_without_a_gpu_in_a_container_that_ends_with_the_run():
    job = json.loads(RunFolder(dataclasses.replace(CLUSTER, run="abcdef012345")).texts()["job.json"])
    line = " ".join(job["data"]["stage"])
    assert line.startswith("docker run --rm --name microcluster-staging-abcdef012345 ")
    for part in ("--label microcluster.staging=abcdef012345", "--runtime=runc", "-e MICROCLUSTER_RUN=abcdef012345"):
        assert f" {part} " in line


def test_another_trainer_in_the_same_image_is_another_run_in_another_folder():
    base = "ngc.microcluster.internal:5000/microcluster/training:local"
    assert f"stand-in {VERSION}" == openseq2seq.SOURCE.stand_in
    names = (f"stand-in {VERSION}", "OpenSeq2Seq 8681d381", "OpenSeq2Seq of unknown commit, files 0123456789ab")
    containers = [Container("openseq2seq", base, trainer=name) for name in names]
    containers.append(Container("openseq2seq", "nvcr.io/nvidia/tensorflow:19.05-py3"))
    clusters = [dataclasses.replace(CLUSTER, container=one) for one in containers]
    assert len({run_id(cluster) for cluster in clusters}) == 4
    jobs = [RunFolder(dataclasses.replace(cluster, run="0" * 12)).document.program for cluster in clusters]
    assert [job.trainer for job in jobs] == [*names, "OpenSeq2Seq 8681d381"]
    folders = [openseq2seq.STAND_IN_FOLDER, *2 * [openseq2seq.LOCAL_PROGRAM_FOLDER], "/opt/OpenSeq2Seq"]
    assert [job.folder for job in jobs] == folders


def test_the_stand_in_trains_in_the_local_image_where_facts_of_an_earlier_version_name_nothing_that_does():
    base = "ngc.microcluster.internal:5000/microcluster/training:local"
    known = dataclasses.replace(CLUSTER, container=Container("openseq2seq", base), run="0" * 12)
    named = dataclasses.replace(known, container=Container("openseq2seq", base, trainer=f"stand-in {VERSION}"))
    assert RunFolder(known).document == RunFolder(named).document


def test_mpirun_is_held_to_the_private_network_and_carries_the_mark():
    process = mpirun.mpirun(machines(), ("hostname",), {})
    argv = process.argv
    line = " ".join(argv)
    assert line.startswith("mpirun --allow-run-as-root -np 4 -H 10.112.7.2:2,10.112.7.3:2 -bind-to none -map-by slot ")
    for part in (
        *("-mca plm_rsh_agent sh /run/microcluster/ssh", "-mca pml ob1", "-mca btl ^openib"),
        *("-mca btl_tcp_if_include eth0", "-mca oob_tcp_if_include eth0", "-x NCCL_SOCKET_IFNAME==eth0"),
        *("-x NCCL_DEBUG=INFO", "-x LC_ALL=C.UTF-8", "-x PATH", "-x MICROCLUSTER_RUN"),
    ):
        assert f" {part} " in f"{line} "
    assert "PYTHONUNBUFFERED" not in line
    assert "LD_LIBRARY_PATH" not in line
    assert argv[-1] == "hostname"


def test_a_network_reaches_open_mpi_and_nccl_as_it_was_given():
    line = " ".join(mpirun.mpirun(machines(interface="10.1.0.0/16"), ("hostname",), {}).argv)
    assert "-mca btl_tcp_if_include 10.1.0.0/16 -mca oob_tcp_if_include 10.1.0.0/16" in line
    assert "-x NCCL_SOCKET_IFNAME==10.1.0.0/16 " in line


@pytest.mark.parametrize(
    ("gpu", "machine_type", "memory_gb"),
    [
        ("V100", "V100-32Gx2", 32),
        ("V100", "V100x2", 16),
        ("A100", "A100-80G", 80),
        ("A100", "A100x8", 40),
        ("P100", "AC1_16X120X100", 16),
    ],
)
def test_the_memory_of_a_gpu_is_that_of_its_machine_type(gpu, machine_type, memory_gb):
    facts = dataclasses.replace(CLUSTER, run="abcdef012345", gpu=gpu, flavor=machine_type)
    assert RunFolder(facts).document.machines.gpu_memory_gb == memory_gb


@pytest.mark.parametrize("address", ["8.8.8.8", " 10.112.7.3"])
def test_a_world_off_the_private_network_is_refused(address):
    host = dataclasses.replace(HOSTS[1], private_address=address)
    with pytest.raises(ValueError):
        machines(hosts=(HOSTS[0], host))


def test_the_run_folder_holds_everything_the_supervisor_reads():
    folder = RunFolder(dataclasses.replace(CLUSTER, run="abcdef012345"), ("sha256:1", "sha256:1"))
    texts = folder.texts()
    assert list(texts)[-1] == "job.json"
    job = json.loads(texts["job.json"])
    assert (job["run"], job["expected"]["max_steps"]) == ("abcdef012345", 300)
    assert job["machines"]["images"] == ["sha256:1", "sha256:1"]
    (start,), (resume,) = job["program"]["processes"], job["program"]["resume_processes"]
    assert start["environment"] == {"LC_ALL": "C.UTF-8", "NCCL_DEBUG": "INFO", "NCCL_SOCKET_IFNAME": "=eth0"}
    wrapper = f"python3 {folder.path}/agent launch.rank_wrapper {folder.path}/ranks_ended.jsonl"
    program = f"python run.py --config_file={folder.path}/config.py --use_horovod=True --mode=train_eval"
    assert " ".join(start["argv"]).endswith(f" {wrapper} {program}")
    assert resume["argv"] == [*start["argv"], "--continue_learning"]


def test_nothing_in_the_folder_of_the_ranks_files_is_executed_itself_because_run_is_mounted_noexec():
    texts = RunFolder(dataclasses.replace(CLUSTER, run="abcdef012345")).texts()
    job = json.loads(texts["job.json"])
    assert "sh /run/microcluster/ssh" in job["program"]["processes"][0]["argv"]
    assert "ssh='sh /run/microcluster/ssh'" in texts["send_run_folder.sh"]
    argvs = [argv for part in ("program", "machines", "data") for argv in job[part].values() if isinstance(argv, list)]
    assert not [argv for argv in argvs if "/run/microcluster/ssh" in argv and argv[:1] != ["sh"]]


@given(TEXT)
def test_the_shell_filter_makes_one_word_of_anything(text):
    environment = rendered("{{ x | sh }}", text)
    assert shlex.split(environment) == [text]


@given(st.one_of(TEXT, st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none()))
def test_the_python_filter_makes_a_literal_of_anything(value):
    assert ast.literal_eval(rendered("{{ x | py }}", value)) == value


def rendered(source, value):
    return rendering.environment(escaped=False).from_string(source).render(x=value)


def test_a_template_without_one_of_its_inputs_fails():
    with pytest.raises(jinja2.UndefinedError):
        rendering.render("sshd_config.j2", port=4444)


def test_the_launcher_learns_how_large_the_model_is_what_a_step_should_take_and_what_all_machines_cost():
    big = changed(JOB, model="transformer-base", dataset="wmt16-en-de")
    job = RunFolder(dataclasses.replace(CLUSTER, run="1f", job=big)).document
    assert job.expected.model_bytes == pytest.approx(4 * 60_880_896, rel=0.01)  # The published number of parameters.
    assert str(job.expected.model_bytes) in job.program.collective[0].argv
    assert job.limits.disk_bytes > 12 * 14 * 60_000_000
    run = dataclasses.replace(CLUSTER, run="0123456789ab", per_hour=13.0)
    known = dataclasses.replace(run, prediction=Prediction(1.75, 0.5927, 365_285_376))
    keys = ("predicted_s", "compute_s", "wire_bytes", "per_hour", "print_steps")
    assert [getattr(RunFolder(known).document.expected, key) for key in keys] == [1.75, 0.5927, 365_285_376, 13.0, 10]
    assert [getattr(RunFolder(run).document.expected, key) for key in keys] == [None, None, 0, 13.0, 10]
