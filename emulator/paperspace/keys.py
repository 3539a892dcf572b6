"""API keys: each belongs to one user in one team, who may do everything, or little, or nothing here."""

import enum
import hmac
from collections.abc import Callable
from typing import Any

from emulator.paperspace.account import Account
from emulator.paperspace.errors import ApiError, NotEmulated, not_found
from emulator.paperspace.operations import Call
from emulator.paperspace.records import Machine
from emulator.paperspace.settings import Settings
from emulator.store import Table


class Role(enum.Enum):
    """What the owner of a key is in this team."""

    ADMIN = "admin"
    MEMBER = "member"
    OTHER_TEAM = "other team"


def role_of(settings: Settings, key: str | None) -> Role | None:
    """The role of a key; None for one that is not valid."""
    known = {settings.api_key: Role.ADMIN, settings.member_key: Role.MEMBER, settings.other_team_key: Role.OTHER_TEAM}
    for each, role in known.items():
        if each and key and hmac.compare_digest(each.encode(), key.encode()):
            return role
    return None


def check(account: Account, call: Call) -> Role | None:
    """The role of a call's key, or the refusal of what it may not do."""
    role = role_of(account.settings, call.key)
    if not call.operation.needs_key:
        return role
    if role is None:
        raise ApiError("UNAUTHORIZED", "The API key is missing or not valid.")
    if role is Role.MEMBER:
        _check_member(account, call)
    if role is Role.OTHER_TEAM and not call.is_read:
        if call.path:
            raise not_found("Object", next(iter(call.path.values())))
        raise NotEmulated(f"{call.name} for another team")
    return role


def seen_by(account: Account, role: Role | None) -> Account:
    """The account without what a role is not shown, for reading."""
    if role in (None, Role.ADMIN):
        return account
    tables: dict[str, Table] = {kind: Table() for kind in account.store.tables}
    if role is Role.MEMBER:
        mine = {each.ref for each in account.store.tables["machines"].read_all() if _is_mine(account, each)}
        tables |= {"networks": account.store.tables["networks"]}
        _keep(tables["machines"], account.store.tables["machines"], lambda each: _is_mine(account, each))
        _keep(tables["events"], account.store.tables["events"], lambda each: each.machine_ref in mine)
    return account.with_tables(tables)


def _keep(table: Table, whole: Table, shown: Callable[[Any], bool]) -> None:
    for each in whole.read_all():
        if shown(each):
            table.restore(each.id, each)


def _check_member(account: Account, call: Call) -> None:
    if not call.operation.for_members:
        raise ApiError("FORBIDDEN", "Only an administrator of the team may do this.")
    if not call.is_read and not any(
        each.ref == call.path["id"] and _is_mine(account, each) for each in account.store.machines.read_all()
    ):
        raise not_found("Machine", call.path["id"])


def _is_mine(account: Account, machine: Machine) -> bool:
    return account.member_ref in machine.accessors
