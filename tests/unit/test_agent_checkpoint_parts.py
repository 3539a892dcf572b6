"""A checkpoint of which two nodes write parts on disks of their own; ssh is a script that goes to the other folder."""

import json
import os
import shutil
import socket
import subprocess
import sys

import pytest
import sample_spec
from test_agent_file_formats import save
from test_remote_inventory import ASKED

from agent.formats.checkpoints.file_formats import Format
from agent.formats.checkpoints.parts import OVER
from agent.formats.checkpoints.replica import MARK
from microcluster.jobs.rendering import render
from microcluster.remote.job import AGENT

PATTERN = r"step-(?P<step>\d+)/rank\d+\.pt"
SSH = 'eval "$(echo "$2" | sed "s,{here},{there},g")"'


@pytest.fixture
def nodes(tmp_path, monkeypatch):
    """Return the run's folder on the launcher and on the other node, where each has saved the parts of its two ranks of two steps."""
    here, there, tools = tmp_path / "here", tmp_path / "there", tmp_path / "bin"
    tools.mkdir()
    (tools / "python").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    ssh = SSH.format(here=here, there=there)
    for folder, ranks in ((here, (0, 1)), (there, (2, 3))):
        for step in (100, 200):
            for rank in ranks:
                save(folder / "logdir", f"step-{step}/rank{rank}.pt", f"{step} {rank}".encode())
    shutil.copytree(AGENT, here / "agent")
    options = {"checkpoints": "file_formats", "checkpoint_options": {"pattern": PATTERN}}
    sample_spec.write(here, ssh=["sh", "-c", ssh, "ssh"], **options)
    return here, there


def call(here, module, verb, *rest, given=""):
    argv = (sys.executable, here / "agent", module, here, verb, *rest)
    return subprocess.run(argv, capture_output=True, input=given, text=True, check=False, timeout=60)


def give(here, *files):
    (here / "needed.json").write_text(json.dumps([files, names(here)]))
    done = call(here, "checkpoints.parts", "give", "node")
    assert done.returncode == 0, done.stderr


def gather(here, step=OVER):
    done = call(here, "checkpoints.parts", "gather", str(step), "node")
    assert done.returncode == 0, done.stderr


def names(folder):
    return sorted(str(path.relative_to(folder / "logdir")) for path in (folder / "logdir").rglob("*") if path.is_file())


def of(step, ranks=range(4)):
    return [f"step-{step}/rank{rank}.pt" for rank in ranks]


def test_the_launcher_gets_another_nodes_parts_once_and_none_that_were_removed(nodes):
    here, there = nodes
    gather(here)
    assert names(here) == of(100) + of(200)
    assert (here / "logdir/step-200/rank3.pt").read_bytes() == b"200 3"
    assert names(there) == of(100, (2, 3)) + of(200, (2, 3))
    shutil.rmtree(here / "logdir/step-100")
    gather(here)
    assert names(here) == of(200)


def test_parts_removed_on_their_node_go_once_a_newer_step_is_copied(nodes):
    here, there = nodes
    gather(here, 50)
    shutil.rmtree(there / "logdir/step-100")
    gather(here, 100)
    assert names(here) == of(100) + of(200)
    gather(here, 200)
    assert names(here) == of(100, (0, 1)) + of(200)


@pytest.mark.parametrize("resumed", [False, True], ids=["lost meanwhile", "after a resume"])
def test_parts_of_a_replaced_node_stay_and_are_given_back(nodes, resumed):
    here, there = nodes
    gather(here, 50)
    shutil.rmtree(there / "logdir")
    (there / "logdir").mkdir()
    if resumed:
        gather(here)
        give(here, *of(200))
    gather(here, 200)
    assert names(here) == of(100) + of(200)
    assert names(there) == (of(200) if resumed else [])


def test_what_only_a_node_has_of_an_older_checkpoint_stays_there(nodes):
    here, there = nodes
    shutil.rmtree(here / "logdir/step-100")
    gather(here)
    save(here / "logdir.torn-1", "step-300/rank2.pt")
    save(there / "logdir", "step-300/rank2.pt")
    give(here, *of(200))
    assert names(there) == of(100, (2, 3)) + of(200), "what was put aside here is not found there"


def test_each_node_gets_back_what_it_wrote_itself_under_the_same_name(nodes):
    here, there = nodes
    for folder, content in ((here, b"node 0"), (there, b"node 1")):
        save(folder / "logdir", "step-200/rank9.pt", content)
    for _ in range(2):
        gather(here)
    assert (here / "logdir/step-200/rank9.pt").read_bytes() == b"node 0"
    assert (here / "nodes/node/logdir/step-200/rank9.pt").read_bytes() == b"node 1"
    assert not (here / "nodes/node/logdir/step-200/rank2.pt").exists(), "what is alike lies here once"
    shutil.rmtree(there / "logdir")
    (there / "logdir").mkdir()
    give(here, *of(200), "step-200/rank9.pt")
    assert (there / "logdir/step-200/rank9.pt").read_bytes() == b"node 1"
    assert (there / "logdir/step-200/rank0.pt").read_bytes() == b"200 0"
    shutil.rmtree(here / "logdir/step-200")
    gather(here, 300)
    assert not list(here.glob("nodes/**/*.pt")), "the program has removed the checkpoint"


