"""What each rank proves of its GPU before the training; the frameworks are stand-ins that fail as the real ones do."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from agent.launch import probe
from microcluster.remote.job import AGENT

TOO_OLD = "The NVIDIA driver on your system is too old (found version 11040)."
TORCH = """
from types import SimpleNamespace as Named
__version__, version = "2.6.0", Named(cuda="12.4")
cuda = Named(is_available=lambda: {available}, device_count=lambda: 2)
device = lambda kind, number=0: kind
class ones:
    def __init__(self, *sides, device): {made}
    def matrix_power(self, n): return {{(0, 0): {product}}}
class zeros(list):
    def __init__(self, count, device): list.__init__(self, [0.0] * count)
"""
SUM = """
from pathlib import Path
def init_process_group(backend): Path(__file__).with_name("joined").write_text(backend)
def barrier(): pass
def all_reduce(total): pass
def get_world_size(): return 1
def destroy_process_group(): pass
"""
FAILS = 'raise RuntimeError("{}")'
MXNET = """
from types import SimpleNamespace as Named
runtime = Named(Features=lambda: Named(is_enabled=lambda name: True))
gpu = int
def dot(one, other): return {{(0, 0): Named(asscalar=lambda: {products}[one])}}
nd = Named(ones=lambda shape, ctx: ctx, dot=dot)
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Return what lets a framework be installed: its files by name."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(name, files):
        for file, text in files.items():
            path = tmp_path / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    yield install
    for name in [name for name in sys.modules if name.split(".")[0] in probe.PRODUCTS]:
        del sys.modules[name]


def torch(made="pass", product="8.0", available=False):
    text = TORCH.format(made=made, product=product, available=available)
    return {"__init__.py": text, "distributed.py": SUM}


def tensorflow(is_cuda_build, text):
    build = f"build_info = dict([('is_cuda_build', {is_cuda_build})])\n"
    return {"__init__.py": text, "python/platform/build_info.py": build}


def rank(folder: Path, gpus: str) -> subprocess.CompletedProcess[str]:
    (folder / "config").write_text("")
    words = ("launch.probe", "lo", str(folder / "config"), "4", "torch", gpus)
    environment = {**os.environ, "PYTHONPATH": str(folder), "RANK": "1", "LOCAL_RANK": "1"}
    return subprocess.run([sys.executable, AGENT, *words], env=environment, capture_output=True, text=True, check=False)


def refused(frameworks) -> str:
    with pytest.raises(SystemExit) as ended:
        probe.multiplies(frameworks, 2)
    return ended.value.code.partition(": ")[2]


def test_a_driver_that_is_too_old_ends_the_rank_before_gloo_says_ok(tmp_path, installed):
    installed("torch", torch(made=FAILS.format(TOO_OLD)))
    done = rank(tmp_path, "2")
    assert done.returncode == 1
    assert done.stderr.strip() == f"{probe.UNUSABLE}{socket.gethostname()}: torch: {TOO_OLD}"
    assert not (tmp_path / "torch" / "joined").exists()


@pytest.mark.parametrize(("gpus", "made", "on_gpu"), [("0", FAILS.format(TOO_OLD), None), ("2", "pass", True)])
def test_a_rank_goes_on_where_its_gpu_multiplies_or_none_was_ordered(tmp_path, installed, gpus, made, on_gpu):
    installed("torch", torch(made=made))
    done = rank(tmp_path, gpus)
    assert (done.returncode, json.loads(done.stdout.partition(probe.MARK)[2]).get("on_gpu")) == (0, on_gpu)
    assert (tmp_path / "torch" / "joined").read_text() == "gloo"


def test_a_product_that_is_wrong_is_said(installed):
    installed("torch", torch(product="7.0"))
    assert refused(("torch",)) == "torch: a product is 7.0 and not 8"


def test_a_build_for_processors_alone_is_not_asked_to_multiply(installed):
    text = TORCH.format(made="pass", product="7.0", available=False)
    installed("torch", {"__init__.py": text.replace('"12.4"', "None")})
    installed("tensorflow", tensorflow(False, "raise RuntimeError('was imported')"))
    assert probe.multiplies(("torch", "tensorflow"), 2) is False


def test_of_several_frameworks_one_that_computes_is_enough(installed):
    text = "raise RuntimeError('Graph execution error: Node: x\\n Cannot assign a device')"
    installed("tensorflow", tensorflow(True, text))
    assert refused(("mxnet", "tensorflow")) == "tensorflow: x Cannot assign a device"
    installed("mxnet", {"__init__.py": MXNET.format(products=[8.0, 8.0])})
    assert probe.multiplies(("mxnet", "tensorflow"), 2) is True


def test_a_worker_of_mxnet_multiplies_on_each_gpu(installed):
    installed("mxnet", {"__init__.py": MXNET.format(products=[8.0, 0.0])})
    assert refused(("mxnet",)) == "mxnet: a product is 0.0 and not 8"


@pytest.mark.parametrize(("library", "on_gpu"), [("\0libcublas.so.8.0\0", True), ("\0libopenblas.so\0", False)])
def test_an_mxnet_that_does_not_say_its_build_shows_it_by_its_library(installed, tmp_path, library, on_gpu):
    (tmp_path / "libmxnet.so").write_text(library)
    text = MXNET.format(products=[8.0, 8.0]).replace("runtime", "libinfo")
    named = f"libinfo = Named(find_lib_path=lambda: [{str(tmp_path / 'libmxnet.so')!r}])"
    installed("mxnet", {"__init__.py": f"{text}\n{named}\n"})
    assert probe.multiplies(("mxnet",), 2) is on_gpu
