"""The Machine resource: adopted or ordered once with its startup script, running when it is returned, gone when it is deleted."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core.catalog import paperspace as catalog
from providers.grpc.properties import Problem, problems
from providers.grpc.resource_protocol import Created, Live
from providers.paperspace import host_key, machine_lookup, machine_view, named_goods, names, startup_script
from providers.paperspace.account import MACHINES, SCRIPTS, Account
from providers.paperspace.api import ApiError
from providers.paperspace.machine_spec import MachineSpec
from providers.paperspace.startup_script import KIND as SCRIPT
from providers.rental import machine
from providers.rental import owner_mark as marks
from providers.rental.backend import Backend, OrderRequest, Thing
from providers.rental.closing import check_ours
from providers.rental.errors import ProviderError
from providers.rental.operation import Operation
from providers.rental.owner_mark import Owner
from providers.rental.readiness import Readiness
from providers.rental.waiting import Pending, wait_until

KIND = machine_view.KIND
REPLACE_ON = frozenset(
    {"mark", "hostname", "region", "machineType", "templateId", "diskGb", "networkId", "publicKey"}
    | {"publicIpType", "startupScript"}
)
"""Everything: the vendor changes a type only within a group and a disk only upwards, and only while the machine is off."""
TIMEOUT_S = 90 * 60.0
STATIC = "static"
OUTPUTS = ("publicIp", "privateIp", "hostKey", "pricePerHour", "accountId")


def check(inputs: Mapping[str, Any], old_inputs: Mapping[str, Any]) -> list[Problem]:
    """Say what is wrong with the inputs."""
    return problems(MachineSpec, inputs)


def known_outputs(inputs: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Price a new machine by the catalog; a living one keeps what it has."""
    if old:
        return {key: old.get(key) for key in OUTPUTS}
    try:
        price = catalog.machine_price_per_hour(
            str(inputs["machineType"]), int(inputs["diskGb"]), str(inputs.get("publicIpType", "dynamic"))
        )
    except (KeyError, TypeError, ValueError):
        return {}
    return {} if price is None else {"pricePerHour": f"{price:f}"}


def create(op: Operation, inputs: Mapping[str, Any]) -> Created:
    """Adopt the machine that an interrupted run ordered, else order it with its script; return it ready."""
    spec, backend = MachineSpec.of(inputs), op.backend()
    owner = Owner(op.stack, spec.mark)
    key = host_key.derive(owner, spec.hostname, spec.public_key)
    script = _script(op, backend, spec, owner, key)
    what = f"machine {spec.hostname} of {owner}"
    sold = f"{spec.machine_type} {spec.disk_gb} {spec.public_ip_type}"
    request = OrderRequest(
        KIND, owner, what, spec.hostname, (spec, script.id), hostname=spec.hostname, key_ids=(), sold=sold
    )
    made = named_goods.obtain(op, backend, request)
    machine_id = made if isinstance(made, str) else _adopt(op, spec, script, made)
    return Created(machine_id, _finish(op, backend, spec, machine_id, key.public))


