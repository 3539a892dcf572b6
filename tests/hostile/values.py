"""What a hostile machine puts into an answer: texts that act on a terminal, names that lead elsewhere, values of wrong types."""

from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

FLOOD = 80_000
"""Characters."""
TEXTS = {
    "color": "\x1b[31mred\x1b[0m",
    "title": "\x1b]0;owned\x07",
    "open sequence": "\x1b]8;;file:///etc/passwd",
    "clipboard": "\x1b]52;c;cm0gLXJmIH4=\x07",
    "C1": "\x9b2J\x9dtitle\x9c\x90q\x9c\x85\x84",
    "cursor": "\r\x1b[2K\x1b[1AAll hashes agree\x1b[8m",
    "bidi": "\u202etxt.exe\u202c\u2066\u2069\u061c\u200f",
    "NUL": "a\0b\0",
    "delete": "\x7f\b\b\b\b",
    "surrogate": "\ud800x\udfff",
    "lines": "\u2028\u2029\x0b\x0c\r\n\n",
    "markup": "[bold red]x[/bold red] [link=file:///etc/passwd]y[/link] [/]",
    "page": "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "template": "{0.__class__} %s %n ${HOME} `id` $(id)",
    "unassigned": "\U0010ffff\ufffe\ufeff\u00ad\u200b",
}
FLOODS = (
    "\x1b[",
    "\x1b]",
    "\x1b",
    "\x9d",
    "\x9b",
    "\x90",
    "\0",
    "\x1b[1;",
    "\x1b]0;",
    "\u202e",
    "\r",
    "\t",
    "\x1b[31m",
    "\b",
    "\x1bP",
    "\x1b ",
)
WRONG: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        [],
        {},
        "",
        "x",
        "-1",
        "1e999",
        -1,
        0,
        1,
        2**31,
        2**63,
        -(2**63),
        2**64,
        10**18,
        0.5,
        1e308,
        -0.0,
        5e-324,
    ),
    *(
        float("nan"),
        float("inf"),
        float("-inf"),
        [None],
        [[]],
        {"": None},
        {"a": {"b": []}},
        [1, "x", None],
        "x" * 5000,
        "\ud800",
    ),
)
SIZES: tuple[Any, ...] = (
    *(
        -1,
        0,
        1,
        50 * 10**12,
        2**63,
        2**63 - 1,
        2**64,
        10**30,
        float("nan"),
        float("inf"),
        0.5,
        3.0,
        True,
        "27",
        None,
        [],
        -(2**63),
        1e15,
    ),
)


@dataclass
class Scene:
    """What an attack may choose from.

    Attributes:
        chance: its own generator.
        place: the folder of the case, in which alone names may lead anywhere.
        up: how many folders a run's folder lies below ``place``.
    """

    chance: Random
    place: Path
    up: int = 4
    made: list[str] = field(default_factory=list)

    @property
    def bait(self) -> str:
        """A file outside the run's folder that is there, or is not."""
        return self.chance.choice(
            ("person/.bashrc", "person/.ssh/authorized_keys", "outside/new", "project/fabfile.py", "home/keys/x")
        )

    @property
    def text(self) -> str:
        """A text that a terminal, a page or a parser would act on."""
        return self.chance.choice((*TEXTS.values(), *(flood * (FLOOD // len(flood)) for flood in FLOODS)))


def hostile_names(scene: Scene) -> dict[str, str]:
    """Return names of files by what is wrong with them; one that leads outside leads into the case's own folder."""
    place, bait = str(scene.place), scene.bait
    climb = "../" * (scene.up + 1)
    return {
        "parent": f"../{bait.rpartition('/')[2]}",
        "climbing": f"{climb}{bait}",
        "climbing inside": f"logdir/../../{climb}{bait}",
        "far climbing": f"{'../' * 30}{place[1:]}/{bait}",
        "absolute": f"{place}/{bait}",
        "two slashes": f"/{place}/{bait}",
        "three slashes": f"//{place}/{bait}",
        "inner absolute": f"logdir/{place}/{bait}",
        "dot": ".",
        "two dots": "..",
        "empty": "",
        "slash": "/",
        "blank": " ",
        "NUL": f"logdir/a\0{bait}",
        "newline": "logdir/a\nb",
        "carriage return": "logdir/a\rb",
        "escape": "logdir/\x1b]0;owned\x07\x1b[2J",
        "C1": "logdir/\x9b31m\x85",
        "bidi": "logdir/\u202efdp.exe",
        "surrogate": "logdir/\udcff\udcfe",
        "lone surrogate": "logdir/\ud800",
        "300 bytes": "logdir/" + "n" * 300,
        "300 bytes of two": "logdir/" + "\u00e9" * 150,
        "4096 bytes": "logdir/" + "/".join(["m" * 200] * 21),
        "500 deep": "/".join(["d"] * 500) + "/x",
        "5000 deep": "/".join(["d"] * 5000) + "/x",
        "100000 long": "l" * 100_000,
        "trailing dot": "logdir/x.",
        "trailing blank": "logdir/x ",
        "device": "logdir/CON",
        "stream": "logdir/x:y",
        "backslash": "..\\..\\person\\.bashrc",
        "hook": ".git/hooks/post-checkout",
        "git": ".git/config",
        "page": "report.html",
        "report": "report.json",
        "manifest": "manifest.json",
        "part": "config.py.part",
        "startup": "sitecustomize.py",
        "dash": "-rf",
        "home": "~/.bashrc",
        "variable": "$HOME/.bashrc",
        "dot slash": "./logdir//x",
        "markup": "logdir/[red]x[/red]",
    }


def twins(scene: Scene) -> tuple[str, str]:
    """Return two names that collide on some computer, or of which one is a folder for the other."""
    return scene.chance.choice(
        (
            ("logdir/Twin", "logdir/twin"),
            ("logdir/caf\u00e9", "logdir/cafe\u0301"),
            ("logdir/both", "logdir/both/inner"),
            ("both/inner", "both"),
            ("config.py", "config.py"),
            ("config.py/x", "config.py"),
            ("logdir/x.part", "logdir/x"),
            ("logdir", "logdir/x"),
        )
    )
