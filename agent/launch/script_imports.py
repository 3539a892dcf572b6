"""Name what a script imports that its interpreter may not find, before anybody pays for a training. Argument: the script.

Nothing of the program is executed: what stands between its imports may change where they are looked for. So what is missing here may be
there in the training, and is worth a note alone. It runs by the program's own interpreter, as a file of its own, because a program may
have a module named as our package.
"""

import ast
import importlib.util
import os
import sys
from typing import Set

MARK = "imports: "
"""Begins the sentence that names what was not found."""


def main(script: str) -> None:
    """Print a sentence about modules of imports that every start reaches, those at the top level, where they are not found."""
    sys.dont_write_bytecode = True
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    with open(script, "rb") as file:
        try:
            missing = sorted(name for name in imported(ast.parse(file.read())) if not is_found(name))
            what = missing and "does not find " + ", ".join(missing)
        except SyntaxError as error:
            what = "cannot read it ({})".format(error.msg)
    if what:
        version = ".".join(map(str, sys.version_info[:2]))
        print("{}Python {} {} of {}".format(MARK, version, what, os.path.basename(script)))


def imported(tree: ast.Module) -> Set[str]:
    """Return the names, without those of their parts, of the modules that the top level imports."""
    named = [one.name for statement in tree.body if isinstance(statement, ast.Import) for one in statement.names]
    named += [one.module for one in tree.body if isinstance(one, ast.ImportFrom) and not one.level]
    return set(name.partition(".")[0] for name in named)


def is_found(module: str) -> bool:
    try:
        return module in sys.modules or importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):  # What a finder of the environment's own raises is no answer.
        return True


if __name__ == "__main__":
    main(sys.argv[1])
