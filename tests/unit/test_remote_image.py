"""The training image on machines in memory: one asks the registry and builds, the others get it from there."""

import os
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from fake_machine import FACTS, FakeMachine, digest_of

from microcluster.jobs.cluster_facts import ClusterFacts, Container
from microcluster.jobs.rendering import render
from microcluster.remote import steps
from microcluster.remote.errors import Completed, RemoteError
from microcluster.remote.training_image import (
    KEYS,
    RECEIVE,
    _login_hint,
    distribute,
    ensure_built,
    one_use_key,
    pull_base,
)

BASE = "ngc.test:5000/microcluster/training:standin"
VENDORS = "nvcr.test/nvidia/tensorflow:19.05-py3"
DIGESTS = Path("/dev/null/digests")
"""Nothing can be written there: no digest of an image that this computer builds is kept."""


@pytest.fixture
def container(tmp_path):
    key = tmp_path / "ngc_key"
    key.write_text("[ngc.test:5000]\napi_key = right\n")
    key.chmod(0o600)
    built = {"dockerfile": f"FROM {BASE}\n", "tag": "microcluster/openseq2seq:0123456789ab"}
    return Container("openseq2seq", BASE, registry_key_file=str(key), **built)


@pytest.fixture
def machine():
    return FakeMachine(registry={BASE: "sha256:1"})


@pytest.fixture
def rank_key(tmp_path):
    (tmp_path / "rank").write_text("private\n")
    (tmp_path / "rank.pub").write_text("ssh-ed25519 RANK\n")
    return str(tmp_path / "rank")


@pytest.fixture
def cluster(machine, monkeypatch):
    """Four machines, the first of which alone has a registry."""
    monkeypatch.setattr(steps, "wait_for_ssh", lambda host: None)
    network: dict[str, FakeMachine] = {}
    made = []
    for number in range(4):
        facts = replace(FACTS, name=f"gpu-{number}", private_address=f"10.112.7.{number + 2}")
        made.append(FakeMachine(facts=facts, network=network, registry=machine.registry if number == 0 else {}))
    return made


def bring(cluster, container, rank_key):
    facts = ClusterFacts("local", "1f3a9c42", container=container, rank_key_file=rank_key)
    return steps.bring_image(cluster, facts, DIGESTS)


def silent_docker(run, said):
    """Let every look at an image or a container end as it does without Docker's daemon."""

    def answer(argv, **options):
        return Completed(1, "", said) if argv[:1] == ("docker",) and "inspect" in argv else run(argv, **options)

    return answer


def image_changes(machine):
    return [change for change in machine.changes if not change.startswith("put ")]


def test_the_image_is_built_on_its_base_once(machine, container):
    assert ensure_built(machine, container, DIGESTS)
    assert not ensure_built(machine, container, DIGESTS)
    tag = container.tag
    assert machine.files["Dockerfile"] == container.dockerfile
    assert machine.changes == [f"pull {BASE}", f"build {tag}", f"pull {BASE}"]


def test_a_moved_base_or_a_foreign_image_of_our_name_is_rebuilt(machine, container):
    ensure_built(machine, container, DIGESTS)
    before = machine.images[container.tag]
    machine.registry[BASE] = "sha256:2"
    assert ensure_built(machine, container, DIGESTS)
    assert machine.images[container.tag] != before
    machine.images[container.tag], machine.labels[container.tag] = "sha256:strange", ""
    assert ensure_built(machine, container, DIGESTS)


def test_without_the_registry_only_a_host_with_the_image_goes_on(machine, container):
    ensure_built(machine, container, DIGESTS)
    machine.registry.clear()
    assert not ensure_built(machine, container, DIGESTS)
    machine.images.clear()
    with pytest.raises(RemoteError, match=f"pulling {BASE} on gpu-0"):
        ensure_built(machine, container, DIGESTS)


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        (
            "Step 1/2 : FROM x\nStep 2/2 : RUN y\nE: no package y\n",
            r"exit code 1\.\nStep 2/2 : RUN y\nE: no package y\nNo partial image.*again",
        ),
        ("write /x: no space left on device", "data disk is full: `fab ssh gpu-0 -- df -h /data`"),
    ],
)
def test_a_failed_build_reports_its_last_lines_and_what_to_do(machine, container, printed, said):
    machine.build_ends = (1, printed)
    with pytest.raises(RemoteError, match=said):
        ensure_built(machine, container, DIGESTS)
    assert container.tag not in machine.images


