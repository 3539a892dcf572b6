"""What turns the lines of a run's log into events; each module is one kind of log, named by ``reader`` in the specification."""

import importlib


def reader_of(spec):
    """Return the reader that a run's specification names."""
    return importlib.import_module("agent.readers." + spec.reader).Reader(**spec.reader_options)