def test_what_lies_beside_a_nodes_checkpoints_is_put_aside_there(nodes):
    here, there = nodes
    sample_spec.write(here, ssh=["sh", "-c", SSH.format(here=here, there=there), "ssh"], checkpoints="tensorflow")
    shutil.rmtree(there / "logdir")
    for name in ("curves/loss 1.csv", "model.ckpt-7.index"):
        save(there / "logdir", name)
    give(here, *of(200, (0, 1)))
    assert names(there) == of(200, (0, 1))
    assert len(list(there.glob("logdir.without-checkpoint-*/curves/loss 1.csv"))) == 1


@pytest.mark.parametrize("odd", ["rank7.pt", "rank8.pt"], ids=["a socket", "removed meanwhile"])
def test_an_odd_file_of_a_node_keeps_nobody_from_the_others(nodes, odd, monkeypatch):
    here, there = nodes
    monkeypatch.chdir(there / "logdir/step-200")
    socket.socket(socket.AF_UNIX).bind("rank7.pt")
    (there / "logdir/step-200/rank8.pt").symlink_to("rank2.pt")
    gone = f"case $2 in *--null*) rm -f {there}/logdir/step-200/rank8.pt;; esac; "
    ssh = ["sh", "-c", ("" if odd == "rank7.pt" else gone) + SSH.format(here=here, there=there), "ssh"]
    sample_spec.change(here, ssh=ssh)
    gather(here)
    assert set(names(here)) - {"step-200/rank8.pt"} == {*of(100), *of(200)}


def test_a_folder_elsewhere_that_its_node_has_removed_goes_here_too(nodes, tmp_path):
    here, there = nodes
    sample_spec.change(here, checkpoint_options={"pattern": r"step-(?P<step>\d+)"})
    save(tmp_path / "elsewhere", "vocab.bin")
    (there / "logdir/step-100/tokenizer").symlink_to(tmp_path / "elsewhere")
    gather(here, 50)
    assert (here / "logdir/step-100/tokenizer/vocab.bin").exists()
    shutil.rmtree(there / "logdir/step-100")
    gather(here, 200)
    assert names(here) == of(100, (0, 1)) + of(200)
    assert not (here / "logdir/step-100/tokenizer").exists()


def test_a_new_steps_folder_is_left_to_the_training_program_at_first(nodes):
    here, there = nodes
    save(there / "logdir", "step-300/rank2.pt", age_s=5)
    gather(here, 100)
    assert not (here / "logdir/step-300").exists()
    save(there / "logdir", "step-300/rank2.pt", age_s=60)
    gather(here, 100)
    assert (here / "logdir/step-300/rank2.pt").exists()


def test_a_silent_node_is_named_and_the_other_parts_come(nodes):
    here, there = nodes
    ssh = f"[ $1 = gone ] && {{ echo no route to host; exit 255; }}; {SSH.format(here=here, there=there)}"
    sample_spec.change(here, ssh=["sh", "-c", ssh, "ssh"])
    done = call(here, "checkpoints.parts", "gather", OVER, "gone", "node")
    assert done.returncode == 1
    assert "gone" in done.stderr and "no route to host" in done.stderr
    assert names(here) == of(100) + of(200)


def test_before_a_resume_each_node_has_the_whole_step_and_no_other(nodes, tmp_path):
    here, there = nodes
    gather(here)
    save(there / "logdir", "loss.csv", b"of an earlier attempt")
    (there / "stopped").touch()
    own = (there / "logdir/step-200/rank2.pt").stat().st_ino
    text = render("send_run_folder.sh.j2", run=str(here), files=[], shared=None, ssh=shell(here, there, tmp_path))
    (here / "send_run_folder.sh").write_text(text)
    (here / "needed.json").write_text(json.dumps([of(200), of(100) + of(200)]))
    subprocess.run(("sh", here / "send_run_folder.sh", "node"), check=True, timeout=60)
    assert names(there) == ["loss.csv", *of(200)]
    assert (there / "logdir/step-200/rank2.pt").stat().st_ino == own, "what is there already is not sent again"
    assert (there / "logdir/step-200/rank0.pt").read_bytes() == b"200 0"
    assert not (there / "stopped").exists()
    assert not (there / "logdir/step-100").exists()


def shell(here, there, tmp_path):
    """Return ssh as a program of one word, as it stands in the script."""
    program = tmp_path / "ssh"
    program.write_text(f'#!/bin/sh\nset -- x "$@"; shift\n{SSH.format(here=here, there=there)}\n')
    program.chmod(0o755)
    return str(program)