def test_one_host_builds_and_hands_the_image_to_all_others(cluster, container, rank_key):
    assert bring(cluster, container, rank_key) == ["built on gpu-0", "copied to gpu-1, gpu-2, gpu-3"]
    tag = container.tag
    assert len({machine.images[tag] for machine in cluster}) == 1
    assert all(BASE not in machine.images for machine in cluster[1:])
    assert [image_changes(machine)[-1:] for machine in cluster[:3]] == [
        [f"hand {tag} to gpu-{number}"] for number in (1, 2, 3)
    ]
    assert not any({KEYS, RECEIVE} & machine.files.keys() for machine in cluster)
    assert bring(cluster, container, rank_key) == []


def test_a_replaced_launcher_gets_the_image_from_a_host_that_has_it(cluster, container, rank_key):
    bring(cluster, container, rank_key)
    first, tag = cluster[0], container.tag
    first.images.clear()
    first.changes.clear()
    assert bring(cluster, container, rank_key) == ["gpu-0 has it from gpu-1"]
    assert image_changes(first) == []
    assert first.images[tag] == cluster[1].images[tag]
    cluster[2].images[tag] = "sha256:old"
    assert bring(cluster, container, rank_key) == ["copied to gpu-2"]


@pytest.mark.parametrize(
    "said",
    [
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
        "dial unix /var/run/docker.sock: connect: no such file or directory",
        "",
    ],
)
def test_a_silent_docker_is_not_taken_for_one_without_the_image(cluster, container, rank_key, said):
    bring(cluster, container, rank_key)
    changes = [list(machine.changes) for machine in cluster]
    cluster[0].run = silent_docker(cluster[0].run, said)
    with pytest.raises(RemoteError, match="asking Docker on gpu-0 .* no answer"):
        bring(cluster, container, rank_key)
    assert [machine.changes for machine in cluster] == changes


@pytest.mark.parametrize(
    ("way_ends", "said"),
    [(1, "data disk is full: `fab ssh gpu-1"), (255, "Connection timed out.*gpu-1 has no partial image")],
)
def test_a_broken_hand_over_names_the_host_and_removes_the_key(cluster, container, rank_key, way_ends, said):
    ensure_built(cluster[0], container, DIGESTS)
    cluster[0].way_ends = way_ends
    with pytest.raises(RemoteError, match=f"copying .* from gpu-0 .* to gpu-1 .*{said}"):
        distribute(cluster[0], cluster[1:2], container, rank_key)
    assert KEYS not in cluster[1].files
    assert container.tag not in cluster[1].images


def test_an_image_that_is_another_one_after_its_way_names_the_host(cluster, container, rank_key, monkeypatch):
    ensure_built(cluster[0], container, DIGESTS)
    monkeypatch.setattr(cluster[0], "_hand_over", lambda tag, target: target.images.update({tag: "sha256:bent"}) or "")
    with pytest.raises(
        RemoteError, match=r"gpu-1 .* the image there differs from the one on gpu-0 .*Run the same command again"
    ):
        distribute(cluster[0], cluster[1:2], container, rank_key)


def test_a_broken_chain_is_reported_and_hosts_behind_it_are_served_singly(cluster, container, rank_key, capsys):
    ensure_built(cluster[0], container, DIGESTS)
    cluster[1].chain_ends = "no route to host"
    distribute(cluster[0], cluster[1:], container, rank_key)
    assert len({machine.images[container.tag] for machine in cluster}) == 1
    assert "the chain broke at gpu-2 (no route to host)" in capsys.readouterr().err
    assert not any({KEYS, RECEIVE} & machine.files.keys() for machine in cluster)


def test_the_key_for_the_image_works_once_from_one_address():
    assert one_use_key("ssh-ed25519 RANK\n", "10.112.7.2") == (
        'restrict,from="10.112.7.2",command="rm -f .ssh/authorized_keys2; exec sh /run/microcluster/receive_image.sh" ssh-ed25519 RANK\n'
    )


