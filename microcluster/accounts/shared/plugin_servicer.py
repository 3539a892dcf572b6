"""The engine's calls, handed to the resources; every failure leaves as a sentence, with the id if there is one."""

import functools
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf import any_pb2, empty_pb2, json_format, struct_pb2
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, plugin_pb2, provider_pb2, provider_pb2_grpc, status_pb2

from microcluster.accounts.shared.account import Market
from microcluster.accounts.shared.errors import CallError, PartialFailure, ProviderError
from microcluster.accounts.shared.order import Log, Operation, Session
from microcluster.accounts.shared.redaction import redacted
from microcluster.accounts.shared.resource import Managed
from microcluster.accounts.shared.spec import UNKNOWN, Values
from microcluster.core.plain_text import lines

LOG_TIMEOUT_S = 5.0
VERSION = "0.1.0"
TIME_SCALE = "timeScale"
SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105  # The engine's mark of a secret, not one.


@dataclass(frozen=True)
class Vendor:
    """A vendor as the servicer needs it: resources, account and key file."""

    resources: Sequence[Managed]
    account_of: Callable[[str | None, Mapping[str, str], threading.Event, float], Market]
    """Function that opens the account, from its key file, the environment, the engine's request to stop, and the unit of all waits."""
    key_file: str
    """The setting that names the file of the key."""

    def resource(self, token: str) -> Managed:
        """Return the resource of a type that the program declares."""
        return next(each for each in self.resources if token == each.DECLARED.TOKEN)

    def session(self, settings: Values, stop: threading.Event) -> Session:
        """Remember the settings; the first operation that needs the account opens it, so that a preview needs none."""
        scale, key_file = float(settings.get(TIME_SCALE) or 1), settings.get(self.key_file)
        return Session(lambda: self.account_of(key_file, os.environ, stop, scale), scale, stop)


class EngineLog:
    """The engine's Log call; a log that cannot be delivered never fails an operation."""

    def __init__(self, address: str) -> None:
        self._channel = grpc.insecure_channel(address, options=_GRPC_CHANNEL_OPTIONS) if address else None

    def say(self, urn: str, message: str, severity: int = engine_pb2.INFO, *, passing: bool = False) -> None:
        """Show a message; a ``passing`` one stands beside the resource only until the next."""
        if self._channel is None:
            return
        request = engine_pb2.LogRequest(severity=severity, message=lines(message), urn=urn, ephemeral=passing)
        try:
            engine_pb2_grpc.EngineStub(self._channel).Log(request, timeout=LOG_TIMEOUT_S)
        except grpc.RpcError:
            return  # The engine is gone or busy; the operation's own result matters more than its progress.

    def of(self, urn: str) -> Log:
        """Return the log of an operation on one resource."""
        warn = functools.partial(self.say, urn, severity=engine_pb2.WARNING)
        return Log(functools.partial(self.say, urn), functools.partial(self.say, urn, passing=True), warn)


def truthful(method: Callable[..., Any]) -> Callable[..., Any]:
    """Turn whatever a call raises into what the engine prints or records; the engine redacts nothing itself."""

    @functools.wraps(method)
    def answered(servicer: "Provider", request: Any, context: grpc.ServicerContext) -> Any:
        try:
            return method(servicer, request, context)
        except PartialFailure as error:
            _partial_failure(context, request, error)
        except CallError as error:
            context.abort(grpc.StatusCode.UNKNOWN, f"{error}. {error.next_step}.")
        except ProviderError as error:
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        except Exception as error:  # noqa: BLE001  # The last edge: what escapes here would be printed unredacted.
            text = redacted(
                f"{type(error).__name__}: {error}", *(servicer._session.secrets if servicer._session else ())
            )
            context.abort(grpc.StatusCode.INTERNAL, f"{method.__name__} of {_subject(request)}: {text}. This is a bug.")
        return None

    return answered