def test_the_replica_has_all_nodes_parts_so_either_machine_may_fail(nodes):
    here, there = nodes
    gather(here)
    shutil.copytree(AGENT, there / "agent")
    files = "\0".join(f"logdir/{name}" for name in of(200))
    done = call(here, "checkpoints.replica", "copy", "node", "200", given=files)
    assert int(done.stdout.partition(MARK)[2]) == 2, "two of four are its own"
    shutil.rmtree(here / "logdir")
    assert call(here, "checkpoints.replica", "fetch", "node").returncode == 0
    assert names(here) == of(200)
    (there / "copy/logdir/step-200/rank1.pt").write_bytes(b"rot")
    shutil.rmtree(here / "logdir")
    done = call(here, "checkpoints.replica", "fetch", "node")
    assert "logdir/step-200/rank0.pt of node has another hash" in done.stdout
    assert not (here / "logdir").exists(), "it is not brought in part"


def test_after_the_end_a_fetch_lists_the_files_of_all_nodes(nodes, tmp_path):
    here, there = nodes
    for folder, content in ((here, b"node 0"), (there, b"node 1")):
        save(folder / "logdir", "step-200/rank9.pt", content)
    local = {"runtime": "host", "environment": "/usr", "addresses": ["10.0.0.0", "node"], "names": ["gpu-0", "node"]}
    sample_spec.change(here, **local)
    argv = (sys.executable, here / "agent", "records.inventory", here, json.dumps(ASKED))
    listed = json.loads(subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout)["files"]
    newest = [one["path"] for one in listed if one["what"] == "newest checkpoint"]
    both = ["logdir/step-200/rank9.pt", "nodes/node/logdir/step-200/rank9.pt"]
    assert newest == [*(f"logdir/{name}" for name in of(200)), *both]


def test_a_checkpoints_outside_link_comes_as_a_file_others_as_links(nodes, tmp_path):
    here, there = nodes
    save(tmp_path, "elsewhere.pt", b"weights")
    links = {"rank4.pt": tmp_path / "elsewhere.pt", "rank5.pt": "/only/in/the/container", "rank6.pt": "rank2.pt"}
    for name, target in links.items():
        (there / "logdir/step-200" / name).symlink_to(target)
    gather(here)
    step = here / "logdir/step-200"
    assert (step / "rank4.pt").read_bytes() == b"weights" and not (step / "rank4.pt").is_symlink()
    assert os.readlink(step / "rank5.pt") == "/only/in/the/container"
    shutil.rmtree(there / "logdir/step-200")
    (step / "rank4.pt").unlink()
    (step / "rank4.pt").symlink_to(tmp_path / "elsewhere.pt")
    (step / "rank6.pt").unlink()
    (step / "rank6.pt").symlink_to("rank2.pt")
    give(here, *of(200, range(7)))
    assert not (there / "logdir/step-200/rank4.pt").is_symlink()
    assert (there / "logdir/step-200/rank4.pt").read_bytes() == b"weights"
    assert os.readlink(there / "logdir/step-200/rank6.pt") == "rank2.pt"
    shutil.copytree(AGENT, there / "agent")
    files = "\0".join(f"logdir/{name}" for name in of(200, range(7)))
    assert call(here, "checkpoints.replica", "copy", "node", "200", given=files).returncode == 0
    shutil.rmtree(here / "logdir")
    (tmp_path / "elsewhere.pt").unlink()
    assert call(here, "checkpoints.replica", "fetch", "node").returncode == 0
    assert (step / "rank4.pt").read_bytes() == b"weights"
    assert (os.readlink(step / "rank5.pt"), os.readlink(step / "rank6.pt")) == ("/only/in/the/container", "rank2.pt")


def test_a_checkpoint_of_1200_long_names_is_copied_and_given(nodes):
    here, there = nodes
    long = [f"step-200/{'x' * 150}/rank{number}.pt" for number in range(1200)]
    sample_spec.change(here, checkpoint_options={"pattern": r"step-(?P<step>\d+)"})
    for name in long:
        save(here / "logdir", name)
    give(here, *of(200, (0, 1)), *long)
    assert set(long) < set(names(there))
    shutil.copytree(AGENT, there / "agent")
    done = call(here, "checkpoints.replica", "copy", "node", "200", given="\0".join(f"logdir/{name}" for name in long))
    assert done.returncode == 0 and len(list((there / "copy/logdir").rglob("*.pt"))) == 1200


def test_a_part_lost_with_its_node_makes_the_earlier_checkpoint_the_newest(nodes):
    here, there = nodes
    gather(here)
    save(here / "logdir", "step-300/rank0.pt")
    save(here / "logdir", "step-300/rank1.pt")
    shutil.rmtree(there)
    gather(here)
    assert names(here) == of(100) + of(200) + of(300, (0, 1)), "a node that was replaced takes nothing"
    assert Format(str(here / "logdir"), {"pattern": PATTERN}).newest_whole() == (200, "step-200/rank0.pt")