def test_a_wrong_registry_key_or_missing_file_is_named_with_its_place(machine, container):
    machine.registry_key = "another"
    with pytest.raises(RemoteError, match="refused") as refused:
        pull_base(machine, container, DIGESTS)
    assert container.registry_key_file in str(refused.value)
    assert "right" not in str(refused.value)
    with pytest.raises(RemoteError, match="/nowhere/key"):
        pull_base(machine, replace(container, registry_key_file="/nowhere/key"), DIGESTS)


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("Get https://r.test/v2/: dial tcp 10.1.1.1:5000: connect: connection refused", "The key is not the problem"),
        ("login attempt to https://r.test/v2/ failed with status: 401 Unauthorized", "Put a valid key into /keys/ngc"),
    ],
)
def test_a_silent_registry_is_not_reported_as_a_wrong_key(said, hint, container):
    assert _login_hint(said, replace(container, registry_key_file="/keys/ngc")).startswith(hint)


NVIDIAS = "nvcr.io/nvidia/tensorflow:19.05-py3"
EMULATED = "ngc.microcluster.internal:5000/microcluster/training:local"
ELSEWHERE = ("evil.test/x:1", "nvcr.io.evil.test/x:1", "nvcr.io:8443/x:1", "docker.io/pytorch/pytorch:2")


def pulled(base: str, sent: str, container: Container, exported: str | None = None) -> list[str]:
    """Pull from a registry that takes nothing but what is to be sent."""
    machine = FakeMachine(registry={base: "sha256:1"}, registry_key=sent)
    with tempfile.TemporaryDirectory() as digests:
        pull_base(machine, replace(container, image=base), Path(digests), exported)
    return machine.changes


@pytest.mark.parametrize(
    ("base", "content"), [(NVIDIAS, "right\n"), (EMULATED, "right\n"), (BASE, "[ngc.test:5000]\napi_key = right\n")]
)
def test_a_key_file_serves_its_registry_whatever_is_exported(container, base, content):
    Path(container.registry_key_file).write_text(content)
    assert pulled(base, "right", container, "of-another-account") == [f"pull {base}"]


@pytest.mark.parametrize("content", ["right\n", "[nvcr.io]\napi_key = right\n"])
@pytest.mark.parametrize("base", ELSEWHERE)
def test_a_key_for_nvidia_is_sent_to_no_other_registry(container, base, content):
    Path(container.registry_key_file).write_text(content)
    with pytest.raises(RemoteError, match=r"nothing was sent, as it has none for .* Write the lines"):
        pulled(base, "right", container)


@pytest.mark.parametrize(("base", "sent"), [(NVIDIAS, "right"), (EMULATED, ""), *((base, "") for base in ELSEWHERE)])
def test_an_exported_key_goes_to_nvidia_alone(base, sent):
    assert pulled(base, sent, Container("openseq2seq", base), "right\n") == [f"pull {base}"]


@pytest.mark.parametrize("base", ELSEWHERE)
def test_a_pull_that_fails_without_a_key_says_how_to_give_one(base):
    machine = FakeMachine(registry={}, registry_key="")
    with pytest.raises(
        RemoteError, match=r"No key for .* was given; if it needs one, put it into a file that .*\'api_key = KEY\'"
    ):
        pull_base(machine, Container("openseq2seq", base), DIGESTS)


@pytest.mark.parametrize(
    ("content", "mode", "why"),
    [
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nright\n", 0o600, "a private key"),
        ("right\n", 0o644, "others on this computer may read it"),
        ("right and wrong\n", 0o600, "not a .* file"),
    ],
)
def test_a_bad_registry_key_file_is_one_sentence_and_nothing_is_sent(container, machine, content, mode, why):
    file = Path(container.registry_key_file)
    file.write_text(content)
    file.chmod(mode)
    with pytest.raises(
        RemoteError, match=f"reading the registry's key from {file}: nothing was sent, as .*{why}"
    ) as refused:
        pull_base(machine, replace(container, image=NVIDIAS), DIGESTS)
    assert "right" not in str(refused.value) and machine.changes == []


def test_an_image_is_pulled_with_options_that_the_oldest_docker_knows(tmp_path):
    """Docker 18.09, as on Ubuntu 16.04, has no `pull --quiet`."""
    programs = {
        "docker": 'case "$*" in *--quiet*) echo "unknown flag: --quiet" >&2; exit 125 ;; *pull*) echo layers ;; esac',
        "mktemp": f"mkdir {tmp_path}/login && echo {tmp_path}/login",
    }
    for name, line in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    argv = ["sh", "-c", render("pull_image.sh.j2"), "pull", "registry.invalid", "registry.invalid/some:1", ""]
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(argv, input="", capture_output=True, text=True, check=False, timeout=60, env={"PATH": path})
    assert (done.returncode, done.stdout) == (0, "")