class Provider(provider_pb2_grpc.ResourceProviderServicer):
    """The provider as the engine sees it."""

    def __init__(self, vendor: Vendor, engine_address: str, engine_is_gone: Callable[[], bool]) -> None:
        self._vendor = vendor
        self._log = EngineLog(engine_address)
        self._engine_is_gone = engine_is_gone
        self.stop = threading.Event()
        self._settings: Values = {}
        self._session: Session | None = None

    @truthful
    def Handshake(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.ProviderHandshakeResponse:
        """Learn where the engine listens, and begin anew where a debugged provider outlived its last engine."""
        self.stop.clear()
        if request.engine_address:
            self._log = EngineLog(request.engine_address)
        return provider_pb2.ProviderHandshakeResponse(
            accept_secrets=False, accept_resources=False, accept_outputs=False
        )

    @truthful
    def GetPluginInfo(self, request: Any, context: grpc.ServicerContext) -> plugin_pb2.PluginInfo:
        """Tell the version."""
        return plugin_pb2.PluginInfo(version=VERSION)

    @truthful
    def CheckConfig(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.CheckResponse:
        """Accept the settings: the program, which runs before, has refused what is none."""
        return provider_pb2.CheckResponse(inputs=request.news)

    @truthful
    def DiffConfig(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.DiffResponse:
        """Never replace: it would replace every resource. What changed the engine finds itself."""
        return provider_pb2.DiffResponse()

    @truthful
    def Configure(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.ConfigureResponse:
        """Remember the settings; the account is opened by the first operation that needs it, so previews need none."""
        settings = to_python(request.args)
        if self._session is None:
            self._settings, self._session = settings, self._vendor.session(settings, self.stop)
        if self._settings != settings:
            raise ProviderError(
                "configuring the provider: it works with other settings already, and keeps them. Run the command again."
            )
        return provider_pb2.ConfigureResponse(acceptSecrets=False, supportsPreview=True)

    @truthful
    def Check(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.CheckResponse:
        """Judge the inputs; they are stored as they came."""
        resource, news = self._resource(request), to_python(request.news)
        found_problems = resource.check(news, to_python(request.olds))
        if self._session:
            resource.heed(self._session, news)
        failures = [
            provider_pb2.CheckFailure(property=problem.key, reason=problem.reason) for problem in found_problems
        ]
        return provider_pb2.CheckResponse(inputs=request.news, failures=failures)

    @truthful
    def Diff(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.DiffResponse:
        """Compare old inputs with new ones."""
        resource = self._resource(request)
        changed_keys = changed(to_python(request.old_inputs), to_python(request.news))
        return provider_pb2.DiffResponse(
            changes=provider_pb2.DiffResponse.DIFF_SOME if changed_keys else provider_pb2.DiffResponse.DIFF_NONE,
            diffs=changed_keys,
            replaces=[key for key in changed_keys if key in resource.REPLACE_ON],
            deleteBeforeReplace=True,
        )

    @truthful
    def Create(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.CreateResponse:
        """Adopt or order."""
        (resource, op), inputs = self._begun(request, context), to_python(request.properties)
        if request.preview:
            known = {**inputs, **resource.previewed(op, inputs, {})}
            return provider_pb2.CreateResponse(properties=to_struct(known))
        _check_known(request, inputs)
        made = resource.create(op, inputs)
        return provider_pb2.CreateResponse(id=made.resource_id, properties=to_struct({**inputs, **made.outputs}))

    @truthful
    def Read(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.ReadResponse:
        """Tell the truth about one object; an empty id means that it is gone."""
        resource, op = self._begun(request, context)
        live = resource.read(op, request.id, to_python(request.inputs), to_python(request.properties))
        if live is None:
            return provider_pb2.ReadResponse()
        properties = to_struct({**live.inputs, **live.outputs})
        return provider_pb2.ReadResponse(id=request.id, properties=properties, inputs=to_struct(live.inputs))

    @truthful
    def Update(self, request: Any, context: grpc.ServicerContext) -> provider_pb2.UpdateResponse:
        """Finish, or change in place."""
        (resource, op), inputs, old = self._begun(request, context), to_python(request.news), to_python(request.olds)
        if request.preview:
            known = {**inputs, **resource.previewed(op, inputs, old)}
            return provider_pb2.UpdateResponse(properties=to_struct(known))
        _check_known(request, inputs)
        outputs = resource.update(op, request.id, inputs, old)
        return provider_pb2.UpdateResponse(properties=to_struct({**inputs, **outputs}))

    @truthful
    def Delete(self, request: Any, context: grpc.ServicerContext) -> empty_pb2.Empty:
        """Cancel, and prove it."""
        (resource, op), old = self._begun(request, context), to_python(request.properties)
        resource.delete(op, request.id, to_python(request.old_inputs) or old, old)
        return empty_pb2.Empty()

    def Cancel(self, request: Any, context: grpc.ServicerContext) -> empty_pb2.Empty:
        """Stop waiting; never undo anything. It also comes at the end of every successful command."""
        self.stop.set()
        return empty_pb2.Empty()

    def _resource(self, request: Any) -> Managed:
        return self._vendor.resource(request.type or request.urn.split("::")[2].rsplit("$", 1)[-1])

    def _begun(self, request: Any, context: grpc.ServicerContext) -> tuple[Managed, Operation]:
        resource = self._resource(request)
        limit_s = getattr(request, "timeout", 0) or resource.TIMEOUT_S

        def lives() -> bool:
            return context.is_active() and not self._engine_is_gone()

        return resource, Operation(request.urn, self._session, self._log.of(request.urn), limit_s, lives)


def _partial_failure(context: grpc.ServicerContext, request: Any, error: PartialFailure) -> None:
    inputs = error.inputs or to_python(getattr(request, "news", None) or getattr(request, "properties", None))
    failed = provider_pb2.ErrorResourceInitFailed(
        id=error.resource_id,
        properties=to_struct({**inputs, **error.outputs}),
        reasons=[str(error)],
        inputs=to_struct(inputs),
    )
    detail = any_pb2.Any()
    detail.Pack(failed)
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=str(error), details=[detail])
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(grpc.StatusCode.UNKNOWN, str(error))


def _check_known(request: Any, inputs: Values) -> None:
    if UNKNOWN in str(inputs):
        raise ProviderError(
            f"working on {_subject(request)}: an input of it is not known yet, so nothing was ordered or changed. "
            "Run the command again."
        )


def _subject(request: Any) -> str:
    return getattr(request, "urn", "") or "the provider"


def to_python(struct: struct_pb2.Struct) -> dict[str, Any]:
    """Read a struct: whole numbers become ints, nulls are left out, secrets lose their wrapping."""
    return _plain(json_format.MessageToDict(struct))


def to_struct(values: Mapping[str, Any]) -> struct_pb2.Struct:
    """Write a struct, without the members that are None."""
    struct = struct_pb2.Struct()
    json_format.ParseDict({key: _listed(value) for key, value in values.items() if value is not None}, struct)
    return struct


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        if value.get(SIGNATURE) == SECRET:
            return _plain(value.get("value"))
        return {key: _plain(member) for key, member in value.items() if member is not None}
    if isinstance(value, list):
        return [_plain(member) for member in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _listed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _listed(member) for key, member in value.items() if member is not None}
    return [_listed(member) for member in value] if isinstance(value, list | tuple) else value


def changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Compare inputs with inputs; outputs never count, because the account resolves names into ids and dates."""
    return sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
