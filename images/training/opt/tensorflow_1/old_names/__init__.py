"""The names of TensorFlow 1 and of old packages that OpenSeq2Seq and Texar import and TensorFlow 2.12 on Python 3.11 lacks.

``install`` supplies them before upstream's first import, so that its files stay as they are:

- ``tensorflow`` is TensorFlow's own ``tensorflow.compat.v1``, for every file of theirs;
- ``tf.contrib`` has what their models need, and names without content for the rest (``contrib.py``);
- ``nltk`` is BLEU alone, for ``models/text2text.py``: nltk 3.2.5, which upstream asks for, cannot be imported by Python 3.11, and later
  versions do not know ``emulate_multibleu``. ``data/lm/lmutils.py`` imports its ``word_tokenize`` for language models only;
- ``funcsigs``, for ``texar/tf/utils/utils.py``, is Python's own ``inspect``, which has had its function since Python 3.3;
- packages for speech, figures and other models, which are imported and not used here, are names only (``absent.py``).

NumPy is older than 1.24 and still has its old names; mpi4py, six and h5py are installed.
"""

import inspect
import sys

import piece_bleu

from old_names import absent


def install():
    """Supply the names in this process, once; TensorFlow and Horovod are loaded as they are before that."""
    absent.install()
    install_nltk()
    sys.modules.setdefault("funcsigs", inspect)
    install_tensorflow()


def install_nltk():
    """Let ``import nltk`` find its one function that is called."""
    names = ("nltk", "nltk.tokenize", "nltk.translate", "nltk.translate.bleu_score")
    nltk, tokenize, translate, bleu_score = (sys.modules.setdefault(name, absent.AbsentModule(name)) for name in names)
    nltk.tokenize, nltk.translate, translate.bleu_score = tokenize, translate, bleu_score
    bleu_score.corpus_bleu = corpus_bleu


def corpus_bleu(list_of_references, hypotheses, emulate_multibleu=True):
    """Return BLEU from 0 to 1 with one reference a sentence, rounded."""
    pairs = zip(hypotheses, list_of_references, strict=True)
    counted = [piece_bleu.counts(hypothesis, references[0]) for hypothesis, references in pairs]
    return piece_bleu.score([sum(column) for column in zip(*counted, strict=True)])


def install_tensorflow():
    """Replace the module for all who import it from now on, and let it behave as TensorFlow 1 did on GPUs.

    Horovod has to know the real one (it asks for the version and for names of both), so it is loaded first.
    ``models/model.py`` needs the dimensions of TensorFlow 1. Without resource variables a processor would report each step
    after its update: steps 1, 11, 21 where GPUs report 0, 10, 20, and best models with a number that is one too high.
    """
    import horovod.tensorflow  # noqa: F401, PLC0415 -- loading it is the point
    import tensorflow.compat.v1 as tf  # noqa: PLC0415 -- takes seconds, and nobody should pay for it who imports the package

    from old_names import contrib  # noqa: PLC0415 -- imports TensorFlow

    tf.logging.set_verbosity(tf.logging.ERROR)  # Otherwise TensorFlow 2 warns of every name of TensorFlow 1.
    tf.disable_v2_behavior()
    tf.enable_resource_variables()
    tf.contrib = contrib.build()
    sys.modules["tensorflow"] = tf