@pytest.fixture
def vendors(container):
    """A base image that somebody else publishes."""
    with Path(container.registry_key_file).open("a") as file:
        file.write("[nvcr.test]\napi_key = right\n")
    return replace(container, image=VENDORS, dockerfile=f"FROM {VENDORS}\n")


def test_a_base_image_is_pulled_by_the_digest_of_its_first_pull(machine, vendors, tmp_path):
    machine.registry[VENDORS] = "first"
    assert ensure_built(machine, vendors, tmp_path / "digests")
    [kept] = (tmp_path / "digests").iterdir()
    assert kept.read_text() == f"{digest_of('first')}\n"
    another = FakeMachine(registry=machine.registry, published=machine.published)
    pull_base(another, vendors, tmp_path / "digests")
    assert another.changes == [f"pull nvcr.test/nvidia/tensorflow@{digest_of('first')}"]


def test_a_tag_that_has_moved_is_reported_and_not_followed(machine, vendors, tmp_path, capsys):
    machine.registry[VENDORS] = "first"
    ensure_built(machine, vendors, tmp_path)
    machine.registry[VENDORS] = "second"
    assert not ensure_built(machine, vendors, tmp_path)
    assert machine.images[VENDORS] == "first"
    [kept] = tmp_path.glob("nvcr*")
    said = capsys.readouterr().err
    assert f"{VENDORS} is another image now than at its first pull; {digest_of('first')} is used" in said
    assert f"remove {kept}, then run the same command again" in said
    kept.unlink()
    assert ensure_built(machine, vendors, tmp_path)
    assert machine.images[VENDORS] == "second"


def test_a_digest_gone_from_the_registry_is_named_with_its_file(machine, vendors, tmp_path):
    machine.registry[VENDORS] = "first"
    pull_base(machine, vendors, tmp_path)
    machine.published.clear()
    machine.registry[VENDORS] = "second"
    with pytest.raises(RemoteError, match=rf"pulling nvcr.test/nvidia/tensorflow@sha256:.* remove {tmp_path}/nvcr"):
        pull_base(machine, vendors, tmp_path)


@pytest.mark.parametrize("image", [BASE, f"{VENDORS}@{'sha256:' + 64 * 'a'}"])
def test_no_digest_is_kept_of_what_is_built_here_or_pinned_already(machine, vendors, tmp_path, image):
    machine.registry[image] = "first"
    pull_base(machine, replace(vendors, image=image), tmp_path / "digests")
    assert not (tmp_path / "digests").exists()


@pytest.mark.parametrize("answer", ["", "sha256:short", "../../etc/cron.d/x", f"sha256:{64 * 'g'}"])
def test_an_answer_that_is_no_digest_is_not_kept(machine, vendors, tmp_path, monkeypatch, answer):
    monkeypatch.setattr(machine, "run", lambda *_, **__: Completed(0, f"{answer}\n", ""))
    pull_base(machine, vendors, tmp_path / "digests")
    assert not (tmp_path / "digests").exists()


@pytest.mark.parametrize(("now", "said"), [("one", []), ("another", ["moved"])])
def test_a_moved_tag_is_seen_by_manifest_and_the_kept_image_retagged(tmp_path, now, said):
    programs = {
        "docker": f"""echo "$*" >> {tmp_path}/calls
case "$*" in *"inspect r.test/some:1") echo {now} ;; *inspect*) echo one ;; *pull*) echo "Digest: sha256:5" ;; esac""",
        "mktemp": f"mkdir -p {tmp_path}/login && echo {tmp_path}/login",
    }
    for name, line in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    argv = ["sh", "-c", render("pull_image.sh.j2"), "pull", "r.test", "r.test/some:1", "r.test/some@sha256:5"]
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(argv, input="", capture_output=True, text=True, check=False, timeout=60, env=path)
    assert (done.returncode, done.stdout.split()) == (0, ["sha256:5", *said])
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls[0].endswith(" pull r.test/some@sha256:5")
    assert calls[1] == "tag r.test/some@sha256:5 r.test/some:1"
