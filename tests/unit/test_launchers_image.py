"""The image's Dockerfile, its name, who hands it to whom, and what is told of a build that failed."""

from __future__ import annotations

import re

import pytest

from launchers import image
from launchers.payload import Container

NGC = Container("openseq2seq", "nvcr.io/nvidia/tensorflow:19.05-py3")
LOCAL = Container("openseq2seq", "ngc.microcluster.internal:5000/microcluster/training:standin")


def test_the_local_form_copies_its_base_and_says_what_trains_in_it():
    assert image.dockerfile(LOCAL).split("\n")[0] == f"FROM {LOCAL.image}"
    assert f'LABEL microcluster.trainer="{image.STAND_IN}"' in image.dockerfile(LOCAL)
    assert "RUN" not in image.dockerfile(LOCAL)


def test_the_name_changes_with_the_base_and_with_what_trains_and_with_nothing_else(monkeypatch):
    named = image.tag(LOCAL)
    assert re.fullmatch(r"microcluster/openseq2seq:[0-9a-f]{12}", named)
    assert image.tag(Container("other", LOCAL.image, ssh_port=4445)) == named
    assert image.tag(Container("openseq2seq", LOCAL.image + "2")) != named
    monkeypatch.setattr(image, "STAND_IN", "stand-in 9")
    assert image.tag(LOCAL) != named


def test_a_base_that_moved_behind_its_reference_makes_another_recipe():
    text = image.dockerfile(LOCAL)
    assert image.recipe(text, "sha256:1") == image.recipe(text, "sha256:1")
    assert len({image.recipe(text, "sha256:1"), image.recipe(text, "sha256:2"), image.recipe("", "sha256:1")}) == 3


@pytest.mark.parametrize(("hosts", "needed"), [(1, 0), (2, 1), (3, 2), (4, 2), (8, 3), (9, 4), (64, 6)])
def test_whoever_has_the_image_passes_it_on_so_that_the_rounds_grow_with_the_logarithm(hosts, needed):
    plan = image.rounds([0], list(range(1, hosts)))
    assert len(plan) == needed
    have = {0}
    for pairs in plan:
        busy = [host for pair in pairs for host in pair]
        assert len(busy) == len(set(busy))
        assert {source for source, _ in pairs} <= have
        have |= {target for _, target in pairs}
    assert have == set(range(hosts))


def test_of_a_failed_build_its_step_and_the_last_lines_are_told():
    printed = [f"Get:{number} http://archive.ubuntu.com" for number in range(40)]
    output = "\n".join(
        ["Step 1/5 : FROM base", " ---> 0123", "Step 2/5 : RUN apt-get update", " ---> Running in 4567", *printed]
        + [
            "E: Unable to locate package",
            "Removing intermediate container 4567",
            "The command returned a non-zero code: 100",
        ]
    )
    told = image.why_it_failed(output).splitlines()
    assert told[0] == "Step 2/5 : RUN apt-get update"
    assert told[-2:] == ["E: Unable to locate package", "The command returned a non-zero code: 100"]
    assert len(told) == image.LINES_THAT_MATTER
