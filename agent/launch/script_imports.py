"""Import what a script imports, before anybody pays for a training that cannot begin. Argument: the script.

Only the imports that every start reaches count: those at the top level of the script. It runs by the program's own interpreter, as a
file of its own, because a program may have a module named as our package.
"""

import ast
import os
import sys

MARK = "imports: "
"""Begins the sentence that names what cannot be imported."""
REFUSED = 3


def main(script):
    """Return REFUSED when an import fails, after a sentence about it; any other end says nothing about the script."""
    sys.dont_write_bytecode = True
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    name = os.path.basename(script)
    try:
        with open(script, "rb") as file:
            tree = ast.parse(file.read(), script)
        statements, scope = tree.body, {"__name__": "imports"}
        for statement in statements:
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                tree.body = [statement]
                exec(compile(tree, script, "exec"), scope)  # noqa: S102 - the script is what will be started
    except (ImportError, AttributeError, SyntaxError) as error:
        version = "Python " + ".".join(map(str, sys.version_info[:2]))
        reason = " ".join(str(error).split())
        print(MARK + name + " cannot be started by " + version + ": " + type(error).__name__ + ": " + reason)
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
