"""The way of one guest's order: how many modules of the provider a reader has to open to follow it."""

import sys
import threading
from pathlib import Path
from types import CodeType, FrameType, SimpleNamespace
from typing import Any

import pytest
from pulumi.runtime.proto import provider_pb2

import providers
from providers.grpc.servicer import Provider, to_python, to_struct
from providers.rental import order
from providers.softlayer.__main__ import SOFTLAYER
from tools.chaos.accounts import CLOCK_RATE, AccountServer
from tools.chaos.provider import STACK, Resource, named
from tools.chaos.softlayer import cluster

FOLDER = f"{Path(providers.__file__).parent}/"
UNTIL_ORDERED, UNTIL_READY = 8, 14
"""Where the new guest is listed late, its order is asked for too."""
RETURNS = 7
TRANSPORT = {"rental/api_calls.py", "softlayer/api.py"}
"""Each question to the account passes them: no return is counted for them."""


class Trace:
    """The files of the provider whose functions ran, in the order in which they were first entered."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self.until_ordered: list[str] = []
        self.way: list[str] = []
        """The files as a reader comes to them, who reads each function once and goes back to its caller without a search."""
        self._read: set[CodeType] = set()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        file = place(frame)
        if event == "call" and file:
            self.files.setdefault(file)
            self._follow(frame, file)
        if event == "return" and frame.f_code is order.submit.__code__:
            self.until_ordered = list(self.files)

    def _follow(self, frame: FrameType, file: str) -> None:
        if self.until_ordered or file in TRANSPORT or frame.f_code in self._read:
            return
        self._read.add(frame.f_code)
        if file not in callers(frame) and self.way[-1:] != [file]:
            self.way.append(file)


def place(frame: FrameType) -> str:
    """Name the file of the provider that a function stands in; empty for every other file."""
    file = frame.f_code.co_filename
    return file.removeprefix(FOLDER) if file.startswith(FOLDER) else ""


def callers(frame: FrameType) -> set[str]:
    """List the files that wait for a call."""
    found, above = set(), frame.f_back
    while above is not None:
        found.add(place(above))
        above = above.f_back
    return found


def refuse(code: object, details: str) -> None:
    raise AssertionError(details)


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """A provider in this process, asked as the engine does, with an emulated account."""
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path / "home"))
    server, context = AccountServer(), SimpleNamespace(is_active=lambda: True, abort=refuse)
    with server.opened(tmp_path / "account") as rented:
        provider = Provider(SOFTLAYER, "", lambda: False)
        settings = {"configFile": str(rented.config_file), "timeScale": str(1 / CLOCK_RATE)}
        provider.Configure(provider_pb2.ConfigureRequest(args=to_struct(settings)), context)

        def create(kind: str, name: str, inputs: dict[str, Any]) -> Resource:
            request = provider_pb2.CreateRequest(**named(kind, name), properties=to_struct(inputs))
            made = provider.Create(request, context)
            return Resource(kind, name, made.id, inputs, to_python(made.properties))

        yield create
    server.close()


def test_the_order_of_a_guest_touches_at_most_8_modules_and_its_readiness_6_more(engine):
    made: dict[str, Resource] = {}
    trace = Trace()
    for declared in [each for level in cluster(("gpu-0",)) for each in level]:
        inputs = declared.inputs(made)
        if declared.kind == "VirtualGuest":
            threading.setprofile(trace)
            sys.setprofile(trace)
        try:
            made[declared.name] = engine(declared.kind, declared.name, inputs)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    assert made["gpu-0"].outputs["domain"].startswith(STACK)
    assert len(trace.until_ordered) in range(UNTIL_ORDERED - 1, UNTIL_ORDERED + 1), trace.until_ordered
    assert len(trace.way) - len(set(trace.way)) <= RETURNS, trace.way
    assert len(trace.files) <= UNTIL_READY, list(trace.files)