def read(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> Live | None:
    """Read the machine; one that is not ready is a partial failure."""
    backend, owner = op.backend(old.get("accountId")), Owner(op.stack, str(inputs.get("mark") or ""))
    found = machine.read(op, backend, owner, resource_id, inputs=inputs, old=old)
    if found is None:
        if inputs.get("publicIpType") == STATIC:
            # A person who deletes a machine in the console leaves its address behind, which nobody would see in our state.
            machine_lookup.release_address(backend.account, resource_id, old.get("publicIp"))
        return None
    if not inputs:
        marks.permit_import(op.stack, found.label, found.owner)
        raise ProviderError(
            f"importing {found.label}: the account does not show its template and its startup script. Leave it out of the "
            "state: 'pulumi up' takes it over by its name."
        )
    check_ours(found, owner, "reading")
    on = {switch: True for switch in machine_view.SWITCHES if found.row.get(switch)}
    # The switches are no inputs of ours: one that turns up in the state shows as a change, which the next update takes back.
    live = {**inputs, **{key: value for key, value in found.inputs.items() if key in inputs}, **on}
    key = old.get("hostKey") or host_key.derive(owner, str(inputs["hostname"]), str(inputs["publicKey"])).public
    outputs = {**found.outputs, "hostKey": key, "accountId": backend.identity().account_id}
    machine.check_ready(op, backend, found, live, outputs)
    return Live(live, outputs)


def update(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Go on with a machine that was not ready, start one that is off, and put off what would stop it."""
    backend, spec = op.backend(old.get("accountId")), MachineSpec.of(inputs)
    key = host_key.derive(Owner(op.stack, spec.mark), spec.hostname, spec.public_key)
    return _finish(op, backend, spec, resource_id, key.public, was_ready=True)


def delete(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> None:
    """Delete the machine, its static address and its script, and return when the account shows none of them."""
    backend, owner = op.backend(old.get("accountId")), Owner(op.stack, str(inputs.get("mark") or ""))
    machine.delete(op, backend, owner, resource_id)
    if inputs.get("publicIpType") == "static":
        machine_lookup.release_address(backend.account, resource_id, old.get("publicIp"))
    account_id, journal = backend.identity().account_id, op.journal(owner.mark)
    known = {each for each, intent in journal.accepted(account_id, SCRIPT).items() if intent.name == op.name}
    listed = startup_script.of_machine(backend.account, owner, str(inputs.get("hostname")))
    for script_id in sorted({*known, *(each.id for each in listed)}):
        backend.remove(SCRIPT, script_id, owner, op.deadline, op.log.progress)
        journal.closed(account_id, SCRIPT, script_id)


def body(spec: MachineSpec, owner: Owner, script_id: str) -> dict[str, Any]:
    """Write the order; what is not said here has no stated default, or one that costs money."""
    return {
        "name": names.full(spec.hostname, owner),
        "machineType": spec.machine_type,
        "templateId": spec.template_id,
        "region": spec.region,
        "diskSize": spec.disk_gb,
        "networkId": spec.network_id,
        "publicIpType": spec.public_ip_type,
        "startupScriptId": script_id,
        "startOnCreate": True,
        "emailPassword": False,
        "takeInitialSnapshot": False,
        **dict.fromkeys(machine_view.SWITCHES, False),
    }


def _script(op: Operation, backend: Backend, spec: MachineSpec, owner: Owner, key: host_key.HostKey) -> Thing:
    """Order the startup script, or make the one of an interrupted run say what this one says, unless a machine has it."""
    name, text = startup_script.full_name(spec, owner), startup_script.text(spec, owner, key)
    content = {"name": name, "script": text, "isRunOnce": True}
    what = f"startup script of {spec.hostname} of {owner}"
    request = OrderRequest(SCRIPT, owner, what, startup_script.label(spec.hostname), content, key_ids=())
    made = named_goods.obtain(op, backend, request)
    if isinstance(made, str):
        return Thing(SCRIPT, made, request.name, owner, what, row={"id": made, "name": name})
    if startup_script.digest_of(made.row) != startup_script.digest(spec) and not made.row.get("assignedMachineIds"):
        row = backend.account.api.ensure("PUT", f"{SCRIPTS}/{made.id}", content)
        return replace(made, row=row)
    return made


def _adopt(op: Operation, spec: MachineSpec, script: Thing, found: Thing) -> str:
    is_other = startup_script.digest_of(script.row) != startup_script.digest(spec)
    flaws = ["its startup script is another one"] if is_other else []
    machine.check_adoptable(found, spec.model_dump(mode="json", by_alias=True), (), flaws)
    op.log.info(f"Goes on with {found.label}, whose order was accepted before.")
    return found.id


def _finish(
    op: Operation,
    backend: Backend,
    spec: MachineSpec,
    machine_id: str,
    public_host_key: str,
    *,
    was_ready: bool = False,
) -> dict[str, Any]:
    """Wait until the machine is ready; from here on it costs money. One that was ready before may have lost its address."""
    owner, account = Owner(op.stack, spec.mark), backend.account
    known = {"hostKey": public_host_key, "accountId": backend.identity().account_id}
    building = Readiness(op, backend, owner, machine_id, spec.hostname)
    with machine.recorded(op, building, known):
        wants_address = was_ready and spec.public_ip_type == STATIC

        def look() -> Thing | Pending:
            nonlocal wants_address
            state = building.look()
            row = building.seen.row if building.seen else {}
            if wants_address and machine_view.lacks_static_address(row):
                wants_address = _restore_address(account, row)
                return Pending("it has lost its static address and gets another one")
            if isinstance(state, Pending) and row.get("state") == machine_view.OFF:
                _try(account, "PATCH", f"{MACHINES}/{machine_id}/start", {})
            return state

        ready = wait_until(f"{building.what} ready", look, op.deadline, op.log.progress)
        on = {switch: False for switch in machine_view.SWITCHES if ready.row.get(switch)}
        if on:
            account.api.ensure("PUT", f"{MACHINES}/{machine_id}", on)
    return {**ready.outputs, **known}


def _restore_address(account: Account, row: Mapping[str, Any]) -> bool:
    """Give a machine another static address, where a deletion was stopped after it had released the old one.

    Only a machine that is off can get one: return whether that is still to be waited for. It is given once, as a late view would
    make it twice. The vendor says of no update that it brings an address where the kind stays: so the kind changes twice.
    """
    path = f"{MACHINES}/{row['id']}"
    if row["state"] == machine_view.READY:
        _try(account, "PATCH", f"{path}/stop", {})
        return True
    machine_lookup.release_address(account, row["id"], None)
    for kind in ("dynamic", STATIC):
        _try(account, "PUT", path, {"publicIpType": kind})
    return False


def _try(account: Account, method: str, path: str, body: Mapping[str, Any]) -> None:
    """Ask for something whose effect the next look shows: it may be so by now, as lists lag, or the answer may get lost."""
    try:
        account.api.once(method, path, body)
    except ApiError as error:
        if error.is_forbidden:
            raise
