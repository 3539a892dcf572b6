"""The names that OpenSeq2Seq lacks on TensorFlow 2, as far as they need no TensorFlow; the rest is tested in the training image."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "images" / "training" / "opt" / "tensorflow_1"


def python(script: str) -> str:
    """Run a script with the names installed, in a process of its own: they are for the whole of one."""
    prelude = "import sys; import old_names; old_names.absent.install(); old_names.install_nltk()\n"
    argv = (sys.executable, "-c", prelude + script)
    env = {**os.environ, "PYTHONPATH": str(FOLDER.parent)}
    done = subprocess.run(argv, cwd=FOLDER, env=env, capture_output=True, text=True, check=False)
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def test_speech_packages_can_be_imported_named_and_subclassed():
    script = """
sys.modules["tensorflow"] = type(sys)("tensorflow"); sys.modules["tensorflow"].__path__ = []
import librosa.filters, python_speech_features as psf, resampy as rs
from tensorflow.contrib.cudnn_rnn.python.ops import cudnn_rnn_ops
import matplotlib; matplotlib.use("Agg"); import matplotlib.pyplot as plt
class Cell(cudnn_rnn_ops.RNNCell): pass
print(Cell.__mro__[1].__name__, psf.mfcc.__name__)
"""
    assert python(script) == "tensorflow.contrib.cudnn_rnn.python.ops.cudnn_rnn_ops.RNNCell python_speech_features.mfcc"


def test_an_absent_name_says_what_and_why_and_real_packages_stay():
    assert python("import json; sys.modules.pop('json', None); import json; print(json.dumps([1]))") == "[1]"
    told = python("import librosa; librosa.load('a.wav')")
    assert told.startswith(
        "old_names.absent.AbsentError: The program asks for librosa.load, which the local training image"
    )


@pytest.mark.parametrize(
    ("references", "hypotheses", "score"),
    [
        ([["a b c d e"]], ["a b c d e"], "1.0"),
        ([["a b c d e f g"]], ["a b c d x f g"], "0.4889"),
        ([["a b c d"]], ["a b x y"], "0.0"),
        ([["a b c d"]], ["w x y z"], "0"),
        ([["a b c d e f g h"], ["a b"]], ["a b c d e f", "a b"], "0.6854"),
        ([["a b c d e"]], ["a b c d"], "0.7788"),
        ([["a b c d e f"]], ["a a b c d e"], "0.7598"),
    ],
)
def test_bleu_is_what_nltk_3_2_5_gives(references, hypotheses, score):
    split = [[words.split() for words in group] for group in references], [words.split() for words in hypotheses]
    script = (
        f"import nltk; print(nltk.translate.bleu_score.corpus_bleu({split[0]!r}, {split[1]!r}, emulate_multibleu=True))"
    )
    assert python(script) == score
