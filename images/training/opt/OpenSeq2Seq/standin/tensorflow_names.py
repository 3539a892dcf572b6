"""The few TensorFlow names that a configuration file may use, so that reading one needs no TensorFlow.

TensorFlow 2 has no ``tf.contrib``; configuration files of OpenSeq2Seq name their optimizer by it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace


class DType(str):
    """A TensorFlow type: equal to its name, as the real ones are."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"tf.{self!s}"


class LazyAdamOptimizer:
    """The name of Adam that skips what a batch did not touch; the stand-in's gradients are dense, so it is Adam."""


FLOAT16 = DType("float16")
FLOAT32 = DType("float32")


def placeholder() -> ModuleType:
    """A module to be imported as ``tensorflow``."""
    module = ModuleType("tensorflow", "Names for configuration files; not TensorFlow.")
    module.float16, module.float32 = FLOAT16, FLOAT32
    module.contrib = SimpleNamespace(opt=SimpleNamespace(LazyAdamOptimizer=LazyAdamOptimizer))
    return module


@contextmanager
def instead_of_tensorflow() -> Iterator[ModuleType]:
    """Answer ``import tensorflow`` with the placeholder for a while."""
    real, module = sys.modules.get("tensorflow"), placeholder()
    sys.modules["tensorflow"] = module
    try:
        yield module
    finally:
        del sys.modules["tensorflow"]
        if real is not None:
            sys.modules["tensorflow"] = real
