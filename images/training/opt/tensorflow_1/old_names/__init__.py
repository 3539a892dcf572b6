"""The names of TensorFlow 1 and of old packages that OpenSeq2Seq and Texar import and TensorFlow 2.12 on Python 3.11 lacks.

``install`` supplies them before upstream's first import, so that its files stay as they are:

- ``tensorflow`` is TensorFlow's own ``tensorflow.compat.v1``, for every file of theirs (see ``tensorflow.py``);
- ``tf.contrib`` has what their models need, and names without content for the rest (``contrib.py``, ``lazy_adam.py``,
  ``optimize_loss.py``);
- ``nltk`` is BLEU alone, for ``models/text2text.py`` (``nltk_bleu.py``);
- ``funcsigs``, for ``texar/tf/utils/utils.py``, is Python's own ``inspect``, which has had its function since Python 3.3;
- packages for speech, figures and other models, which are imported and not used here, are names only (``absent.py``).

NumPy is older than 1.24 and still has its old names; mpi4py, six and h5py are installed.
"""

import inspect
import sys

from old_names import absent, nltk_bleu, tensorflow


def install() -> None:
    """Supply the names in this process, once; TensorFlow and Horovod are loaded as they are before that."""
    absent.install()
    nltk_bleu.install()
    sys.modules.setdefault("funcsigs", inspect)
    tensorflow.install()
