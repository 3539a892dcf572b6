"""The list of what is emulated, as Markdown, read from the services themselves: ``python -m emulator methods``."""

from __future__ import annotations

from emulator.softlayer.services import SERVICES, Method

HEAD = """# What is emulated

Made by `python -m emulator methods`; a test holds it equal to the code. Every other method answers with the fault `-32601`,
which names it, and `python -m emulator status` counts it.
"""


def method_list() -> str:
    """Every service with its methods, each in one line."""
    parts = [HEAD.rstrip()]
    for service, methods in sorted(SERVICES.items()):
        parts += ["", f"## {service}", "", "| method | what it does here |", "|---|---|"]
        parts += [f"| `{name}` | {_first_line(method)} |" for name, method in sorted(methods.items())]
    return "\n".join(parts) + "\n"


def _first_line(method: Method) -> str:
    return (method.__doc__ or "").strip().partition("\n")[0].replace("|", "\\|")
