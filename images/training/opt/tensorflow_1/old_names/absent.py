"""Modules that are imported and never used here: every name in them exists, and only using one is an error.

Who imports them: ``data/__init__.py`` and ``models/__init__.py`` load speech, pictures and language models
(librosa, resampy, python_speech_features, pandas, scipy, matplotlib); ``parts/rnns/*.py``, ``parts/tacotron/*.py``,
``encoders/rnn_encoders.py`` and other files of recurrent models import from ``tensorflow.contrib`` while they are loaded.
Texar loads all its modules likewise: tensorflow_probability and regex are for models that draw samples and for GPT-2.
"""

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

PACKAGES = (
    *("joblib", "librosa", "matplotlib", "pandas", "python_speech_features", "resampy", "sacrebleu", "scipy"),
    *("regex", "tensorflow_probability"),
)
CONTRIB = "tensorflow.contrib."


class AbsentError(NotImplementedError):
    """A program used a name that the local training image does not have."""


class _Absent(type):
    """A name that can be passed on, be asked for further names and be a base class, and not be called."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return name_of(f"{cls.__name__}.{name}")

    def __call__(cls, *args, **kwargs):
        raise AbsentError(
            f"The program asks for {cls.__name__}, which the local training image does not have. It runs OpenSeq2Seq's Transformer "
            "that translates text, and Texar's distributed language model; for other models use NVIDIA's image."
        )


def name_of(path):
    """Return the class that stands for ``path``."""
    return _Absent(path, (), {})


class AbsentModule(ModuleType):
    """A module in which every name exists."""

    __path__ = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return name_of(f"{self.__name__}.{name}")


class _Finder(MetaPathFinder, Loader):
    """Finds what nobody else has found: it stands last."""

    def __init__(self, packages):
        self.packages = packages

    def find_spec(self, fullname, path=None, target=None):
        if fullname.rpartition(".")[2][:1].isupper():
            return None  # A class: Texar tries a class's path as a module's (pydoc.locate).
        wanted = f"{fullname}.".startswith(CONTRIB) or fullname.partition(".")[0] in self.packages
        return ModuleSpec(fullname, self, is_package=True) if wanted else None

    def create_module(self, spec):
        module = AbsentModule(spec.name)
        if spec.name == "matplotlib":  # models/speech2text.py and models/text2speech.py choose a backend when loaded.
            module.use = lambda backend: None
        return module

    def exec_module(self, module):
        pass


def install():
    """Let the import of what is not installed succeed."""
    missing = {package for package in PACKAGES if package not in sys.modules and find_spec(package) is None}
    sys.meta_path.append(_Finder(missing))
