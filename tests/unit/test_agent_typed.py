"""Types of the agent, written as Python 3.5 reads them."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

AGENT = Path(__file__).parents[2] / "agent"
FILES = sorted(AGENT.rglob("*.py"))
KNOWN = {
    *(
        "Any",
        "BinaryIO",
        "Callable",
        "Dict",
        "IO",
        "Iterable",
        "Iterator",
        "List",
        "Mapping",
        "Match",
        "MutableMapping",
    ),
    *("NamedTuple", "Optional", "Pattern", "Sequence", "Set", "Tuple", "TypeVar", "Union"),
}
"""Names of `typing` that the first releases of Python 3.5 have, as Ubuntu 16.04 has 3.5.2."""
LATER = {"dict", "frozenset", "list", "set", "tuple", "type", "Popen", "Queue"}
"""Classes that take no types in brackets before Python 3.9."""


def functions(file: Path) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef))


def parameters(function: ast.FunctionDef) -> list[ast.arg]:
    """Return the parameters that need a type: all but that of the object itself."""
    said = function.args
    found = [*said.posonlyargs, *said.args, *said.kwonlyargs, *filter(None, (said.vararg, said.kwarg))]
    return [one for one in found if one.arg != "self"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(AGENT)))
def test_every_function_of_the_agent_is_typed(file: Path) -> None:
    untyped = [
        one.name for one in functions(file) if not (one.returns and all(each.annotation for each in parameters(one)))
    ]
    assert untyped == []


def of_self(node: ast.AST, context: type[ast.expr_context]) -> set[str]:
    """Return the names that a piece of code reads or writes of its object."""
    found = (one for one in ast.walk(node) if isinstance(one, ast.Attribute) and isinstance(one.ctx, context))
    return {one.attr for one in found if getattr(one.value, "id", "") == "self"}


def declared(name: str, classes: dict[str, ast.ClassDef]) -> set[str] | None:
    """Return the names that a class and its bases declare; None where a base is of another file."""
    if name in ("ABC", "object", "Exception"):
        return set()
    if name not in classes:
        return None
    one = classes[name]
    inherited = [declared(ast.unparse(base), classes) for base in one.bases]
    if None in inherited:
        return None
    targets = {ast.unparse(each) for line in one.body if isinstance(line, ast.Assign) for each in line.targets}
    return (
        of_self(one, ast.Store) | {line.name for line in one.body if hasattr(line, "name")} | targets.union(*inherited)
    )


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(AGENT)))
def test_a_class_declares_what_its_methods_use(file: Path) -> None:
    classes = {one.name: one for one in ast.walk(ast.parse(file.read_text())) if isinstance(one, ast.ClassDef)}
    for name, one in classes.items():
        known = declared(name, classes)
        assert known is None or of_self(one, ast.Load) <= known, name


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(AGENT)))
def test_types_are_those_that_python_3_5_knows(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "typing":
            assert {alias.name for alias in node.names} <= KNOWN
        if isinstance(node, ast.Subscript):
            assert getattr(node.value, "id", getattr(node.value, "attr", "")) not in LATER, ast.unparse(node)
        if isinstance(node, ast.FunctionDef):
            said = [node.returns, *(one.annotation for one in parameters(node))]
            assert not [one for one in filter(None, said) if "|" in ast.unparse(one)], node.name


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(AGENT)))
def test_no_comma_ends_parameters_behind_a_star(file: Path) -> None:
    """Python 3.5 takes a comma there after plain parameters alone; what formats our code adds one to long lists."""
    text = file.read_text()
    for one in functions(file):
        if one.args.vararg or one.args.kwarg or one.args.kwonlyargs:
            head = "\n".join(text.splitlines()[one.lineno - 1 : one.body[0].lineno - 1])
            assert ",\n)" not in head.replace(" ", ""), one.name
