import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "docs" / "architecture.md").read_text().split("## Packages")[1]
ROW = re.compile(r"^\| `([\w.]+)` \|.*\|([^|]*)\|$", re.MULTILINE)
MAY_IMPORT = {package: set(re.findall(r"`([\w.]+)`", allowed)) for package, allowed in ROW.findall(TABLE)}
AGENT_LAYERS = (("run",), ("formats", "nodes", "launch", "data"), ("supervise", "records", "batch"))
OURS = {package.partition(".")[0] for package in MAY_IMPORT}


def place(package: str) -> Path:
    """Return the folder of a package, or the file of a module."""
    folder = ROOT / package.replace(".", "/")
    return folder if folder.is_dir() else folder.with_suffix(".py")


def row_of(module: str) -> str:
    """Return the most specific row of the table that speaks of a module."""
    return max((row for row in MAY_IMPORT if f"{module}.".startswith(f"{row}.")), key=len, default="")


def files(package: str) -> list[Path]:
    """Return the files of a package, without those that have a row of their own."""
    found = sorted(place(package).rglob("*.py")) if place(package).is_dir() else [place(package)]
    return [file for file in found if row_of(".".join(file.relative_to(ROOT).with_suffix("").parts)) == package]


@cache
def imports(file: Path) -> set[str]:
    """Return what a file imports, by its full names."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def ours(file: Path) -> set[str]:
    """Return the modules of ours that a file imports, as far as the table names them."""
    return {name for name in imports(file) if name.partition(".")[0] in OURS}


def folder_of(file: Path) -> str:
    """Return the dotted name of a file's folder."""
    return ".".join(file.relative_to(ROOT).parent.parts)


def place_of(name: str) -> str:
    """Return the dotted name of the folder in which an imported module lies."""
    parts = name.split(".")
    while not (ROOT / "/".join(parts)).is_dir():
        parts.pop()
    return ".".join(parts)


@pytest.mark.parametrize("name", ["Account", "Container", "Guard", "Host", "Owner"])
def test_the_product_has_one_class_of_a_name(name: str) -> None:
    found = [file for top in ("agent", "microcluster") for file in files_with_class(name, ROOT / top)]
    assert len(found) == 1, found


NAMED = re.compile(r"`((?:agent|components|emulator|microcluster)(?:\.[a-z]\w*)+)(?:\.([A-Za-z_]\w+))?`")
"""Name of a module in a note, or of something that it defines."""


@pytest.mark.parametrize("top", ["agent", "components", "docs", "emulator", "microcluster"])
def test_modules_that_notes_name_exist_with_what_they_name(top: str) -> None:
    files = [file for ending in ("py", "md") for file in (ROOT / top).rglob(f"*.{ending}")]
    named = {found.groups() for file in files for found in NAMED.finditer(file.read_text())}
    assert {pair for pair in named if not is_there(*pair)} == set()


def is_there(module: str, name: str | None) -> bool:
    """Say whether a module or a package exists, and defines a name."""
    if place(module).exists():
        text = "" if place(module).is_dir() else place(module).read_text()
        return not name or place(f"{module}.{name}").exists() or bool(re.search(rf"\b{name}\b", text))
    above, _, last = module.rpartition(".")
    return place(above).is_file() and bool(re.search(rf"\b{last}\b", place(above).read_text()))


def files_with_class(name: str, folder: Path) -> list[Path]:
    """Return the files of a folder that define a class of that name."""
    return [file for file in folder.rglob("*.py") if re.search(rf"^class {name}\b", file.read_text(), re.MULTILINE)]


def test_the_table_names_every_package_and_only_what_is_there() -> None:
    named = set(MAY_IMPORT) | set().union(*MAY_IMPORT.values())
    assert {name for name in named if not place(name).exists()} == set()
    packages = {file.parent for top in OURS for file in (ROOT / top).glob("*/__init__.py")}
    covered = {place(package) for package in MAY_IMPORT} | {ROOT / "microcluster" / "accounts"}
    assert {folder for folder in packages if not covered & {folder, *folder.parents}} == set()


@pytest.mark.parametrize("package", sorted(MAY_IMPORT))
def test_a_package_imports_only_what_the_table_allows(package: str) -> None:
    for file in files(package):
        others = {name for name in ours(file) if row_of(name) != package}
        strange = {name for name in others if not any(f"{name}.".startswith(f"{one}.") for one in MAY_IMPORT[package])}
        assert not strange, f"{file.relative_to(ROOT)} imports {', '.join(sorted(strange))}"


@pytest.mark.parametrize("package", sorted(MAY_IMPORT))
def test_the_product_knows_no_emulator_and_no_test(package: str) -> None:
    outside = {"tests", "docs"} if package.startswith("emulator") else {"emulator", "tests", "docs"}
    for file in files(package):
        assert not outside & {name.partition(".")[0] for name in imports(file)}, file


def test_no_folder_is_in_a_circle_with_another() -> None:
    imported = ((folder_of(file), place_of(name)) for row in MAY_IMPORT for file in files(row) for name in ours(file))
    arrows = {
        (of, to) for of, to in imported if not f"{of}.".startswith(f"{to}.") and not f"{to}.".startswith(f"{of}.")
    }
    while ends := {of for of, _ in arrows} ^ {to for _, to in arrows}:
        arrows = {arrow for arrow in arrows if not ends & set(arrow)}
    assert arrows == set()


def test_each_layer_of_the_agent_imports_no_higher_one() -> None:
    height = {f"agent.{folder}": number for number, layer in enumerate(AGENT_LAYERS) for folder in layer}
    for folder, own in height.items():
        for file in place(folder).rglob("*.py"):
            taken = {".".join(name.split(".")[:2]) for name in ours(file)}
            assert all(height.get(one, 0) <= own for one in taken), file


def test_no_command_imports_another() -> None:
    commands = {f"microcluster.commands.{file.stem}" for file in (ROOT / "microcluster" / "commands").glob("[!_]*.py")}
    for name in commands:
        found = {f"{one}." for one in imports(ROOT / f"{name.replace('.', '/')}.py")}
        assert {one for one in commands if any(each.startswith(f"{one}.") for each in found)} == set(), name


def test_no_section_and_no_status_imports_pulumi() -> None:
    """Importing it takes longer than all else of a command."""
    named = "from microcluster.accounts.registry import ACCOUNTS, account_of; [*map(account_of, ACCOUNTS)]"
    script = f"import sys; {named}; import microcluster.commands.status; print('pulumi' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_what_judges_an_account_shares_no_code_with_anything() -> None:
    assert ours(ROOT / "tests" / "chaos" / "checker.py") == set()


def test_only_the_remote_folder_opens_ssh() -> None:
    for package in set(MAY_IMPORT) - {"microcluster.remote"}:
        for file in files(package):
            assert not {"paramiko", "fabric"} & {name.partition(".")[0] for name in imports(file)}, file


def test_the_program_is_a_table_of_contents() -> None:
    assert len((ROOT / "__main__.py").read_text().splitlines()) <= 40
