"""Every command on a page for people exists with its options and has a row on the page of commands."""

import argparse
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from invoke import Collection
from test_docs_pages import PAGES, ROOT, name

import fabfile
from emulator.cli import _parser as emulator_parser
from tests.chaos.__main__ import _parser as chaos_parser

COMMANDS = ROOT / "docs" / "commands.md"
PROGRAMS = ("make", "fab", "pulumi", "python", "slcli", "curl", "rsync", "docker")
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
ASSIGNMENT = re.compile(r"([A-Z][A-Z0-9_]+)=\S*")
TARGETS = " ".join(re.findall(r"^(?:COMMANDS|TOOLS) := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)).split()
PULUMI = ("preview", "up", "destroy", "import", "stack", "plugin")
PARSERS = {"emulator": emulator_parser, "tests.chaos": chaos_parser}


def lines_of(page: Path) -> Iterator[str]:
    """Return what stands between backticks and in code blocks; of blocks with output, what follows a prompt."""
    text = page.read_text()
    for language, block in FENCED.findall(text):
        for line in block.splitlines():
            if language == "sh":
                yield from re.split(r"\s{3,}", line.partition("#")[0].strip())
            elif line.startswith("$ "):
                yield line[2:]
    yield from INLINE.findall(FENCED.sub("", text))


def commands_of(page: Path) -> Iterator[tuple[dict[str, str], list[str]]]:
    """Return each command on a page as the variables before it and its words."""
    for line in lines_of(page):
        for part in re.split(r"\s*[|;]\s*(?=[a-z])", line) if "'" not in line else [line]:
            try:
                words = shlex.split(part)
            except ValueError:  # Half of a sentence, no command.
                continue
            given = {}
            while words and (assigned := ASSIGNMENT.fullmatch(words[0])):
                given[assigned.group(1)] = words.pop(0)
            if len(words) > 1 and (program := Path(words[0]).name.rstrip("3")) in PROGRAMS:
                yield given, [program, *words[1:]]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_command_on_a_page_exists_with_its_options(page: Path) -> None:
    checks = {"make": make_problem, "fab": fab_problem, "pulumi": pulumi_problem, "python": module_problem}
    found = {
        " ".join(words): checks[words[0]](words[1:], given) for given, words in commands_of(page) if words[0] in checks
    }
    assert {command: problem for command, problem in found.items() if problem} == {}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_command_on_a_page_has_a_row_that_says_what_it_does(page: Path) -> None:
    assert {name_of(words) for _, words in commands_of(page)} <= rows()


def test_the_pages_are_read_for_their_commands() -> None:
    readme = [" ".join(words) for _, words in commands_of(ROOT / "README.md")]
    assert {"make up", "make test", "make up STACK=mine", "fab watch --stack mine"} <= set(readme)


def test_every_make_target_and_every_fab_verb_has_a_row() -> None:
    wanted = {f"make {target}" for target in TARGETS} | {f"fab {command}" for command in fabfile.MODULES}
    assert wanted <= rows()


def test_every_row_of_fab_has_all_options_of_its_command() -> None:
    cells = re.findall(r"^\| (`fab [^|]+) \|[^|]*\| ([^|]*) \|$", COMMANDS.read_text(), re.MULTILINE)
    said = {name: options for names, options in cells for name in re.findall(r"`fab ([\w-]+)", names)}
    for command in set(said) & set(fabfile.MODULES) - {"up", "down"}:
        flags = {each.name.replace("_", "-") for each in collection()[command].get_arguments() if not each.positional}
        assert {flag for flag in flags - {"stack", "runs"} if f"--{flag}" not in said[command]} == set(), command


def test_the_page_names_the_commands_that_take_no_stack() -> None:
    [listed] = re.findall(r"All take `--stack` but ([^.]+)\.", COMMANDS.read_text())
    without = {
        command
        for command in fabfile.MODULES
        if "stack" not in {each.name for each in collection()[command].get_arguments()}
    }
    assert set(INLINE.findall(listed)) == without


@cache
def rows() -> set[str]:
    """Return the commands that have a row in docs/commands.md."""
    cells = re.findall(r"^\|((?:[^|\\]|\\.)*)\|", COMMANDS.read_text(), re.MULTILINE)
    commands = [shlex.split(command) for cell in cells for command in INLINE.findall(cell)]
    return {name_of(words) for words in commands if words[0] in PROGRAMS}


def name_of(words: list[str]) -> str:
    """Return what a command is called in the table: the program and its verb."""
    if words[0] == "python":
        module = words[2]
        verb = words[3] if module == "emulator" and len(words) > 3 else ""
        known = ("invoice", "methods", "approve")
        names = {"refuse": "approve"}
        verb = names.get(verb, verb if verb in known else "start")
        top = ".".join(module.split(".")[:2])
        return f"python -m emulator {verb}" if module == "emulator" else f"python -m {top}"
    if words[0] in ("make", "fab", "pulumi"):
        verb = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), "")
        return (
            f"{words[0]} {verb.partition('.')[0]}" if "--list" not in words and "--help" not in words else "fab status"
        )
    return words[0]


