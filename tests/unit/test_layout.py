from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OURS = {
    "catalog",
    "chaos",
    "components",
    "config",
    "emulator",
    "fabfile",
    "launchers",
    "plain_text",
    "planning",
    "providers",
    "remote",
    "setup",
    "verbs",
}
MAY_IMPORT = {
    "catalog": set(),
    # The campaigns play the engine and hold the account in their own process, as the tests do; their program is the product's cluster.
    "chaos": {"components", "config", "emulator", "providers.softlayer"},
    "components": {
        "catalog",
        "config",
        "launchers",
        "providers.softlayer.resources",
        "providers.softlayer.goods_resources",
    },
    # Which files finished data consist of, and what trains in an image, is known in one place each.
    "config": {"catalog", "launchers.datasets", "launchers.image", "planning"},
    "emulator": set(),
    "images": set(),
    "launchers": {"plain_text"},
    # Whoever shows text from outside, set-up included before anything is installed.
    "plain_text": set(),
    "planning": {"catalog"},
    "providers": {"catalog", "plain_text"},
    "remote": {"launchers", "plain_text", "planning"},
    "verbs": {
        *("config", "launchers", "plain_text", "planning", "remote"),
        *(
            f"providers.softlayer.{name}"
            for name in ("account", "belongings", "by_hand", "charges", "errors", "mark", "waiting")
        ),
        *(
            f"setup.{name}"
            for name in ("checkpoint", "environment", "errors", "locks", "mend", "orphans", "unforeseen", "withheld")
        ),
    },
}


def imports(file: Path) -> set[str]:
    """Return the modules of ours that a file imports, as far as the table names them."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        found |= {name for name in names if name.partition(".")[0] in OURS}
    return found


def test_the_table_names_only_what_is_there() -> None:
    named = set(MAY_IMPORT) | OURS | {name.partition(".")[0] for allowed in MAY_IMPORT.values() for name in allowed}
    assert {name for name in named if not (ROOT / name).is_dir()} == {"fabfile"}


@pytest.mark.parametrize("folder", sorted(MAY_IMPORT))
def test_a_folder_imports_only_what_the_layout_allows(folder: str) -> None:
    allowed = MAY_IMPORT[folder] | {folder}
    for file in (ROOT / folder).rglob("*.py"):
        strange = {
            name for name in imports(file) if not any(name == one or name.startswith(f"{one}.") for one in allowed)
        }
        assert not strange, f"{file.relative_to(ROOT)} imports {', '.join(sorted(strange))}"


def test_nothing_but_the_tests_and_the_command_line_names_the_emulator() -> None:
    for folder in ("catalog", "components", "config", "launchers", "providers", "remote", "verbs"):
        for file in (ROOT / folder).rglob("*.py"):
            assert not any(name.startswith("emulator") for name in imports(file)), file


def test_what_judges_an_account_shares_no_code_with_anything() -> None:
    assert imports(ROOT / "chaos" / "checker.py") == set()


def test_only_the_remote_folder_opens_ssh() -> None:
    for folder in OURS - {"remote", "fabfile"}:
        for file in (ROOT / folder).rglob("*.py"):
            tree = ast.parse(file.read_text())
            names = {
                alias.name.partition(".")[0]
                for node in ast.walk(tree)
                if isinstance(node, ast.Import)
                for alias in node.names
            }
            names |= {
                node.module.partition(".")[0]
                for node in ast.walk(tree)
                if isinstance(node, ast.ImportFrom) and node.module
            }
            assert not {"paramiko", "fabric"} & names, file


def test_the_program_is_a_table_of_contents() -> None:
    assert len((ROOT / "__main__.py").read_text().splitlines()) <= 40
