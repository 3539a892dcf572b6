"""Everything that runs on rented machines.

The folder is sent as a whole to ``<run>/agent`` on every machine, and ``python3 <run>/agent MODULE ARGUMENT...`` calls the ``main``
of one module, on the machine itself or in its training container. So all of it is Python 3.5, uses only the standard library
and imports only itself. A module that is also sent alone, on standard input or as an argument, imports nothing of the package.
"""


def program(folder, module, *arguments):
    """Return the argv that runs one module of the package in a run's folder; `python` may be a program's own, of Python 2."""
    return ["python3", folder + "/agent", module] + list(arguments)