@cache
def collection() -> Collection:
    """Return every command, those that only Pulumi calls included."""
    return fabfile.commands(("step.", *fabfile.MODULES))


def make_problem(words: list[str], given: dict[str, str]) -> str:
    variables = {*given, *(assigned.group(1) for word in words if (assigned := ASSIGNMENT.fullmatch(word)))}
    targets = [word for word in words if "=" not in word]
    strange = [each for each in targets if each not in (*TARGETS, "help")]
    unknown = [name for name in variables if not is_read(name)]
    if len(targets) > 1:
        return ""  # A sentence about several targets is none.
    return "; ".join([*(f"no target {each}" for each in strange), *(f"nobody reads {name}" for name in unknown)])


@cache
def is_read(variable: str) -> bool:
    files = [ROOT / "Makefile", *(ROOT / "microcluster").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    return any(re.search(rf"[\"(,]{variable}[\"),]|^{variable} ", file.read_text(), re.MULTILINE) for file in files)


def fab_problem(words: list[str], given: dict[str, str]) -> str:
    verbs = collection().task_names
    if words[0] in ("--list", "--help"):
        return "" if words[1:] in ([], *([verb] for verb in verbs)) else f"no verb {words[1]}"
    if words[0] not in verbs:
        return f"no verb {words[0]}"
    known = {
        flag
        for each in collection()[words[0]].get_arguments()
        for flag in (f"-{name}" if len(name) == 1 else f"--{name}" for name in each.names)
    }
    known |= {name.replace("_", "-") for name in known}
    own = words[1 : words.index("--")] if "--" in words else words[1:]
    strange = [word for word in own if word.startswith("-") and word.partition("=")[0] not in known]
    return f"no option {', '.join(strange)}" if strange else ""


def pulumi_problem(words: list[str], given: dict[str, str]) -> str:
    if words[0] not in PULUMI:
        return f"not one of {', '.join(PULUMI)}"
    stack = words[words.index("-s") + 1] if "-s" in words else "local"
    exists = stack.isupper() or (ROOT / "stacks" / f"Pulumi.{stack}.yaml").exists()
    return "" if exists else f"no stack {stack}"


def module_problem(words: list[str], given: dict[str, str]) -> str:
    if words[0] != "-m":
        return "no module"
    path = ROOT / words[1].replace(".", "/")
    if words[1] in ("ruff", "pytest"):
        missing = [word for word in words if word.startswith("tests/") and not (ROOT / word).exists()]
        return f"no {', '.join(missing)}" if missing else ""
    if not (path.with_suffix(".py").exists() or (path / "__main__.py").exists()):
        return f"no module {words[1]}"
    if words[1] in PARSERS and len(words) > 2:
        return parse_problem(PARSERS[words[1]](), ["1" if word.isupper() else word for word in words[2:]])
    return ""


def parse_problem(parser: argparse.ArgumentParser, words: list[str]) -> str:
    try:
        parser.parse_args(words)
    except SystemExit:
        return "its options are refused"
    return ""
