"""The image's Dockerfile, its name, who hands it to whom, and what is told of a build that failed."""

import os
import re
import subprocess
from dataclasses import replace

from launching import transformer

from microcluster.jobs import image, openseq2seq
from microcluster.jobs.cluster_facts import ClusterFacts, Container, HostFacts
from microcluster.jobs.run_spec import decided

NGC = Container("openseq2seq", "nvcr.io/nvidia/tensorflow:19.05-py3")
LOCAL = Container(
    "openseq2seq",
    "ngc.microcluster.internal:5000/microcluster/training:standin",
    trainer=openseq2seq.STAND_IN_RELEASE,
)
JOB, HOST = transformer(), HostFacts("gpu-0", "", "", "", "")
END = "The command returned a non-zero code:"


def dockerfile(container):
    return JOB.dockerfile(container.image, container.trainer)


def tag(container, slots=1):
    known = ClusterFacts("local", "1f3a9c42", (HOST,), slots=slots, container=container, job=JOB)
    return decided(known).container.tag


def test_the_local_form_copies_its_base_and_says_what_trains_in_it():
    assert dockerfile(LOCAL).split("\n")[0] == f"FROM {LOCAL.image}"
    assert f'LABEL microcluster.trainer="{openseq2seq.STAND_IN_RELEASE}"' in dockerfile(LOCAL)
    assert "RUN" not in dockerfile(LOCAL)


def test_nvidias_plain_image_is_built_on_with_the_source_at_its_last_commit_and_no_key_in_it():
    lines = dockerfile(NGC).splitlines()
    assert lines[0] == f"FROM {NGC.image}"
    assert [line for line in lines if line.startswith(("FROM", "ADD", "COPY", "ARG", "USER", "EXPOSE"))] == lines[:1]
    text = dockerfile(NGC)
    assert text.count("git clone") == 1
    assert f"checkout --quiet --detach {openseq2seq.COMMIT} " in text
    assert f"grep -q '^{openseq2seq.COMMIT}'" in text
    assert "openssh-server" in text and "rm -rf /var/lib/apt/lists/* /etc/ssh/ssh_host_*" in text
    assert not re.search(r"BEGIN|authorized_keys|id_rsa|ed25519|oauthtoken|NGC_API_KEY|/root/\.ssh", text)


def test_every_python_package_is_pinned_and_brings_no_other():
    joined = dockerfile(NGC).replace("\\\n", " ")
    installs = [line for line in joined.splitlines() if "pip install" in line]
    assert sum(line.count("pip install") for line in installs) == sum(line.count("--no-deps") for line in installs)
    packages = [word for line in installs for word in line.replace(";", " ").split() if "==" in word]
    assert len(packages) == len(set(packages)) == 24
    assert all(re.fullmatch(r"[a-z0-9_-]+==[0-9][0-9.]*", package) for package in packages)
    assert {"nltk==3.2.5", "pandas==0.23.0", "joblib==0.13.2", "librosa==0.6.3"} <= set(packages)
    assert "MPICC=" in next(line for line in installs if "mpi4py==" in line)


def test_the_name_changes_with_the_base_and_with_what_trains_and_with_nothing_else():
    named = tag(LOCAL)
    assert re.fullmatch(r"microcluster/openseq2seq:[0-9a-f]{12}", named)
    assert tag(LOCAL, slots=2) == named
    assert tag(replace(LOCAL, image=LOCAL.image + "2")) != named
    assert tag(replace(LOCAL, trainer="stand-in 9")) != named


def test_a_base_that_moved_behind_its_reference_makes_another_recipe():
    text = dockerfile(LOCAL)
    assert image.recipe(text, "sha256:1") == image.recipe(text, "sha256:1")
    assert len({image.recipe(text, "sha256:1"), image.recipe(text, "sha256:2"), image.recipe("", "sha256:1")}) == 3


def test_a_failed_build_reports_its_step_and_last_lines():
    printed = [f"Get:{number} http://archive.ubuntu.com" for number in range(40)]
    before = ["Step 1/5 : FROM base", " ---> 0123", "Step 2/5 : RUN apt-get update", " ---> Running in 4567"]
    after = ["E: Unable to locate package", "Removing intermediate container 4567", f"{END} 100"]
    told = image.why_it_failed("\n".join([*before, *printed, *after])).splitlines()
    assert told[0] == "Step 2/5 : RUN apt-get update"
    assert told[-2:] == ["E: Unable to locate package", f"{END} 100"]
    assert len(told) == image.LINES_THAT_MATTER


def test_a_package_that_the_base_has_from_ubuntu_is_installed_beside_and_every_other_one_replaced(tmp_path):
    joined = dockerfile(NGC).replace("\\\n", " ")
    script = next(line for line in joined.splitlines() if "--ignore-installed" in line).removeprefix("RUN ")
    (tmp_path / "pip").write_text(
        '#!/bin/sh\nfor last; do :; done\n[ "$last" != "six==1.12.0" ] || case "$*" in *--ignore-installed*) ;; *) exit 1 ;; esac\n'
        f'echo "$*" >> {tmp_path}/installed\n'
    )
    (tmp_path / "pip").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-c", script], env=environment, check=True)
    installed = (tmp_path / "installed").read_text().splitlines()
    assert [line.split()[-1] for line in installed if "--ignore-installed" in line] == ["six==1.12.0"]
    assert len(installed) == 23
    (tmp_path / "pip").write_text("#!/bin/sh\nexit 1\n")
    assert subprocess.run(["sh", "-c", script], env=environment, check=False).returncode != 0
