"""The names that OpenSeq2Seq and Texar lack on TensorFlow 2, in the training image: TensorFlow and Horovod are there, their sources need not be."""

from collections.abc import Iterator

import docker
import pytest
from image_containers import MPIRUN, TRAINING, container_of

from microcluster.jobs.image import LOCAL_PROGRAM_FOLDER

pytestmark = pytest.mark.containers

QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"}
"""Settings that run.py makes before TensorFlow is loaded."""
INSTALLED = "from old_names import install; install(); import tensorflow as tf\n"
LAZY_ADAM = """
import numpy
def trained(optimizer, steps=3):
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.get_variable("table", initializer=tf.ones([4, 2]))
        loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, ROWS)))
        step = optimizer(learning_rate=0.1, beta1=0.9, beta2=0.997, epsilon=1e-9).minimize(loss)
        session.run(tf.global_variables_initializer())
        for number in range(steps):
            session.run(step)
        return session.run(table)
"""


@pytest.fixture(scope="module")
def container() -> Iterator[docker.models.containers.Container]:
    with container_of(TRAINING, environment=QUIET) as started:
        yield started


def python(container: docker.models.containers.Container, script: str) -> str:
    code, (output, said) = container.exec_run(["python", "-c", script], workdir=LOCAL_PROGRAM_FOLDER, demux=True)
    assert code == 0, (said or b"").decode()[-2000:]
    return (output or b"").decode().strip()


def test_names_of_tensorflow_1_exist_beside_horovod_and_absent_ones_fail_late(container):
    script = """
from tensorflow.python.client import device_lib
from tensorflow.contrib.cudnn_rnn.python.ops import cudnn_rnn_ops
import horovod.tensorflow as hvd
class Cell(tf.contrib.rnn.RNNCell): pass
hvd.init()
print(tf.contrib.data.AUTOTUNE, tf.ConfigProto is not None, tf.executing_eagerly(), hvd.size(), tf.compat.v1 is not None)
print(type(tf.zeros([3]).shape[0]).__name__)
import librosa, pandas, tensorflow.contrib.seq2seq.python.ops.helper
try:
    tf.contrib.opt.AdamWOptimizer(learning_rate=1)
except NotImplementedError as told:
    print(told)
"""
    *said, absent = python(container, INSTALLED + script).splitlines()
    assert said == ["-1 True False 1 True", "Dimension"]
    assert "The program asks for tensorflow.contrib.opt.AdamWOptimizer" in absent


def test_a_step_is_read_before_its_update_as_on_gpus(container):
    script = """
import numpy, time
step = tf.train.get_or_create_global_step()
def trained():
    time.sleep(1)  # An update comes after a whole step's work.
    return numpy.int64(1)
update = tf.assign_add(step, tf.py_func(trained, [], tf.int64))
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    print(*[session.run([step, update])[0] for _ in range(3)])
"""
    assert python(container, INSTALLED + script) == "0 1 2"


def test_lazy_adam_is_adam_but_leaves_rows_outside_the_batch(container):
    script = """
ROWS = [0, 1, 2, 3]
lazy, plain = trained(tf.contrib.opt.LazyAdamOptimizer), trained(tf.train.AdamOptimizer)
print(numpy.allclose(lazy, plain, atol=1e-6), numpy.all(lazy < 1))
ROWS = [0, 2, 2]
found = trained(tf.contrib.opt.LazyAdamOptimizer)
print(numpy.all(found[[1, 3]] == 1), numpy.all(found[[0, 2]] < 1))
"""
    assert python(container, INSTALLED + LAZY_ADAM + script).split() == ["True"] * 4


def test_a_class_is_found_by_its_path_as_texar_looks_for_it(container):
    script = """
from pydoc import locate
import funcsigs
cell = locate("tensorflow.contrib.rnn.LSTMBlockCell")(num_units=3, forget_bias=0.0)
state = cell.zero_state(2, tf.float32)
output, _ = cell(tf.ones([2, 5]), state)
print(output.shape.as_list(), bool(tf.gradients(output, cell.trainable_weights)), *funcsigs.signature(locate).parameters)
"""
    assert python(container, INSTALLED + script).splitlines()[-1] == "[2, 3] True path forceload"


def test_an_update_clips_the_gradients_and_leaves_the_step_to_its_caller(container):
    script = """
weight, step = tf.get_variable("weight", initializer=1.0), tf.get_variable("step", initializer=0, trainable=False)
halved = lambda pairs: [(gradient / 2, variable) for gradient, variable in pairs]
rates = dict(global_step=step, learning_rate=None, optimizer=tf.train.GradientDescentOptimizer(0.1), clip_gradients=halved)
update = tf.contrib.layers.optimize_loss(4 * weight, increment_global_step=False, **rates)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(update)
    print(round(float(session.run(weight)), 6), session.run(step))
"""
    assert python(container, INSTALLED + script).splitlines()[-1] == "0.8 0"


def test_ranks_gather_and_wait_for_each_other_through_mpi4py(container):
    script = """
import horovod.tensorflow as hvd; hvd.init()
import mpi4py.rc; mpi4py.rc.initialize = False
from mpi4py import MPI
found = MPI.COMM_WORLD.gather(hvd.rank()); MPI.COMM_WORLD.Barrier()
print(found) if MPI.COMM_WORLD.Get_rank() == 0 else None
"""
    code, output = container.exec_run([*MPIRUN, "-np", "2", "python", "-c", script], workdir="/")
    assert (code, output.decode().strip()) == (0, "[0, 1]")


def test_the_source_program_runs_unchanged_and_names_itself_in_the_first_line(container):
    source = "import sys, tensorflow as tf; print(tf.contrib.data.AUTOTUNE, *sys.argv[1:], sys.path[0])"
    lay = [
        "sh",
        "-c",
        f"cp -r {LOCAL_PROGRAM_FOLDER} /tmp/real; rm -rf /tmp/real/OpenSeq2Seq; mkdir /tmp/real/OpenSeq2Seq; "
        f"echo 'OpenSeq2Seq 8681d381' > /tmp/real/TRAINER; printf '%s' \"$0\" > /tmp/real/OpenSeq2Seq/run.py",
        source,
    ]
    assert container.exec_run(lay).exit_code == 0
    code, output = container.exec_run(["python", "run.py", "--mode=train"], workdir="/tmp/real")
    assert code == 0, output
    assert output.decode().splitlines() == [
        "*** OpenSeq2Seq 8681d381 on TensorFlow 2.12 through our compatibility module",
        "-1 --mode=train /tmp/real/OpenSeq2Seq",
    ]


def test_an_image_without_the_source_says_so_in_one_sentence(container):
    bare = f"cp -r {LOCAL_PROGRAM_FOLDER} /tmp/bare; rm -rf /tmp/bare/OpenSeq2Seq; cd /tmp/bare; exec python run.py"
    code, output = container.exec_run(["sh", "-c", bare])
    assert code == 1
    assert output.decode().startswith("This training image holds no OpenSeq2Seq. Run `make up` again")
